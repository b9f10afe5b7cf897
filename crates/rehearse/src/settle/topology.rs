//! A Cluster of a class: Cluster API says how far its machines are, and its `ClusterBootstrap` how far its packages.

use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Progress};
use windlass_api::kind::cluster_update::WaitingFor;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::{Condition, condition};
use windlass_api::name::NamespacedName;
use windlass_plan::hook;
use windlass_plan::resolve::hold::Held;
use windlass_plan::step::Stage;
use windlass_sim::world::World;

use super::{Look, Waits, read};
use crate::rehearsal::Verdict;

/// A cluster and its packages, as they are at a moment.
struct Seen {
    cluster: Cluster,
    bootstrap: Option<ClusterBootstrap>,
}

pub(super) fn look(world: &World, name: &NamespacedName) -> Look {
    let (namespace, name) = (name.namespace.as_str(), name.name.as_str());
    let Some(cluster) = read(world, namespace, name) else {
        return Look { end: Some(Verdict::Gone), waits: Waits::default() };
    };
    let seen = Seen { cluster, bootstrap: read(world, namespace, name) };
    Look { end: seen.end(), waits: seen.waits() }
}

impl Seen {
    /// A cluster is as it was asked to be when its packages are those of its release and well, Cluster API has nothing left to do,
    /// and nobody holds it.
    fn end(&self) -> Option<Verdict> {
        let release = hook::release(&self.cluster)?;
        let held = Held::of(&self.cluster);
        let is_going = self.cluster.metadata.deletion_timestamp.is_some();
        let is_done =
            !is_going && held.hold.is_none() && !held.paused && self.packages_are(release) && self.is_rolled();
        is_done.then(|| Verdict::Reached { distribution: release.to_owned() })
    }

    fn packages_are(&self, release: &str) -> bool {
        let status = self.bootstrap.as_ref().and_then(|bootstrap| bootstrap.status.as_ref());
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
    fn waits(&self) -> Waits {
        let packages = self.bootstrap.as_ref().and_then(|bootstrap| bootstrap.status.as_ref());
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
        let on: Vec<WaitingFor> = of_packages.into_iter().chain(of_machines).collect();
        Waits { short: on.first().map(|wait| wait.message.clone()), on }
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
