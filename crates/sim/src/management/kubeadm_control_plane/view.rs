//! What there is of a control plane: its machines, why each is not as it should be, and how their components are.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::control_plane::KubeadmControlPlane;

use super::health::{self, Sight};
use super::{outdated, wire};
use crate::management::conditions::Fact;
use crate::management::context::{Error, Turn, belonging, cluster_name, deleting};
use crate::management::ownership::is_owned_by;

/// A control plane.
pub(super) struct View<'a> {
    pub object: &'a KubeadmControlPlane,
    pub cluster: &'a Cluster,
    /// What kubeadm is to be told, as it is on the wire.
    pub wish: Arc<Value>,
    /// Its machines, the oldest first.
    pub replicas: Vec<Replica>,
    pub sight: Sight,
}

/// A machine of it.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    pub machine: Arc<Machine>,
    /// Why it has to be replaced.
    pub outdated: Vec<String>,
    /// How its components are, as conditions.
    pub components: Vec<Fact>,
}

impl<'a> View<'a> {
    /// `None` if the control plane has changed since it was seen.
    pub(super) async fn of(
        turn: &Turn,
        object: &'a KubeadmControlPlane,
        cluster: &'a Cluster,
    ) -> Result<Option<Self>, Error> {
        let Some(wish) = wire::wish(turn, object).await? else { return Ok(None) };
        let machines = machines(turn, object);
        // Before the first machine there is nothing to be asked.
        let sight = if machines.is_empty() { Sight::Unreachable } else { health::look(turn, cluster).await? };
        let mut replicas = Vec::new();
        for machine in machines {
            let outdated = outdated::reasons(turn, object, &wish, &machine).await?;
            let components = sight.of(&machine);
            replicas.push(Replica { machine, outdated, components });
        }
        Ok(Some(Self { object, cluster, wish, replicas, sight }))
    }

    /// How many machines there should be.
    pub(super) fn desired(&self) -> usize {
        usize::try_from(self.object.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX)
    }

    /// How many more there may be while they are replaced: one, or none.
    pub(super) fn surge(&self) -> usize {
        let strategy = self.object.spec.rollout.as_ref().and_then(|rollout| rollout.strategy.as_ref());
        let surge =
            strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.max_surge.as_ref()?.of_rounded_up(1));
        usize::from(surge != Some(0))
    }

    /// The version that a topology wants and that has not come to the control plane yet.
    pub(super) fn pending_version(&self) -> Option<&str> {
        let topology = self.cluster.spec.topology.as_ref()?;
        let step = self.cluster.metadata.annotations.as_ref().and_then(|all| all.get(annotation::UPGRADE_STEP.name));
        let version = step.map_or(topology.version.as_str(), String::as_str);
        (version != self.object.spec.version).then_some(version)
    }

    /// The machines that have to be replaced. Those that go already are as good as replaced.
    pub(super) fn outdated(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| !replica.outdated.is_empty() && !replica.leaves())
    }

    /// Whether its API has ever answered.
    pub(super) fn initialized(&self) -> bool {
        let status = self.object.status.as_ref().and_then(|status| status.initialization.as_ref());
        status.is_some_and(|reached| reached.control_plane_initialized) || self.sight.begun()
    }
}

/// The machines of a control plane, the oldest first.
pub(super) fn machines(turn: &Turn, object: &KubeadmControlPlane) -> Vec<Arc<Machine>> {
    let cluster = cluster_name(&object.metadata).unwrap_or_default();
    let all = belonging(&turn.caches.machines, &object.metadata, cluster);
    let mut ours: Vec<_> = all.into_iter().filter(|machine| is_owned_by(&machine.metadata, object)).collect();
    let born = |machine: &Machine| machine.metadata.creation_timestamp.as_ref().map(|at| at.0);
    ours.sort_by_key(|machine| (born(machine), machine.metadata.name.clone()));
    ours
}

impl Replica {
    pub(super) fn name(&self) -> &str {
        self.machine.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn node(&self) -> Option<&str> {
        let node = self.machine.status.as_ref()?.node_ref.as_ref()?;
        Some(node.name.as_str())
    }

    /// Whether it is on its way out.
    pub(super) fn leaves(&self) -> bool {
        deleting(&self.machine.metadata)
    }

    /// Where it is.
    pub(super) fn domain(&self) -> Option<&str> {
        self.machine.spec.failure_domain.as_deref()
    }

    /// Whether somebody wants it to be the next to go.
    pub(super) fn is_marked(&self) -> bool {
        self.machine.metadata.annotations.as_ref().is_some_and(|all| annotation::DELETE_MACHINE.is_in(all))
    }

    /// What is wrong with its components.
    pub(super) fn unhealthy(&self) -> impl Iterator<Item = &Fact> {
        self.components.iter().filter(|fact| !fact.holds())
    }
}
