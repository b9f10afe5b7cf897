//! A classic cluster: its label names the release again that it has, which gives its update up for as long as Cluster API was not
//! told of it. What comes of that is looked at. Whoever is interrupted types the same again.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::Patch;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::name::ClusterName;
use windlass_api::{annotation, label};
use windlass_plan::resolve::labelled::course::Course;
use windlass_plan::word::Word;

use super::{Abort, parameters};
use crate::changed::class_cluster_name;
use crate::client::{self, Management};
use crate::doing::{Doing, Sort};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::progress::{HEARTBEAT, Progress};
use crate::report::{self, Report};

impl Abort {
    /// Asks for what the cluster has, and waits until that is all that it is asked for.
    pub(super) async fn run_by_label(&self, management: &Management) -> Result<Exit, Failure> {
        let name = &self.cluster;
        if self.adopt {
            return Err(Error::NothingToAdopt { cluster: name.clone() }.into());
        }
        let cluster = management.api::<Cluster>().get(name.as_str()).await;
        let cluster = cluster.map_err(client::Error::while_trying(&format!("read the cluster {name}")))?;
        let update = report::update(management, &cluster).await?;
        let course = Course { cluster: &cluster, update: update.as_ref() };
        let asked = course.asked().unwrap_or_default();
        let Some(has) = course.deployed() else { return Err(Error::New { cluster: name.clone() }.into()) };
        if asked != has {
            self.confirm(&format!("Give up the upgrade to {asked} of"), has)?;
            self.label_back(management, has).await?;
        } else if !course.is_updated() {
            return Err(Error::Nothing { cluster: name.clone(), release: has.to_owned() }.into());
        }
        let begun = course.update.filter(|_| course.is_updated());
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster: name.clone() }),
            () = tokio::time::sleep(self.timeout) => Err(Error::TimedOut { cluster: name.clone(), after: self.timeout }),
            ended = self.until_it_keeps(management, has) => ended,
        };
        ended?;
        self.tell_by_label(begun, has)
    }

    /// One write: the label, and nothing left of what was reviewed for the other release.
    async fn label_back(&self, management: &Management, has: &str) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({"metadata": {
            "labels": {label::RELEASE_VERSION.name: has},
            "annotations": {annotation::REVIEWED_ENVELOPE.name: null},
        }}));
        let api = management.api::<Cluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters(), &patch).await;
        let attempt = format!("ask {} to stay at {has}", self.cluster);
        patched.map_err(|error| match client::Error::while_trying(&attempt)(error) {
            client::Error::Refused { message, code: 422, .. } => {
                let (cluster, release) = (self.cluster.clone(), has.to_owned());
                Error::Refused { cluster, release, why: message }.into()
            }
            other => Failure::from(other),
        })?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        Ok(())
    }

    async fn until_it_keeps(&self, management: &Management, has: &str) -> Result<(), Error> {
        let mut progress = Progress::new(self.cluster.to_string());
        let mut looks = Sort::ByLabel.follow(management, &self.cluster);
        let ended = loop {
            let Ok(look) = tokio::time::timeout(HEARTBEAT, looks.next()).await else {
                progress.beat();
                continue;
            };
            let cluster = || self.cluster.clone();
            match look {
                Some(Ok(Some(Doing::Recorded(report)))) => match judge(&report, has) {
                    Seen::Kept => break Ok(()),
                    Seen::Another(release) => break Err(Error::Another { cluster: cluster(), release }),
                    Seen::TooLate(why) => break Err(Error::TooLate { cluster: cluster(), why }),
                    Seen::Going => progress.show(&report),
                },
                Some(Ok(Some(Doing::OfClass(_)) | None)) | None => break Err(Error::Gone { cluster: cluster() }),
                Some(Err(error)) => progress.tell(&format!("not watched: {error}")),
            }
        };
        progress.end();
        ended
    }

    fn tell_by_label(&self, update: Option<&ClusterUpdate>, back_to: &str) -> Result<Exit, Failure> {
        let (cluster, name) = (&self.cluster, update.and_then(|update| update.metadata.name.as_deref()));
        let id = update.and_then(|update| update.id().ok());
        self.told(name, id, back_to, &class_cluster_name(cluster))
    }
}

/// How a cluster is doing that is to keep its release.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Kept,
    /// Somebody asks for another one by now.
    Another(String),
    TooLate(String),
    Going,
}

fn judge(report: &Report, has: &str) -> Seen {
    if let Some(other) = report.release.as_deref().filter(|release| *release != has) {
        return Seen::Another(other.to_owned());
    }
    let goes_on = |state| matches!(state, None | Some(UpdateState::Running | UpdateState::Failed));
    let late = report.waits.iter().find(|wait| wait.reason == "AbortTooLate");
    match (late, report.update.as_ref().filter(|update| goes_on(update.state))) {
        (Some(late), Some(_)) => Seen::TooLate(late.message.clone()),
        (None, Some(_)) => Seen::Going,
        // It came to its end before anybody saw that it was not wanted any more.
        (_, None) if report.running.as_deref() != Some(has) => {
            Seen::TooLate(format!("it has {} by now", output::cell(report.running.as_ref())))
        }
        // What else is the matter with it, it has been before. One that is updated is about to begin.
        (_, None) if report.assessment == Word::Updating.as_str() => Seen::Going,
        (_, None) => Seen::Kept,
    }
}

/// It is not given up, or it is not known whether it is.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} is being created: there is no release that it could keep")]
    New { cluster: ClusterName },
    #[error("{cluster} has {release}, and is asked for nothing else: there is nothing to give up")]
    Nothing { cluster: ClusterName, release: String },
    #[error("{cluster} is rolled by Cluster API: none of its upgrades can be without somebody who leads it")]
    NothingToAdopt { cluster: ClusterName },
    #[error("the upgrade of {cluster} is not given up: {why}")]
    TooLate { cluster: ClusterName, why: String },
    #[error("{cluster} is not asked for {release} again: {why}")]
    Refused { cluster: ClusterName, release: String, why: String },
    #[error("{cluster} is asked for {release} by now")]
    Another { cluster: ClusterName, release: String },
    #[error("{cluster} is gone")]
    Gone { cluster: ClusterName },
    #[error("it is not known after {after:?} whether {cluster} keeps its release; the label asks for it")]
    TimedOut { cluster: ClusterName, after: Duration },
    #[error("nobody waits any more for {cluster} to keep its release; the label asks for it")]
    Interrupted { cluster: ClusterName },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::TimedOut { .. } => Kind::Environment,
            Self::New { .. }
            | Self::Nothing { .. }
            | Self::NothingToAdopt { .. }
            | Self::TooLate { .. }
            | Self::Refused { .. }
            | Self::Another { .. }
            | Self::Gone { .. }
            | Self::Interrupted { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::New { cluster } | Self::Nothing { cluster, .. } | Self::Another { cluster, .. } => {
                format!("windlass status {cluster}")
            }
            Self::NothingToAdopt { .. } => "the same without --adopt".to_owned(),
            Self::Refused { cluster, .. } => {
                format!("windlass why {cluster}, which says what the upgrade waits for; it is brought to its end")
            }
            Self::TooLate { cluster, .. } => {
                format!(
                    "windlass why {cluster}; windlass upgrade {cluster} --to the release that it goes to, so that its label says so"
                )
            }
            Self::Gone { .. } => "windlass get clusters".to_owned(),
            Self::TimedOut { cluster, .. } | Self::Interrupted { cluster } => {
                format!("windlass abort {cluster}, which goes on where it stopped")
            }
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::TooLate { .. } | Self::Refused { .. } => Exit::Refused,
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Gone { .. } => Exit::OperationFailed,
            Self::New { .. } | Self::Nothing { .. } | Self::NothingToAdopt { .. } | Self::Another { .. } => {
                Exit::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(asked: &str, deployed: &str, reason: &str, update: Option<&Value>, seen: &Seen) {
        let status = if reason == "Applied" { "True" } else { "False" };
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "shop", "uid": "u", "labels": {label::RELEASE_VERSION.name: asked},
                "annotations": {annotation::LAST_DEPLOYED_VERSION.name: deployed}},
            "spec": {},
            "status": {"initialization": {"controlPlaneInitialized": true}, "conditions": [{"type": "ReleaseApplied",
                "status": status, "reason": reason, "message": deployed, "lastTransitionTime": ""}]},
        }))
        .unwrap();
        let update = update.map(|status| -> ClusterUpdate {
            let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
            let end = json!({"distribution": "", "kubernetes": "", "controlPlane": machines, "workers": machines});
            let owner = json!({"apiVersion": "", "kind": "", "name": "", "uid": "u"});
            serde_json::from_value(json!({
                "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate",
                "metadata": {"name": "shop-1", "ownerReferences": [owner]},
                "spec": {"cluster": "shop", "ordinal": 1, "id": "7", "from": end, "to": end, "envelopeDigest": ""},
                "status": status,
            }))
            .unwrap()
        });
        let report = Report::of(&cluster, update.as_ref(), &[], jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(judge(&report, "35.2.0"), *seen, "{asked} {deployed} {reason}");
    }

    #[test]
    fn a_release_is_kept_when_no_update_goes_on_any_more() {
        let (running, aborted) = (json!({"state": "Running"}), json!({"state": "Aborted"}));
        check("35.2.0", "35.2.0", "Applied", None, &Seen::Kept);
        check("35.2.0", "35.2.0", "Waiting", Some(&aborted), &Seen::Kept);
        check("35.2.0", "35.2.0", "Updating", Some(&running), &Seen::Going);
        // It is announced, and may come on record.
        check("35.2.0", "35.2.0", "Updating", None, &Seen::Going);
        check("36.2.0", "35.2.0", "Applied", Some(&aborted), &Seen::Another("36.2.0".to_owned()));
        let late = json!([{"stage": "controlPlane", "reason": "AbortTooLate", "object": "o", "message": "it is told"}]);
        let late = json!({"state": "Running", "waitingFor": late});
        check("35.2.0", "35.2.0", "Updating", Some(&late), &Seen::TooLate("it is told".to_owned()));
        let done = json!({"state": "Succeeded"});
        check("35.2.0", "36.1.0", "Waiting", Some(&done), &Seen::TooLate("it has 36.1.0 by now".to_owned()));
    }
}
