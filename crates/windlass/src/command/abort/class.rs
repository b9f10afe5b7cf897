//! A cluster of a class: its upgrade is given up while no machine is new, and its packages are taken back.
//!
//! Here is only said that it is wanted, and looked at what comes of it: the controllers hold the cluster, judge, and ask for the
//! release before. Whoever is interrupted types the same again.

use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ListParams, Patch};
use serde::Serialize;
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::ClusterName;
use windlass_api::{annotation, label};
use windlass_controller::control_plane;
use windlass_plan::bootstrap::abort::{Back, Refused, back};
use windlass_plan::bootstrap::course::Course;
use windlass_plan::hook;
use windlass_plan::resolve::hold::Held;

use super::{Abort, parameters};
use crate::changed::class_cluster_name;
use crate::client::{self, Management};
use crate::course;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::progress::{HEARTBEAT, Progress};

/// What `abort -o` writes of it.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassAbortReport<'a> {
    cluster: &'a ClusterName,
    /// The release that was given up; none where that was done before.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<&'a str>,
    /// What the cluster keeps.
    back_to: &'a str,
}

/// The release that is given up, unless that was done before, and the one that the cluster keeps.
type Ends<'a> = (Option<&'a str>, &'a str);

impl Abort {
    /// Orders it, and waits until the cluster has its release again.
    pub(super) async fn run_of_class(&self, management: &Management) -> Result<Exit, Failure> {
        if self.adopt {
            return Err(Error::NothingToAdopt { cluster: self.cluster.clone() }.into());
        }
        let cluster = self.read(management).await?;
        match self.judge(management, &cluster).await? {
            Ok(back) => {
                self.confirm(&format!("Give up the upgrade to {} of", back.from), back.release.as_str())?;
                self.order_of_class(management, &back).await?;
                self.end_of_class(management, (Some(back.from.as_str()), back.release.as_str())).await
            }
            // It was given up, and packages are on their way back.
            Err(Refused::Nothing { release, .. }) if Held::of(&cluster).hold.is_some() => {
                self.end_of_class(management, (None, release.as_str())).await
            }
            Err(refused) => Err(Error::Refused(refused).into()),
        }
    }

    async fn read(&self, management: &Management) -> Result<Cluster, client::Error> {
        let found = management.api::<Cluster>().get(self.cluster.as_str()).await;
        found.map_err(client::Error::while_trying(&format!("read the cluster {}", self.cluster)))
    }

    /// What it would go back to, as far as it can be seen from here.
    async fn judge(&self, management: &Management, cluster: &Cluster) -> Result<Result<Back, Refused>, client::Error> {
        let version = control_plane::version(&management.client, cluster).await;
        let version = version.map_err(client::Error::while_trying("read the control plane"))?;
        let labels = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, self.cluster));
        let machines = management.api::<Machine>().list(&labels).await;
        let machines = machines.map_err(client::Error::while_trying("list the machines"))?;
        Ok(back(cluster, version.as_ref(), &machines.items))
    }

    async fn order_of_class(&self, management: &Management, back: &Back) -> Result<(), client::Error> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation::ABORT.name: back.from.as_str()}}}));
        let api = management.api::<Cluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters(), &patch).await;
        let attempt = format!("give up the upgrade of {} to {}", self.cluster, back.from);
        patched.map(drop).map_err(client::Error::while_trying(&attempt))
    }

    async fn end_of_class(&self, management: &Management, ends: Ends<'_>) -> Result<Exit, Failure> {
        let mut progress = Progress::new(self.cluster.to_string());
        let (cluster, after) = (self.cluster.clone(), self.timeout);
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(Error::Interrupted { cluster }.into()),
            () = tokio::time::sleep(after) => Err(Error::TimedOut { cluster, after }.into()),
            ended = self.follow_of_class(management, ends, &mut progress) => ended,
        };
        progress.end();
        ended?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        self.tell_of_class(ends)
    }

    async fn follow_of_class(
        &self,
        management: &Management,
        (given_up, back_to): Ends<'_>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut events = course::events(management, &self.cluster);
        loop {
            let cluster = self.read(management).await?;
            let release = hook::release(&cluster).unwrap_or_default();
            let annotations = cluster.metadata.annotations.as_ref();
            let is_ordered = annotations.is_some_and(|annotations| annotation::ABORT.is_in(annotations));
            if Some(release) == given_up && !is_ordered {
                // It was found to be too late, and the order is no more.
                let why = self.judge(management, &cluster).await?.err();
                let forgotten = || Error::Forgotten { cluster: self.cluster.clone() };
                return Err(why.map_or_else(forgotten, Error::Refused).into());
            }
            if release != back_to && Some(release) != given_up {
                let (cluster, release) = (self.cluster.clone(), release.to_owned());
                return Err(Error::Another { cluster, release }.into());
            }
            let bootstrap = management.api::<ClusterBootstrap>().get_opt(self.cluster.as_str()).await;
            let bootstrap = bootstrap.map_err(client::Error::while_trying("read the packages of the cluster"))?;
            let course = Course { cluster: &cluster, bootstrap: bootstrap.as_ref() };
            if course.is_back(back_to) {
                return Ok(());
            }
            let waits = course.waits().into_iter().next();
            progress.tell(&waits.map_or_else(|| "packages go back".to_owned(), |wait| wait.message));
            while tokio::time::timeout(HEARTBEAT, events.next()).await.is_err() {
                progress.beat();
            }
        }
    }

    fn tell_of_class(&self, (given_up, back_to): Ends<'_>) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        if let Some(format) = self.output {
            let report = ClassAbortReport { cluster, given_up, back_to };
            format.tell(&class_cluster_name(cluster), "ClassAbortReport", report)?;
            return Ok(Exit::Done);
        }
        output::data(&match given_up {
            Some(given_up) => {
                format!("the upgrade of {cluster} to {given_up} is given up: the cluster keeps {back_to}")
            }
            None => format!("the upgrade of {cluster} was given up before: the cluster keeps {back_to}"),
        })?;
        output::note(&format!("Next: windlass status {cluster}"));
        Ok(Exit::Done)
    }
}

/// It is not given up, or it is not known whether it is.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Refused(Refused),
    #[error("{cluster} is a cluster of a class: none of its upgrades can be without somebody who leads it")]
    NothingToAdopt { cluster: ClusterName },
    #[error("somebody has taken back the order to give up the upgrade of {cluster}")]
    Forgotten { cluster: ClusterName },
    #[error("{cluster} is asked for {release} by now")]
    Another { cluster: ClusterName, release: String },
    #[error("{cluster} does not have its release again within {after:?}; the order stays")]
    TimedOut { cluster: ClusterName, after: Duration },
    #[error("nobody waits any more for {cluster} to have its release again; the order stays")]
    Interrupted { cluster: ClusterName },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::TimedOut { .. } => Kind::Environment,
            Self::Refused(_)
            | Self::NothingToAdopt { .. }
            | Self::Forgotten { .. }
            | Self::Another { .. }
            | Self::Interrupted { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Refused(refused) => refused.way_out(),
            Self::NothingToAdopt { .. } => "the same without --adopt".to_owned(),
            Self::Forgotten { cluster } | Self::Another { cluster, .. } => format!("windlass status {cluster}"),
            Self::TimedOut { cluster, .. } => {
                format!("windlass why {cluster}; windlass abort {cluster}, which goes on where it stopped")
            }
            Self::Interrupted { cluster } => format!("windlass abort {cluster}, which goes on where it stopped"),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Refused(Refused::TooLate { .. } | Refused::Unknown { .. }) => Exit::Refused,
            Self::TimedOut { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Refused(Refused::Nothing { .. })
            | Self::NothingToAdopt { .. }
            | Self::Forgotten { .. }
            | Self::Another { .. } => Exit::Failed,
        }
    }
}
