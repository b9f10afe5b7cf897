//! A classic cluster: its label is changed, and what follows from that is waited for.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use serde::Serialize;
use serde_json::json;
use windlass_api::condition::ConditionType;
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::ClusterName;
use windlass_api::{annotation, label};

use super::{Outcome, Upgrade, tell_warnings};
use crate::ask::{Answer, ask};
use crate::changed::class_cluster_name;
use crate::client::{self, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::pending;
use crate::progress::{HEARTBEAT, Progress};
use crate::watch::changes;

/// What `upgrade -o` writes of it.
#[derive(Serialize, schemars::JsonSchema)]
pub struct LabelUpgradeReport<'a> {
    cluster: &'a ClusterName,
    from: &'a str,
    to: &'a str,
    outcome: Outcome,
}

impl Upgrade {
    /// Begins it. What may be is for the server to say.
    pub(super) async fn begin_by_label(&self, management: &Management, found: &Cluster) -> Result<Exit, Failure> {
        let to = self.to.as_str().trim_start_matches('v');
        let from = release(found).unwrap_or("no release");
        if from == to {
            let reached = self.follow_label(management, to).await?;
            return self.tell_by_label(from, to, if reached { Outcome::Reached } else { Outcome::NothingToDo });
        }
        self.label(management, to, true).await?;
        tell_warnings(management);
        if self.dry_run {
            return self.tell_by_label(from, to, Outcome::DryRun);
        }
        if !self.yes {
            self.confirm_label(from, to)?;
        }
        let begun = self.label(management, to, false).await?;
        tell_warnings(management);
        if self.follow_label(management, to).await? {
            return self.tell_by_label(from, to, Outcome::Succeeded);
        }
        if pending::needs_approval(&begun) {
            return self.tell_by_label(from, to, Outcome::Waiting);
        }
        output::note(&format!("Next: windlass get clusters {}, kubectl get clusterupdates,machines", self.cluster));
        self.tell_by_label(from, to, Outcome::Begun)
    }

    /// The label, and with it what was reviewed for it: one write, so that nobody begins anything else.
    async fn label(&self, management: &Management, to: &str, dry_run: bool) -> Result<Cluster, client::Error> {
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let reviewed = self.envelope.as_ref().zip(self.release_digest.as_ref());
        let reviewed = reviewed.map(|(envelope, release)| format!("{to} {envelope} {release}"));
        let patch = Patch::Merge(json!({"metadata": {
            "labels": {label::RELEASE_VERSION.name: to},
            "annotations": {annotation::REVIEWED_ENVELOPE.name: reviewed},
        }}));
        let patched = management.api::<Cluster>().patch(self.cluster.as_str(), &parameters, &patch).await;
        patched.map_err(client::Error::while_trying(&format!("upgrade {} to {to}", self.cluster)))
    }

    fn confirm_label(&self, from: &str, to: &str) -> Result<(), Error> {
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), to: to.to_owned(), asked };
        match ask(&format!("Upgrade {} from {from} to {to}?", self.cluster)).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    /// Waits, if that is wanted, until the cluster has its release; whether it was waited for.
    async fn follow_label(&self, management: &Management, to: &str) -> Result<bool, Error> {
        let Some(timeout) = self.patience.timeout() else { return Ok(false) };
        let mut progress = Progress::new(self.cluster.to_string());
        let cluster = || self.cluster.clone();
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster: cluster() }),
            () = tokio::time::sleep(timeout) => Err(Error::TimedOut { cluster: cluster(), after: timeout }),
            ended = self.until_applied(management, to, &mut progress) => ended,
        };
        progress.end();
        ended.map(|()| true)
    }

    async fn until_applied(&self, management: &Management, to: &str, progress: &mut Progress) -> Result<(), Error> {
        let name = self.cluster.as_str();
        let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let clusters = management.api::<Cluster>();
        let mut events = Box::pin(changes(clusters.clone(), named));
        loop {
            let unseen = |source| Error::Unseen { cluster: self.cluster.clone(), source: Box::new(source) };
            let found = clusters.get_opt(name).await.map_err(unseen)?;
            let Some(found) = found else { return Err(Error::Gone { cluster: self.cluster.clone() }) };
            let deployed = found.metadata.annotations.as_ref();
            let deployed = deployed.and_then(|all| all.get(annotation::LAST_DEPLOYED_VERSION.name));
            let applied = applied(&found);
            let is_applied = applied.is_some_and(|it| it.status == "True" && it.message == to);
            if is_applied && deployed.is_some_and(|deployed| deployed == to) {
                return Ok(());
            }
            if let Some(failed) = applied.filter(|it| it.reason == "UpdateFailed") {
                return Err(Error::Failed { cluster: self.cluster.clone(), why: failed.message.clone() });
            }
            let told = applied.filter(|it| it.status != "True").map(|it| it.message.clone());
            progress.tell(&told.unwrap_or_else(|| format!("to {to}")));
            while tokio::time::timeout(HEARTBEAT, events.next()).await.is_err() {
                progress.beat();
            }
        }
    }

    fn tell_by_label(&self, from: &str, to: &str, outcome: Outcome) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        if let Some(format) = self.output {
            let report = LabelUpgradeReport { cluster, from, to, outcome };
            format.tell(&class_cluster_name(cluster), "LabelUpgradeReport", report)?;
            return Ok(ended(outcome));
        }
        output::data(&match outcome {
            Outcome::NothingToDo => format!("cluster {cluster} is asked to be at {to} already"),
            Outcome::Reached => format!("cluster {cluster} is at {to}, as was asked before"),
            Outcome::DryRun => format!("cluster {cluster} upgraded (dry run): {from} to {to}"),
            Outcome::Waiting => format!("cluster {cluster} waits for somebody to approve it: {from} to {to}"),
            Outcome::Begun | Outcome::FirstHop => format!("cluster {cluster} is being upgraded: {from} to {to}"),
            Outcome::Succeeded => format!("cluster {cluster} is upgraded: {from} to {to}"),
        })?;
        Ok(ended(outcome))
    }
}

fn ended(outcome: Outcome) -> Exit {
    if matches!(outcome, Outcome::Waiting) { Exit::Waiting } else { Exit::Done }
}

/// The release that a label names.
fn release(cluster: &Cluster) -> Option<&str> {
    cluster.metadata.labels.as_ref()?.get(label::RELEASE_VERSION.name).map(String::as_str)
}

/// What is said of it.
fn applied(cluster: &Cluster) -> Option<&Condition> {
    ConditionType::ReleaseApplied.among(&cluster.status.as_ref()?.conditions)
}

/// It is not upgraded, or it is not known whether it is.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} is not upgraded: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, to: String, asked: bool },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] std::io::Error),
    #[error("{cluster} cannot be looked at any more; its upgrade goes on")]
    Unseen { cluster: ClusterName, source: Box<kube::Error> },
    #[error("{cluster} is gone")]
    Gone { cluster: ClusterName },
    #[error("the upgrade of {cluster} has failed: {why}")]
    Failed { cluster: ClusterName, why: String },
    #[error("{cluster} has not reached its release within {after:?}; the upgrade goes on")]
    TimedOut { cluster: ClusterName, after: Duration },
    #[error("nobody waits for {cluster} any more; the upgrade goes on")]
    Interrupted { cluster: ClusterName },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NotConfirmed { .. } | Self::Interrupted { .. } => Kind::User,
            Self::Terminal(_)
            | Self::Unseen { .. }
            | Self::Gone { .. }
            | Self::Failed { .. }
            | Self::TimedOut { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotConfirmed { cluster, to, .. } => {
                format!("windlass rehearse {cluster} --to {to}, then windlass upgrade {cluster} --to {to} --yes")
            }
            Self::Terminal(_) => "--yes".to_owned(),
            Self::Gone { .. } => return None,
            Self::Unseen { cluster, .. }
            | Self::Failed { cluster, .. }
            | Self::TimedOut { cluster, .. }
            | Self::Interrupted { cluster } => {
                format!("windlass get clusters {cluster}, kubectl describe clusterupdates")
            }
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Gone { .. } | Self::Failed { .. } => Exit::OperationFailed,
            Self::NotConfirmed { .. } | Self::Terminal(_) | Self::Unseen { .. } => Exit::Failed,
        }
    }
}
