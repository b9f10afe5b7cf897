//! A cluster of a class: the one write that asks for another release, and waiting for what follows from it.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use serde::Serialize;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::ClusterName;
use windlass_api::version::VersionPrefix;
use windlass_plan::bootstrap::course::Course;
use windlass_plan::hook;

use super::{Outcome, Upgrade, tell_warnings};
use crate::ask::{Answer, ask};
use crate::changed::class_cluster_name;
use crate::client::{self, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::progress::{HEARTBEAT, Progress};
use crate::watch::changes;

/// What `upgrade -o` writes of it.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ClassUpgradeReport<'a> {
    cluster: &'a ClusterName,
    from: &'a str,
    to: &'a str,
    outcome: Outcome,
}

impl Upgrade {
    /// Begins it. What the release comes to is for the server to say.
    pub(super) async fn begin_of_class(&self, management: &Management) -> Result<Exit, Failure> {
        if self.envelope.is_some() {
            return Err(Error::NoEnvelope { cluster: self.cluster.clone() }.into());
        }
        let from = self.read(management).await?;
        let tried = self.ask_for(management, true).await?;
        let (from, to) = (release(&from), release(&tried));
        tell_warnings(management);
        if from == to {
            let reached = self.follow_if_wanted(management).await?;
            return self.tell_of_class(&from, &to, if reached { Outcome::Reached } else { Outcome::NothingToDo });
        }
        if self.dry_run {
            return self.tell_of_class(&from, &to, Outcome::DryRun);
        }
        if !self.yes {
            self.confirm(&from, &to)?;
        }
        self.ask_for(management, false).await?;
        tell_warnings(management);
        if self.follow_if_wanted(management).await? {
            return self.tell_of_class(&from, &to, Outcome::Succeeded);
        }
        output::note(&format!("Next: windlass packages {}, kubectl get cluster,machines", self.cluster));
        self.tell_of_class(&from, &to, Outcome::Begun)
    }

    async fn read(&self, management: &Management) -> Result<Cluster, client::Error> {
        let found = management.api::<Cluster>().get(self.cluster.as_str()).await;
        found.map_err(client::Error::while_trying(&format!("read the cluster {}", self.cluster)))
    }

    async fn ask_for(&self, management: &Management, dry_run: bool) -> Result<Cluster, Failure> {
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": {"topology": {"version": self.to.as_str()}}}));
        let patched = management.api::<Cluster>().patch(self.cluster.as_str(), &parameters, &patch).await;
        let attempt = format!("upgrade {} to {}", self.cluster, self.to);
        patched.map_err(|error| match client::Error::while_trying(&attempt)(error) {
            // What admission refuses is about the release, or about the way to it.
            client::Error::Refused { message, code: 422, .. } => {
                Error::Refused { cluster: self.cluster.clone(), to: self.to.clone(), why: message }.into()
            }
            other => other.into(),
        })
    }

    fn confirm(&self, from: &str, to: &str) -> Result<(), Error> {
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), to: to.to_owned(), asked };
        match ask(&format!("Upgrade {} from {from} to {to}?", self.cluster)).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    /// Waits, if that is wanted, until the cluster has its release; whether it was waited for.
    async fn follow_if_wanted(&self, management: &Management) -> Result<bool, Error> {
        let Some(timeout) = self.patience.timeout() else { return Ok(false) };
        let mut progress = Progress::new(self.cluster.to_string());
        let cluster = || self.cluster.clone();
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster: cluster() }),
            () = tokio::time::sleep(timeout) => Err(Error::TimedOut { cluster: cluster(), after: timeout }),
            ended = self.follow(management, &mut progress) => ended,
        };
        progress.end();
        ended.map(|()| true)
    }

    async fn follow(&self, management: &Management, progress: &mut Progress) -> Result<(), Error> {
        let name = self.cluster.as_str();
        let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let (clusters, bootstraps) = (management.api::<Cluster>(), management.api::<ClusterBootstrap>());
        let mut events = select(changes(clusters.clone(), named.clone()), changes(bootstraps.clone(), named));
        loop {
            let unseen = |source| Error::Unseen { cluster: self.cluster.clone(), source: Box::new(source) };
            let cluster = clusters.get_opt(name).await.map_err(unseen)?;
            let Some(cluster) = cluster else { return Err(Error::Gone { cluster: self.cluster.clone() }) };
            let bootstrap = bootstraps.get_opt(name).await.map_err(unseen)?;
            let course = Course { cluster: &cluster, bootstrap: bootstrap.as_ref() };
            if course.reached().is_some() {
                return Ok(());
            }
            let waits = course.waits().into_iter().next();
            progress.tell(&waits.map_or_else(|| "machines follow".to_owned(), |wait| wait.message));
            while tokio::time::timeout(HEARTBEAT, events.next()).await.is_err() {
                progress.beat();
            }
        }
    }

    fn tell_of_class(&self, from: &str, to: &str, outcome: Outcome) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        if let Some(format) = self.output {
            let report = ClassUpgradeReport { cluster, from, to, outcome };
            format.tell(&class_cluster_name(cluster), "ClassUpgradeReport", report)?;
            return Ok(Exit::Done);
        }
        output::data(&match outcome {
            Outcome::NothingToDo => format!("cluster {cluster} is asked to be at {to} already"),
            Outcome::Reached => format!("cluster {cluster} is at {to}, as was asked before"),
            Outcome::DryRun => format!("cluster {cluster} upgraded (dry run): {from} to {to}"),
            Outcome::Begun | Outcome::Waiting | Outcome::FirstHop => {
                format!("cluster {cluster} is being upgraded: {from} to {to}")
            }
            Outcome::Succeeded => format!("cluster {cluster} is upgraded: {from} to {to}"),
        })?;
        Ok(Exit::Done)
    }
}

/// The release of a cluster; where it has none, the version in its topology.
fn release(cluster: &Cluster) -> String {
    let version = || cluster.spec.topology.as_ref().map(|topology| topology.version.clone());
    hook::release(cluster).map(str::to_owned).or_else(version).unwrap_or_else(|| cluster.name_any())
}

/// It is not upgraded, or it is not known whether it is.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} cannot be upgraded to {to}: {why}")]
    Refused { cluster: ClusterName, to: VersionPrefix, why: String },
    #[error("{cluster} is not upgraded: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, to: String, asked: bool },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] std::io::Error),
    #[error("{cluster} is a cluster of a class: Cluster API replaces its machines, and no envelope bounds that")]
    NoEnvelope { cluster: ClusterName },
    #[error("{cluster} cannot be looked at any more; its upgrade goes on")]
    Unseen { cluster: ClusterName, source: Box<kube::Error> },
    #[error("{cluster} is gone")]
    Gone { cluster: ClusterName },
    #[error("{cluster} has not reached its release within {after:?}; the upgrade goes on")]
    TimedOut { cluster: ClusterName, after: Duration },
    #[error("nobody waits for {cluster} any more; the upgrade goes on")]
    Interrupted { cluster: ClusterName },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Refused { .. } | Self::NotConfirmed { .. } | Self::NoEnvelope { .. } | Self::Interrupted { .. } => {
                Kind::User
            }
            Self::Terminal(_) | Self::Unseen { .. } | Self::Gone { .. } | Self::TimedOut { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Refused { cluster, to, .. } => {
                format!("windlass release list, or windlass release path {cluster} --to {to}")
            }
            Self::NotConfirmed { cluster, to, .. } => {
                format!("windlass rehearse {cluster} --to {to}, then windlass upgrade {cluster} --to {to} --yes")
            }
            Self::Terminal(_) => "--yes".to_owned(),
            Self::NoEnvelope { .. } => "the same without --envelope".to_owned(),
            Self::Gone { .. } => return None,
            Self::Unseen { cluster, .. } | Self::TimedOut { cluster, .. } | Self::Interrupted { cluster } => {
                format!("windlass packages {cluster}, kubectl describe clusterbootstrap,cluster {cluster}")
            }
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Refused { .. } => Exit::Refused,
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Gone { .. } => Exit::OperationFailed,
            Self::NotConfirmed { .. } | Self::Terminal(_) | Self::NoEnvelope { .. } | Self::Unseen { .. } => {
                Exit::Failed
            }
        }
    }
}
