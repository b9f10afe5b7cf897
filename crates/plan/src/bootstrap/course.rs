//! How far a cluster of a class is: Cluster API says it of its machines, and its `ClusterBootstrap` of its packages.

use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Progress};
use windlass_api::kind::cluster_update::WaitingFor;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::{Condition, condition};

use crate::hook;
use crate::resolve::hold::Held;
use crate::step::Stage;

/// A cluster and its packages, as they are at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its packages, if they are told of.
    pub bootstrap: Option<&'a ClusterBootstrap>,
}

impl<'a> Course<'a> {
    /// The release that it has: it is as it was asked to be when its packages are those of its release and well, Cluster API has
    /// nothing left to do, and nobody holds it.
    pub fn reached(&self) -> Option<&'a str> {
        let release = hook::release(self.cluster)?;
        let held = Held::of(self.cluster);
        let is_going = self.cluster.metadata.deletion_timestamp.is_some();
        let is_done =
            !is_going && held.hold.is_none() && !held.paused && self.packages_are(release) && self.is_rolled();
        is_done.then_some(release)
    }

    fn packages_are(&self, release: &str) -> bool {
        let status = self.bootstrap.and_then(|bootstrap| bootstrap.status.as_ref());
        status.is_some_and(|status| {
            status.resolved_tkr.as_deref() == Some(release)
                && condition(&status.conditions, ConditionType::PackagesReady.as_str()).is_some_and(is_true)
        })
    }

    /// Cluster API has seen the latest wish, and all machines are there and as they should be.
    fn is_rolled(&self) -> bool {
        let Some(status) = &self.cluster.status else { return false };
        let all = |part: &Progress| {
            let counts = [part.replicas, part.up_to_date_replicas, part.available_replicas];
            counts.iter().all(|count| count.unwrap_or_default() == part.desired_replicas.unwrap_or_default())
        };
        let is_of_now = |it: &Condition| it.observed_generation == self.cluster.metadata.generation;
        let topology = condition(&status.conditions, ConditionType::TopologyReconciled.as_str());
        topology.is_some_and(|it| is_true(it) && is_of_now(it))
            && [&status.control_plane, &status.workers].into_iter().flatten().all(all)
    }

    /// What is in the way: packages, then what Cluster API says.
    pub fn waits(&self) -> Vec<WaitingFor> {
        let packages = self.bootstrap.and_then(|bootstrap| bootstrap.status.as_ref());
        let conditions = packages.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let stalled = condition(conditions, ConditionType::Stalled.as_str()).filter(|it| is_true(it));
        let ready = condition(conditions, ConditionType::PackagesReady.as_str()).filter(|it| !is_true(it));
        let of_packages = stalled.or(ready);
        let of_machines = self.cluster.status.as_ref().and_then(|status| {
            let of = |type_: ConditionType| condition(&status.conditions, type_.as_str());
            let found = [of(ConditionType::TopologyReconciled), of(ConditionType::Available)];
            found.into_iter().flatten().find(|it| !is_true(it) && !it.message.is_empty())
        });
        let of_packages = of_packages.map(|it| self.wait(Stage::Packages, "ClusterBootstrap", it));
        let of_machines = of_machines.map(|it| self.wait(Stage::ControlPlane, "Cluster", it));
        of_packages.into_iter().chain(of_machines).collect()
    }

    fn wait(&self, stage: Stage, kind: &str, it: &Condition) -> WaitingFor {
        WaitingFor {
            stage: stage.to_string(),
            reason: it.reason.clone(),
            object: format!("{kind}/{}", self.cluster.metadata.name.as_deref().unwrap_or_default()),
            message: it.message.clone(),
            since: Some(it.last_transition_time.clone()),
            ..WaitingFor::default()
        }
    }
}

fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}
