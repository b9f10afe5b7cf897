//! `windlass abort`: an update that has replaced nothing yet is given up, and the cluster asked to be what it was.

pub mod class;
mod label;

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateEnd, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::{ClusterName, UpdateId};

use crate::ask::{Answer, ask};
use crate::changed::{Changed, cluster_name};
use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::progress::Progress;
use crate::update::{self, Latest, annotate, delete};
use crate::wait::duration;

/// Give up an update that has replaced no machine yet
///
/// What was begun is undone: a machine that was made for the update goes, and kubeadm's configuration has the old version again.
/// The cluster is asked to be what it was. Once a machine was replaced there is only forward: the update then goes on, and says so.
/// Of a cluster of a class, the packages go back to the release before; that can be done for as long as no machine is new.
/// Of a cluster whose release is a label, the label goes back; that can be done until Cluster API is told to replace machines.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass abort my-tkc --yes")]
pub struct Abort {
    /// The cluster
    cluster: ClusterName,
    /// Undo what another update has begun and nobody leads any more: machines carry its mark
    #[arg(long)]
    adopt: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Give up waiting after this long; the order stays
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
    /// Write it as a document instead, for scripts, or the name of the update
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `abort -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AbortReport<'a> {
    cluster: &'a ClusterName,
    /// The update that was given up; none where only its release had been asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<UpdateId>,
    /// What the cluster keeps.
    back_to: &'a str,
}

impl Abort {
    /// Orders it, waits until it is done, and asks for what was. Whoever is interrupted types the same again.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = match management.cluster(&self.cluster).await {
            Err(client::Error::OfClass { .. }) => return self.run_of_class(&management).await,
            Err(client::Error::ByLabel { .. }) => return self.run_by_label(&management).await,
            found => found?,
        };
        let found = Latest::find(&management, &self.cluster).await?;
        if let Some(has) = only_asked(&cluster, found.as_ref()) {
            return self.take_back(&management, &has).await;
        }
        let mut latest = found.ok_or_else(|| update::Error::None { cluster: self.cluster.clone() })?;
        let (name, from) = (latest.name(), &latest.record.spec.from);
        match latest.record.status.as_ref().and_then(|status| status.state) {
            Some(UpdateState::Succeeded) => return Err(self.ended(name).into()),
            Some(UpdateState::Aborted) => {}
            None | Some(UpdateState::Running | UpdateState::Failed) => {
                self.confirm(&format!("Give up the update {name} of"), &from.distribution)?;
                // One that could not do it is tried again.
                if let Some(failed) = latest.failed_abort(&management).await? {
                    delete(&management, &failed).await?;
                }
                self.order(&management, &latest).await?;
                // It may have another id now.
                latest = Latest::of(&management, &self.cluster).await?;
                self.wait(&management, &latest).await?;
            }
        }
        self.ask_back(&management, &latest.record).await?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        self.tell(Some(&latest), &latest.record.spec.from.distribution)
    }

    async fn wait(&self, management: &Management, latest: &Latest) -> Result<(), Failure> {
        let update = latest.name();
        let mut progress = Progress::new(self.cluster.to_string());
        let cluster = self.cluster.clone();
        let seen = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster }),
            () = tokio::time::sleep(self.timeout) => Err(Error::TimedOut { cluster }),
            seen = follow(management, latest, &mut progress) => Ok(seen),
        };
        progress.end();
        match seen? {
            Seen::Aborted => Ok(()),
            Seen::Ended => Err(self.ended(update).into()),
            Seen::Failed(why) => Err(Error::Failed { cluster: self.cluster.clone(), why }.into()),
            Seen::TooLate(why) => {
                // An order that cannot be followed would stand in the way of nothing but the eye.
                let none = json!({ annotation::ABORT.name: null });
                annotate(management, update, none, &format!("take back the order to give up {update}")).await?;
                Err(Error::TooLate { cluster: self.cluster.clone(), why }.into())
            }
            Seen::Going(_) => Err(Error::Interrupted { cluster: self.cluster.clone() }.into()),
        }
    }

    async fn order(&self, management: &Management, latest: &Latest) -> Result<(), Failure> {
        let update = latest.name();
        let mut orders = json!({ annotation::ABORT.name: FIELD_MANAGER });
        if self.adopt {
            let (key, id) = annotation::ADOPT.entry(&latest.foreign(management, &self.cluster).await?);
            orders[key] = id.into();
        }
        annotate(management, update, orders, &format!("give up the update {update}")).await?;
        Ok(())
    }

    /// One write of all that the update has changed. Whoever asks for something else by now is left alone.
    async fn ask_back(&self, management: &Management, record: &ClusterUpdate) -> Result<(), client::Error> {
        let (from, to) = (&record.spec.from, &record.spec.to);
        let cluster = management.cluster(&self.cluster).await?;
        if cluster.spec.distribution.full_version.as_deref() != Some(to.distribution.as_str()) {
            return Ok(());
        }
        let api = management.api::<TanzuKubernetesCluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters(), &Patch::Merge(back(from, to))).await;
        let attempt = format!("ask {} to be at {} again", self.cluster, from.distribution);
        patched.map(drop).map_err(client::Error::while_trying(&attempt))
    }

    /// Asks for what the cluster has, where no update has begun with what it was asked for. If one begins first, admission says so.
    async fn take_back(&self, management: &Management, has: &str) -> Result<Exit, Failure> {
        self.confirm("Take back the release of", has)?;
        let api = management.api::<TanzuKubernetesCluster>();
        let patch = json!({
            "metadata": {"annotations": {annotation::ON_THE_WAY_TO.name: null}},
            "spec": {"distribution": {"version": has, "fullVersion": has}},
        });
        let patched = api.patch(self.cluster.as_str(), &parameters(), &Patch::Merge(patch)).await;
        patched.map_err(client::Error::while_trying(&format!("ask {} to stay at {has}", self.cluster)))?;
        self.tell(None, has)
    }

    fn confirm(&self, what: &str, has: &str) -> Result<(), Error> {
        if self.yes {
            return Ok(());
        }
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), asked };
        match ask(&format!("{what} {}, and go back to {has}?", self.cluster)).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    fn ended(&self, update: &str) -> Error {
        Error::Ended { cluster: self.cluster.clone(), update: update.to_owned() }
    }

    fn tell(&self, latest: Option<&Latest>, back_to: &str) -> Result<Exit, Failure> {
        let id = latest.map(|latest| latest.id);
        self.told(latest.map(Latest::name), id, back_to, &cluster_name(&self.cluster))
    }

    /// Tells what was given up. Where that is no update, it is the object of the cluster that was changed.
    fn told(&self, update: Option<&str>, id: Option<UpdateId>, back_to: &str, object: &str) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        if let Some(format) = self.output {
            let report = AbortReport { cluster, update, id, back_to };
            match update {
                Some(update) => format.tell_update(update, "AbortReport", report)?,
                None => format.tell(object, "AbortReport", report)?,
            }
            return Ok(Exit::Done);
        }
        output::data(&match update {
            Some(update) => format!("update {update} of {cluster} is given up: the cluster keeps {back_to}"),
            None => format!("no update of {cluster} had begun: the cluster keeps {back_to}"),
        })?;
        output::note(&format!("Next: windlass status {cluster}"));
        Ok(Exit::Done)
    }
}

/// What a cluster has, where it asks for another release and no update has begun with that. At a hop the oldest of its machines
/// is no measure; the update that led there is.
fn only_asked(cluster: &TanzuKubernetesCluster, latest: Option<&Latest>) -> Option<String> {
    let asks = cluster.spec.distribution.full_version.as_ref()?;
    let has = match latest.map(|latest| (latest.record.status.as_ref().and_then(|status| status.state), latest)) {
        None => cluster.status.as_ref()?.version.clone()?,
        // What it has changed is still to be taken back.
        Some((Some(UpdateState::Aborted), latest)) if latest.record.spec.to.distribution == *asks => return None,
        Some((Some(UpdateState::Aborted), latest)) => latest.record.spec.from.distribution.clone(),
        Some((Some(UpdateState::Succeeded), latest)) => latest.record.spec.to.distribution.clone(),
        Some(_) => return None,
    };
    (*asks != has).then_some(has)
}

/// How the end of an update is doing.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Aborted,
    /// It succeeded before it was given up.
    Ended,
    Failed(String),
    TooLate(String),
    Going(String),
}

async fn follow(management: &Management, latest: &Latest, progress: &mut Progress) -> Seen {
    let changes = watcher::watch_object(management.api::<ClusterUpdate>(), latest.name());
    let mut changes = pin!(changes.default_backoff());
    while let Some(change) = changes.next().await {
        match change {
            Ok(Some(record)) => match judge(&record) {
                Seen::Going(how) => progress.tell(&how),
                // It may say so of a Job that was deleted since.
                Seen::Failed(_) if matches!(latest.failed_abort(management).await, Ok(None)) => {
                    progress.tell("is tried again");
                }
                end => return end,
            },
            Ok(None) => return Seen::Ended,
            // It is tried again, with longer and longer pauses.
            Err(error) => progress.tell(&format!("not watched: {error}")),
        }
    }
    Seen::Going("the watch has ended".to_owned())
}

fn judge(record: &ClusterUpdate) -> Seen {
    let status = record.status.clone().unwrap_or_default();
    match status.state {
        Some(UpdateState::Aborted) => return Seen::Aborted,
        Some(UpdateState::Succeeded) => return Seen::Ended,
        None | Some(UpdateState::Running | UpdateState::Failed) => {}
    }
    let said = |reason: &str| status.waiting_for.iter().find(|waiting| waiting.reason == reason);
    if let Some(late) = said("AbortTooLate") {
        return Seen::TooLate(late.message.clone());
    }
    if let Some(failed) = said("AbortFailed") {
        return Seen::Failed(failed.message.clone());
    }
    let first = status.waiting_for.first().map(|waiting| waiting.message.clone());
    Seen::Going(first.unwrap_or_else(|| "is to be given up".to_owned()))
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// What an update has changed, taken back, as a patch. What else was asked for in the meantime stays, and the cluster is on its
/// way nowhere any more.
fn back(from: &UpdateEnd, to: &UpdateEnd) -> Value {
    let (is, was) = (json!(to), json!(from));
    let machines = |role: &str| {
        let fields = was[role].as_object().into_iter().flatten();
        let changed = fields.filter(|(field, before)| is[role][field.as_str()] != **before);
        Value::Object(changed.map(|(field, before)| (field.clone(), before.clone())).collect())
    };
    json!({
        "metadata": {"annotations": {annotation::ON_THE_WAY_TO.name: null}},
        "spec": {
            "distribution": {"version": from.distribution, "fullVersion": from.distribution},
            "topology": {"controlPlane": machines("controlPlane"), "workers": machines("workers")},
        },
    })
}

/// There is nothing to give up, or nobody said yes.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the update {update} of {cluster} has ended: there is nothing to give up")]
    Ended { cluster: ClusterName, update: String },
    #[error("the update of {cluster} goes on: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, asked: bool },
    #[error("the update of {cluster} is not given up: {why}")]
    TooLate { cluster: ClusterName, why: String },
    #[error("the update of {cluster} could not be given up: {why}")]
    Failed { cluster: ClusterName, why: String },
    #[error("the update of {cluster} is not given up yet; the order stays")]
    TimedOut { cluster: ClusterName },
    #[error("stopped waiting for the end of the update of {cluster}; the order stays")]
    Interrupted { cluster: ClusterName },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Ended { .. } | Self::NotConfirmed { .. } | Self::TooLate { .. } | Self::Interrupted { .. } => {
                Kind::User
            }
            Self::Failed { .. } | Self::TimedOut { .. } | Self::Terminal(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Ended { cluster, .. } | Self::TooLate { cluster, .. } | Self::Failed { cluster, .. } => {
                format!("windlass status {cluster}")
            }
            Self::NotConfirmed { cluster, .. } => format!("windlass abort {cluster} --yes"),
            Self::TimedOut { cluster } | Self::Interrupted { cluster } => {
                format!("windlass abort {cluster}, which goes on where it stopped")
            }
            Self::Terminal(_) => "--yes".to_owned(),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::TooLate { .. } => Exit::Refused,
            Self::Failed { .. } => Exit::OperationFailed,
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Ended { .. } | Self::NotConfirmed { .. } | Self::Terminal(_) => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(to: &str, status: &Value) -> ClusterUpdate {
        let end = |distribution: &str| {
            json!({"distribution": distribution, "kubernetes": "v1.16.7+vmware.1",
            "controlPlane": {"count": 1, "class": "small", "storageClass": "fast"},
            "workers": {"count": 1, "class": "small", "storageClass": "fast"}})
        };
        let record = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate", "metadata": {"name": "my-tkc-1"},
            "spec": {"cluster": "my-tkc", "ordinal": 1, "id": "7", "from": end("v1"), "to": end(to), "envelopeDigest": "d"},
            "status": status,
        });
        serde_json::from_value(record).unwrap()
    }

    #[track_caller]
    fn check(status: &Value, seen: &Seen) {
        assert_eq!(judge(&record("v1.16.7+vmware.1-guest.1", status)), *seen);
    }

    #[test]
    fn a_release_that_was_only_asked_for_can_be_taken_back_without_an_update() {
        let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
        let check = |latest: Option<(&str, &str)>, has: &str, asks: &str, back: Option<&str>| {
            let cluster = json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
                "metadata": {"name": "my-tkc"}, "status": {"version": has},
                "spec": {"topology": {"controlPlane": machines, "workers": machines}, "distribution": {"fullVersion": asks}},
            });
            let cluster: TanzuKubernetesCluster = serde_json::from_value(cluster).unwrap();
            let latest = latest.map(|(to, state)| {
                let record = record(to, &json!({"state": state}));
                Latest { id: record.id().unwrap(), record }
            });
            assert_eq!(only_asked(&cluster, latest.as_ref()).as_deref(), back, "{has} {asks}");
        };
        check(None, "v1", "v2", Some("v1"));
        check(None, "v1", "v1", None);
        check(Some(("v1", "Succeeded")), "v1", "v2", Some("v1"));
        check(Some(("v2", "Running")), "v1", "v2", None);
        check(Some(("v2", "Failed")), "v1", "v2", None);
        // What it has changed is still to be taken back.
        check(Some(("v2", "Aborted")), "v1", "v2", None);
        check(Some(("v2", "Aborted")), "v1", "v3", Some("v1"));
        // At a hop some workers wait.
        check(Some(("v2", "Succeeded")), "v1", "v2", None);
        check(Some(("v2", "Succeeded")), "v1", "v3", Some("v2"));
    }

    #[test]
    fn only_what_the_update_has_changed_is_taken_back() {
        let end = |distribution: &str, class: &str| -> UpdateEnd {
            let workers = json!({"count": 1, "class": class, "storageClass": "fast"});
            let control_plane = json!({"count": 3, "class": "small", "storageClass": "fast"});
            let end = json!({"distribution": distribution, "kubernetes": "v1.16.7+vmware.1",
                "controlPlane": control_plane, "workers": workers});
            serde_json::from_value(end).unwrap()
        };
        let patch = back(&end("v1.16.7", "small"), &end("v1.16.8", "large"));
        assert_eq!(
            patch["spec"],
            json!({
                "distribution": {"version": "v1.16.7", "fullVersion": "v1.16.7"},
                "topology": {"controlPlane": {}, "workers": {"class": "small"}},
            })
        );
    }

    #[test]
    fn an_order_is_waited_for_until_it_is_followed_or_cannot_be() {
        let waiting = |reason: &str| {
            json!({"state": "Running", "waitingFor": [
                {"stage": "controlPlane", "reason": reason, "object": "ClusterUpdate/my-tkc-1", "message": "so it is"}]})
        };
        check(&json!({}), &Seen::Going("is to be given up".to_owned()));
        check(&waiting("Aborting"), &Seen::Going("so it is".to_owned()));
        check(&waiting("AbortTooLate"), &Seen::TooLate("so it is".to_owned()));
        check(&waiting("AbortFailed"), &Seen::Failed("so it is".to_owned()));
        check(&json!({"state": "Aborted"}), &Seen::Aborted);
        check(&json!({"state": "Succeeded"}), &Seen::Ended);
    }
}
