//! Waiting until a cluster is what it was asked to be.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::ResourceExt as _;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::name::ClusterName;

use crate::changed::Changed;
use crate::client::Management;
use crate::doing::{Doing, Sort, Stand};
use crate::error::{Exit, Explained, Kind};
use crate::output;
use crate::pending::Pending;
use crate::progress::{HEARTBEAT, Progress};
use crate::watch::Watch;
use crate::way;

/// Whether to wait, and how long.
#[derive(clap::Args)]
pub struct Patience {
    /// Wait until the cluster runs as asked for
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this long; the work goes on
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration, requires = "wait")]
    timeout: Duration,
    /// Each change is written as a line of JSON, instead of being drawn.
    #[arg(skip)]
    lines: bool,
}

/// A time as people write it: `90s`, `10m`, `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    parsed.filter(|time| !time.is_zero()).ok_or_else(|| "accepted are times such as 90s, 10m or 1h30m".to_owned())
}

/// How a cluster is doing, to somebody who waits for it.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Reached,
    /// It runs, and its workers may wait: whether it is there is for this update to say.
    Hop(String),
    Failed(String),
    /// What was asked for last has not been looked at yet.
    Unseen,
    Going,
}

impl Patience {
    /// Whether to wait, and how long.
    pub fn new(wait: bool, timeout: Duration) -> Self {
        Self { wait, timeout, lines: false }
    }

    /// The same, with a line of JSON for each change where the answer is JSON, too.
    pub fn in_lines_of(&self, output: Option<Changed>) -> Self {
        Self { lines: self.wait && output == Some(Changed::Json), ..*self }
    }

    /// Whether what is written is lines of JSON.
    pub fn is_in_lines(&self) -> bool {
        self.lines
    }

    /// Waits, if that is wanted, until the cluster is what it was asked to be in this generation of it, or a later one.
    pub async fn wait(
        &self,
        management: &Management,
        name: &ClusterName,
        generation: i64,
    ) -> Result<Option<TanzuKubernetesCluster>, Error> {
        if !self.wait {
            return Ok(None);
        }
        self.wait_anyway(management, name, generation).await.map(Some)
    }

    /// Waits as above, also where nobody asked for it: what comes next depends on it.
    pub async fn wait_anyway(
        &self,
        management: &Management,
        name: &ClusterName,
        generation: i64,
    ) -> Result<TanzuKubernetesCluster, Error> {
        let mut watch = Watch::new(management, name);
        let mut progress = Progress::new(name.to_string());
        let subject = Subject { name, generation, lines: self.lines };
        let ended = self.within(name, follow(&mut watch, management, &subject, &mut progress)).await;
        progress.end();
        ended
    }

    /// Waits, if that is wanted, until a cluster whose machines Cluster API replaces has a release; whether it was waited for.
    pub async fn wait_for_release(
        &self,
        management: &Management,
        sort: Sort,
        name: &ClusterName,
        to: &str,
    ) -> Result<bool, Error> {
        if !self.wait {
            return Ok(false);
        }
        let mut progress = Progress::new(name.to_string());
        let looks = sort.follow(management, name);
        let ended = self.within(name, until_it_has(looks, name, to, self.lines, &mut progress)).await;
        progress.end();
        ended.map(|()| true)
    }

    async fn within<T>(&self, name: &ClusterName, waiting: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster: name.clone() }),
            () = tokio::time::sleep(self.timeout) => {
                Err(Error::TimedOut { cluster: name.clone(), after: self.timeout })
            }
            ended = waiting => ended,
        }
    }
}

async fn until_it_has(
    mut looks: impl Stream<Item = Result<Option<Doing>, String>> + Unpin,
    name: &ClusterName,
    to: &str,
    lines: bool,
    progress: &mut Progress,
) -> Result<(), Error> {
    let failed = |why: String| Error::Failed { cluster: name.clone(), why };
    let mut last = None;
    loop {
        let look = tokio::select! {
            biased;
            look = looks.next() => look,
            () = tokio::time::sleep(HEARTBEAT) => {
                progress.beat();
                continue;
            }
        };
        let doing = match look {
            Some(Ok(Some(doing))) => doing,
            Some(Ok(None)) => return Err(Error::Gone { cluster: name.clone() }),
            Some(Err(error)) => {
                progress.tell(&format!("not watched: {error}"));
                continue;
            }
            None => return Err(Error::Ended { cluster: name.clone() }),
        };
        if lines {
            let line = doing.line().map_err(Error::Output)?;
            if last.as_ref() != Some(&line) {
                output::data(&line).map_err(Error::Output)?;
                last = Some(line);
            }
        }
        if let Some(other) = doing.release().filter(|release| *release != to) {
            return Err(failed(format!("it is asked to be at {other} by now")));
        }
        match doing.stand() {
            Stand::Reached => return Ok(()),
            Stand::Failed(why) => return Err(failed(why.to_owned())),
            Stand::Going => doing.show(progress),
        }
    }
}

/// What is waited for.
struct Subject<'a> {
    name: &'a ClusterName,
    generation: i64,
    lines: bool,
}

async fn follow(
    watch: &mut Watch,
    management: &Management,
    &Subject { name, generation, lines }: &Subject<'_>,
    progress: &mut Progress,
) -> Result<TanzuKubernetesCluster, Error> {
    let mut last = None;
    loop {
        let change = tokio::select! {
            biased;
            change = watch.next() => change,
            () = tokio::time::sleep(HEARTBEAT) => {
                progress.beat();
                continue;
            }
        };
        let seen = match change {
            Some(Ok(seen)) if seen.gone => return Err(Error::Gone { cluster: name.clone() }),
            Some(Ok(seen)) => seen,
            Some(Err(error)) => {
                progress.tell(&format!("not watched: {error}"));
                continue;
            }
            None => return Err(Error::Ended { cluster: name.clone() }),
        };
        let Some(cluster) = &seen.cluster else { continue };
        if let Some(update) = seen.given_up() {
            let why = format!("its update {} was given up", update.name_any());
            return Err(Error::Failed { cluster: name.clone(), why });
        }
        if lines && let Some(report) = seen.report(management.now()) {
            let line = output::line("StatusReport", &report).map_err(Error::Output)?;
            if last.as_ref() != Some(&line) {
                output::data(&line).map_err(Error::Output)?;
                last = Some(line);
            }
        }
        match judge(cluster, generation) {
            Seen::Reached => return Ok(cluster.clone()),
            // The record of an update is written before the status of its cluster.
            Seen::Hop(update) if is_done(management, &update, cluster).await => return Ok(cluster.clone()),
            Seen::Hop(update) => progress.tell(&format!("the update {update} goes on")),
            Seen::Failed(why) => return Err(Error::Failed { cluster: name.clone(), why }),
            Seen::Unseen => progress.tell("not looked at yet"),
            Seen::Going => {
                if let Some(report) = seen.report(management.now()) {
                    progress.show(&report);
                }
            }
        }
    }
}

/// Whether a cluster is at a hop, where the oldest of its machines says nothing about its update.
fn is_hop(cluster: &TanzuKubernetesCluster) -> bool {
    way::current(cluster).is_ok_and(|at| way::waits(cluster, &at).is_some())
}

/// Whether an update led to what a cluster is asked to be, and is done. An answer that does not come is no.
async fn is_done(management: &Management, update: &str, cluster: &TanzuKubernetesCluster) -> bool {
    let Ok(Some(update)) = management.api::<ClusterUpdate>().get_opt(update).await else { return false };
    let state = update.status.and_then(|status| status.state);
    Some(update.spec.to.distribution) == cluster.spec.distribution.full_version && state == Some(UpdateState::Succeeded)
}

/// A status counts only if it is about what was asked for.
fn judge(cluster: &TanzuKubernetesCluster, generation: i64) -> Seen {
    let status = cluster.status.as_ref();
    let current = status.and_then(|status| status.observed_generation).is_some_and(|seen| seen >= generation);
    let Some(status) = status.filter(|_| current) else {
        return Seen::Unseen;
    };
    // An annotation does not change the generation.
    if Pending::of(cluster).is_some_and(|pending| pending.is_agreed(cluster)) {
        return Seen::Unseen;
    }
    let Some(phase) = status.phase else {
        return Seen::Going;
    };
    let waiting_for = status.waiting_for.as_deref().filter(|text| !text.is_empty());
    match phase {
        // An update that is about to begin has not changed the phase yet, but the version says so.
        Phase::Running if status.version == cluster.spec.distribution.full_version && waiting_for.is_none() => {
            Seen::Reached
        }
        Phase::Running if is_hop(cluster) && status.update.is_some() => {
            Seen::Hop(status.update.clone().unwrap_or_default())
        }
        Phase::Failed | Phase::UpdateFailed => Seen::Failed(waiting_for.unwrap_or(phase.as_str()).to_owned()),
        Phase::Running | Phase::Creating | Phase::Unhealthy | Phase::Updating | Phase::Deleting => Seen::Going,
    }
}

/// What was waited for did not come.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{cluster} is not there yet after {}; the work goes on", brief(*after))]
    TimedOut { cluster: ClusterName, after: Duration },
    #[error("stopped waiting for {cluster}; the work goes on")]
    Interrupted { cluster: ClusterName },
    #[error("{cluster} did not become what it was asked to be: {why}")]
    Failed { cluster: ClusterName, why: String },
    #[error("{cluster} was deleted")]
    Gone { cluster: ClusterName },
    #[error("the watch on {cluster} ended")]
    Ended { cluster: ClusterName },
    #[error(transparent)]
    Output(output::Error),
}

fn brief(time: Duration) -> String {
    jiff::SignedDuration::try_from(time).map_or_else(|_| format!("{time:?}"), output::took)
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::TimedOut { .. } | Self::Failed { .. } => Kind::Environment,
            Self::Interrupted { .. } | Self::Gone { .. } => Kind::User,
            Self::Ended { .. } => Kind::Internal,
            Self::Output(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::TimedOut { cluster, .. } | Self::Interrupted { cluster } | Self::Ended { cluster } => {
                Some(format!("windlass status {cluster}"))
            }
            Self::Failed { cluster, .. } => Some(format!("windlass why {cluster}")),
            Self::Gone { .. } => Some("windlass get clusters".to_owned()),
            Self::Output(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Failed { .. } | Self::Gone { .. } => Exit::OperationFailed,
            Self::Ended { .. } => Exit::Failed,
            Self::Output(error) => error.exit(),
        }
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.is_silent())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: &serde_json::Value, seen: &Seen) {
        let cluster = serde_json::from_value(json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha1",
            "kind": "TanzuKubernetesCluster",
            "metadata": {"name": "my-tkc", "generation": 2},
            "spec": {
                "distribution": {"version": "v1.17", "fullVersion": "v1.17.4+vmware.1-guest.1"},
                "topology": {
                    "controlPlane": {"count": 1, "class": "small", "storageClass": "fast"},
                    "workers": {"count": 1, "class": "small", "storageClass": "fast"},
                },
            },
            "status": status,
        }));
        assert_eq!(judge(&cluster.unwrap(), 2), *seen, "{status}");
    }

    #[test]
    fn a_cluster_is_reached_when_it_runs_what_was_asked_for_last() {
        let (old, new) = ("v1.16.7+vmware.1-guest.1", "v1.17.4+vmware.1-guest.1");
        check(&json!({}), &Seen::Unseen);
        check(&json!({"observedGeneration": 1, "phase": "running", "version": new}), &Seen::Unseen);
        check(&json!({"observedGeneration": 2, "phase": "running", "version": old}), &Seen::Going);
        check(
            &json!({"observedGeneration": 2, "phase": "updating", "version": old, "waitingFor": "Job update-7"}),
            &Seen::Going,
        );
        check(&json!({"observedGeneration": 2, "phase": "running", "version": new}), &Seen::Reached);
        check(
            &json!({"observedGeneration": 2, "phase": "running", "version": new, "waitingFor": "the stage workers goes on"}),
            &Seen::Going,
        );
        check(
            &json!({"observedGeneration": 2, "phase": "updateFailed", "version": old, "waitingFor": "a person"}),
            &Seen::Failed("a person".to_owned()),
        );
    }

    #[test]
    fn what_was_agreed_to_is_not_reached_before_somebody_has_looked() {
        let message = "this would be; agree to it: (or kubectl annotate x windlass.dev/approved=sha256:7)";
        let check = |agreed: &str, seen: &Seen| {
            let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
            let cluster = serde_json::from_value(json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha1",
                "kind": "TanzuKubernetesCluster",
                "metadata": {"name": "my-tkc", "annotations": {"windlass.dev/approved": agreed}},
                "spec": {"distribution": {"fullVersion": "v1"}, "topology": {"controlPlane": machines, "workers": machines}},
                "status": {"observedGeneration": 2, "phase": "running", "version": "v1", "conditions": [
                    {"type": "UpdatePending", "status": "True", "reason": "ConsentNeeded", "message": message,
                        "lastTransitionTime": ""},
                ]},
            }));
            assert_eq!(judge(&cluster.unwrap(), 2), *seen, "{agreed}");
        };
        check("sha256:7", &Seen::Unseen);
        check("sha256:of-something-else", &Seen::Reached);
    }

    #[test]
    fn at_a_hop_the_update_says_whether_it_is_reached() {
        let mut cluster: TanzuKubernetesCluster = serde_json::from_value(json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha1",
            "kind": "TanzuKubernetesCluster",
            "metadata": {"name": "my-tkc", "generation": 2,
                "annotations": {"windlass.dev/on-the-way-to": "v1.17.4+vmware.1-guest.1"}},
            "spec": {
                "distribution": {"fullVersion": "v1.16.8+vmware.1-guest.1"},
                "topology": {
                    "controlPlane": {"count": 1, "class": "small", "storageClass": "fast"},
                    "workers": {"count": 1, "class": "small", "storageClass": "fast"},
                },
            },
            "status": {"observedGeneration": 2, "phase": "running", "version": "v1.15.5+vmware.1-guest.1",
                "update": "my-tkc-1"},
        }))
        .unwrap();
        assert_eq!(judge(&cluster, 2), Seen::Hop("my-tkc-1".to_owned()));
        cluster.metadata.annotations = None;
        assert_eq!(judge(&cluster, 2), Seen::Going);
    }

    #[test]
    fn times_are_written_as_people_do() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        for text in ["", "10", "0s", "-5m", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
