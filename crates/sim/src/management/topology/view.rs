//! What there is of a topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::topology::{MachineDeploymentTopology, Topology};
use windlass_api::kind::wcp::WCPCluster;
use windlass_api::{annotation, label};
use windlass_runtime::key::Key;

use super::blueprint::Blueprint;
use super::upgrade::{ControlPlane, Hold, Pool, State};
use crate::management::context::{Turn, belonging, cluster_name, deleting};
use crate::management::contract;

/// A Cluster that is made from a class, and what has been made of it so far.
pub(super) struct View<'a> {
    pub turn: &'a Turn,
    pub cluster: &'a Cluster,
    pub topology: &'a Topology,
    pub blueprint: &'a Blueprint,
    pub infrastructure: Option<Arc<WCPCluster>>,
    pub control_plane: Option<Arc<KubeadmControlPlane>>,
    /// All that have a name in the topology, or had one.
    pub deployments: Vec<Arc<MachineDeployment>>,
}

impl<'a> View<'a> {
    pub(super) fn of(turn: &'a Turn, cluster: &'a Cluster, topology: &'a Topology, blueprint: &'a Blueprint) -> Self {
        let key = |name: &str| Key { namespace: cluster.metadata.namespace.clone(), name: name.to_owned() };
        let caches = &turn.caches;
        let infrastructure = cluster.spec.infrastructure_ref.as_ref();
        let control_plane = cluster.spec.control_plane_ref.as_ref();
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let mut deployments = belonging(&caches.machine_deployments, &cluster.metadata, name);
        deployments
            .retain(|deployment| cluster_name(&deployment.metadata) == Some(name) && pool_name(deployment).is_some());
        Self {
            turn,
            cluster,
            topology,
            blueprint,
            infrastructure: infrastructure.and_then(|part| caches.cluster_infrastructures.get(&key(&part.name))),
            control_plane: control_plane.and_then(|part| caches.control_planes.get(&key(&part.name))),
            deployments,
        }
    }

    /// The deployment of a pool.
    pub(super) fn deployment(&self, pool: &str) -> Option<&Arc<MachineDeployment>> {
        let ours = self.deployments.iter().filter(|deployment| !deleting(&deployment.metadata));
        ours.into_iter().find(|deployment| pool_name(deployment) == Some(pool))
    }

    /// What versions are decided by.
    pub(super) fn state(&self) -> State {
        let annotations = self.cluster.metadata.annotations.clone().unwrap_or_default();
        let control_plane = self
            .control_plane
            .as_ref()
            .map(|seen| ControlPlane { version: seen.spec.version.clone(), state: contract::state(seen) });
        let concurrency = annotation::UPGRADE_CONCURRENCY.get(&annotations).ok().flatten();
        State {
            target: self.topology.version.clone(),
            control_plane,
            pools: self.topology.workers.machine_deployments.iter().map(|pool| self.pool(pool)).collect(),
            concurrency: concurrency.and_then(|count| usize::try_from(count.get()).ok()).unwrap_or(1),
            holds: annotation::holds(&annotations, annotation::UPGRADE_HOLD_PREFIX)
                .map(|(key, _)| key.to_owned())
                .collect(),
            pending: self.pending_hooks().into_iter().map(str::to_owned).collect(),
            stepping: annotation::UPGRADE_STEP.is_in(&annotations),
            replies: BTreeMap::new(),
            offered: self.blueprint.class.spec.kubernetes_versions.clone(),
        }
    }

    fn pool(&self, pool: &MachineDeploymentTopology) -> Pool {
        let deployment = self.deployment(&pool.name);
        let annotations = pool.metadata.as_ref().map(|metadata| metadata.annotations.clone()).unwrap_or_default();
        Pool {
            name: deployment.and_then(|seen| seen.metadata.name.clone()).unwrap_or_else(|| pool.name.clone()),
            version: deployment.and_then(|seen| seen.spec.template.spec.version.clone()),
            upgrading: deployment.is_some_and(|seen| self.is_upgrading(seen)),
            hold: match () {
                () if annotation::HOLD_UPGRADE_SEQUENCE.is_in(&annotations) => Hold::Sequence,
                () if annotation::DEFER_UPGRADE.is_in(&annotations) => Hold::Defer,
                () => Hold::None,
            },
        }
    }

    /// Whether some machine of a deployment has another version than it should.
    fn is_upgrading(&self, deployment: &MachineDeployment) -> bool {
        let wanted = &deployment.spec.template.spec.version;
        let machines = belonging(&self.turn.caches.machines, &deployment.metadata, &deployment.spec.cluster_name);
        machines.iter().any(|machine| {
            let of = machine.metadata.labels.as_ref().and_then(|labels| labels.get(label::DEPLOYMENT_NAME.name));
            of == deployment.metadata.name.as_ref() && machine.spec.version != *wanted
        })
    }

    /// The questions that are still to be asked about the Cluster.
    pub(super) fn pending_hooks(&self) -> Vec<&str> {
        let annotations = self.cluster.metadata.annotations.as_ref();
        let text = annotations.and_then(|annotations| annotations.get(annotation::PENDING_HOOKS.name));
        text.map(|text| text.split(',').filter(|hook| !hook.is_empty()).collect()).unwrap_or_default()
    }
}

/// The name that a deployment has in its topology.
fn pool_name(deployment: &MachineDeployment) -> Option<&str> {
    let labels = deployment.metadata.labels.as_ref()?;
    labels.get(label::TOPOLOGY_POOL.name).filter(|_| label::TOPOLOGY_OWNED.is_in(labels)).map(String::as_str)
}
