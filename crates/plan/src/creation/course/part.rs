//! Each thing that is awaited, read from the objects that tell of it.

use windlass_api::condition::ConditionType;
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, Progress};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::topology::MachineDeploymentTopology;
use windlass_api::label;

use super::{Awaited, Thing};
use crate::bootstrap::{Listed, listed, title};

fn part(thing: Thing, came: bool, how: impl Into<String>) -> Awaited {
    Awaited { thing, came, how: how.into() }
}

/// Whether a condition is true.
pub(super) fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// The API has answered once.
pub(super) fn initialized(cluster: &Cluster, machines: &[Machine]) -> Awaited {
    let status = cluster.status.clone().unwrap_or_default();
    let reached = status.initialization.unwrap_or_default();
    if reached.control_plane_initialized {
        return part(Thing::Initialized, true, "its API answers");
    }
    let topology = ConditionType::TopologyReconciled.as_str();
    let refused = status.conditions.iter().find(|condition| condition.type_ == topology && condition.status == "False");
    let how = if cluster.spec.paused == Some(true) {
        "somebody has paused the Cluster: spec.paused is true".to_owned()
    } else if let Some(refused) = refused.filter(|refused| !refused.message.is_empty()) {
        format!("{topology}: {}", refused.message)
    } else if cluster.spec.infrastructure_ref.is_none() {
        "Cluster API has not made its objects from its class yet".to_owned()
    } else if !reached.infrastructure_provisioned {
        "its infrastructure is being made".to_owned()
    } else {
        let first = machines.iter().find(|machine| is_of_control_plane(machine));
        first.map_or_else(|| "its control plane has no machine yet".to_owned(), how_is)
    };
    part(Thing::Initialized, false, how)
}

fn is_of_control_plane(machine: &Machine) -> bool {
    machine.metadata.labels.as_ref().is_some_and(|labels| label::CONTROL_PLANE.is_in(labels))
}

fn how_is(machine: &Machine) -> String {
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let status = machine.status.clone().unwrap_or_default();
    let phase = status.phase.as_deref().unwrap_or("Pending");
    let causes = [ConditionType::BootstrapConfigReady, ConditionType::InfrastructureReady];
    let is_cause = |it: &&Condition| it.status == "False" && causes.iter().any(|cause| it.type_ == cause.as_str());
    let cause = status.conditions.iter().filter(is_cause).find(|cause| !cause.message.is_empty());
    let cause = cause.map(|cause| format!(": {}", cause.message)).unwrap_or_default();
    format!("its machine {name} is {phase}{cause}")
}

/// All machines of the control plane are ready.
pub(super) fn control_plane(cluster: &Cluster) -> Awaited {
    let asked = cluster.spec.topology.as_ref().and_then(|topology| topology.control_plane.replicas);
    let progress = cluster.status.as_ref().and_then(|status| status.control_plane.clone()).unwrap_or_default();
    let Progress { desired_replicas, ready_replicas, up_to_date_replicas, .. } = progress;
    let wanted = asked.or(desired_replicas).unwrap_or(1);
    let ready = ready_replicas.unwrap_or_default();
    let current = up_to_date_replicas.unwrap_or_default();
    let came = wanted > 0 && ready == wanted && current == wanted && desired_replicas == Some(wanted);
    part(Thing::ControlPlane, came, format!("{ready} of {wanted} machines ready"))
}

/// There is a way into it.
pub(super) fn kubeconfig(cluster: &Cluster, there: bool) -> Awaited {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let how = if there { "" } else { "there is no " };
    part(Thing::Kubeconfig, there, format!("{how}Secret {name}-kubeconfig"))
}

/// The pools of a topology, and how many machines each is to have: by the topology, or by whoever sizes it.
fn wanted(pool: &MachineDeploymentTopology, made: Option<&MachineDeployment>) -> Option<u32> {
    pool.replicas.or_else(|| made.and_then(|made| made.spec.replicas))
}

/// Every machine that is there has become a node, and there are as many as the cluster asks for.
pub(super) fn nodes(cluster: &Cluster, machines: &[Machine]) -> Awaited {
    let has_node = |machine: &&Machine| machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
    let nodes = machines.iter().filter(has_node).count();
    let topology = cluster.spec.topology.clone().unwrap_or_default();
    let workers: u32 = topology.workers.machine_deployments.iter().filter_map(|pool| pool.replicas).sum();
    let asked = topology.control_plane.replicas.unwrap_or(1) + workers;
    let wanted = machines.len().max(asked as usize);
    let without = machines.iter().find(|machine| !has_node(machine)).map(how_is);
    let without = without.map(|how| format!("; {how}")).unwrap_or_default();
    part(Thing::Nodes, nodes == wanted, format!("{nodes} of {wanted}{without}"))
}

/// Each pool of the topology.
pub(super) fn pools<'a>(
    cluster: &'a Cluster,
    made: &'a [MachineDeployment],
) -> impl Iterator<Item = Awaited> + use<'a> {
    let pools = cluster.spec.topology.iter().flat_map(|topology| &topology.workers.machine_deployments);
    pools.map(|pool| {
        let is_it = |made: &&MachineDeployment| {
            let labels = made.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(label::TOPOLOGY_POOL.name)) == Some(&pool.name)
        };
        let made = made.iter().find(is_it);
        let status = made.and_then(|made| made.status.clone());
        let (Some(status), Some(wanted)) = (status, wanted(pool, made)) else {
            return part(Thing::Pool(pool.name.clone()), false, "it has no machines yet");
        };
        let counts = [status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas];
        let current = status.observed_generation == made.and_then(|made| made.metadata.generation);
        let came = current && counts.iter().all(|count| *count == wanted);
        let ready = status.ready_replicas.min(status.available_replicas);
        part(Thing::Pool(pool.name.clone()), came, format!("{ready} of {wanted} machines ready"))
    })
}

/// Each package that the cluster gets.
pub(super) fn packages(cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>) -> Vec<Awaited> {
    let Some(bootstrap) = bootstrap else {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        return vec![part(Thing::Packages, false, format!("there is no ClusterBootstrap {name} yet"))];
    };
    let release = cluster.metadata.labels.as_ref().and_then(|labels| labels.get(label::RELEASE.name));
    let status = bootstrap.status.clone().unwrap_or_default();
    if status.resolved_tkr.as_ref() != release {
        let release = release.map_or("a release", String::as_str);
        return vec![part(Thing::Packages, false, format!("those of {release} are not in its ClusterBootstrap yet"))];
    }
    match listed(&bootstrap.spec.packages) {
        Ok(listed) => listed.iter().map(|listed| package(listed, &status.conditions)).collect(),
        Err(why) => vec![part(Thing::Packages, false, why.to_string())],
    }
}

fn package(listed: &Listed, conditions: &[Condition]) -> Awaited {
    let title = title(listed.short());
    let of = |state: ConditionType| {
        let type_ = format!("{title}-{}", state.as_str());
        conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    let version = listed.version();
    let thing = Thing::Package(listed.short().to_owned());
    if of(ConditionType::ReconcileSucceeded).is_some() {
        return part(thing, true, version);
    }
    let how = match of(ConditionType::ReconcileFailed) {
        Some(failed) if failed.message.is_empty() => format!("{version} could not be brought in"),
        Some(failed) => format!("{version} could not be brought in: {}", failed.message),
        None if of(ConditionType::Reconciling).is_some() => format!("{version} is being brought in"),
        None => format!("{version} is not installed yet"),
    };
    part(thing, false, how)
}
