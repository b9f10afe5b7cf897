//! How a Cluster is doing: how far it ever was, counts of its machines, and what is said of them together.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{
    Cluster, ClusterInitialization, ClusterStatus, Machine, MachineSet, MachineSetStatus, Progress, VersionCount,
};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::is_true;
use windlass_api::version::KubernetesVersion;

use super::{Descendants, provisioned, summary};
use crate::management::conditions;
use crate::management::context::{Turn, is_control_plane};
use crate::management::ownership::controller;
use crate::management::topology;

/// The status of a Cluster that stays.
pub(super) fn of(turn: &Turn, cluster: &Cluster, parts: &Descendants) -> ClusterStatus {
    let infrastructure = parts.infrastructure.as_deref().filter(|part| provisioned(part));
    let mut status = cluster.status.clone().unwrap_or_default();
    // Both say what was ever reached, and never go back.
    let before = status.initialization.take().unwrap_or_default();
    let reached = ClusterInitialization {
        infrastructure_provisioned: before.infrastructure_provisioned || infrastructure.is_some(),
        control_plane_initialized: before.control_plane_initialized || is_initialized(cluster, parts),
    };
    let phase = match (&cluster.spec.infrastructure_ref, reached.infrastructure_provisioned) {
        (None, _) => "Pending",
        (Some(_), false) => "Provisioning",
        (Some(_), true) => "Provisioned",
    };
    status.phase = Some(phase.to_owned());
    if let Some(infrastructure) = infrastructure {
        let said = infrastructure.status.as_ref().map(|status| status.failure_domains.clone());
        status.failure_domains = said.unwrap_or_default();
    }
    status.control_plane = control_plane(turn, cluster, parts).or(status.control_plane);
    status.workers = workers(parts).or(status.workers);
    for fact in summary::facts(cluster, parts, &reached) {
        conditions::set(&mut status.conditions, fact, cluster.metadata.generation, &turn.now());
    }
    status.initialization = Some(reached);
    let available = summary::available(cluster, &status.conditions);
    conditions::set(&mut status.conditions, available, cluster.metadata.generation, &turn.now());
    status
}

/// The status of a Cluster that goes: what was last known of it, and what it waits for.
pub(super) fn of_going(turn: &Turn, cluster: &Cluster, parts: &Descendants) -> ClusterStatus {
    let mut status = cluster.status.clone().unwrap_or_default();
    status.phase = Some("Deleting".to_owned());
    let fact = summary::deleting(parts);
    conditions::set(&mut status.conditions, fact, cluster.metadata.generation, &turn.now());
    let available = summary::available(cluster, &status.conditions);
    conditions::set(&mut status.conditions, available, cluster.metadata.generation, &turn.now());
    status
}

/// The status as it is written: a list that is empty has to be said to be so, or what was there before would stay.
pub(super) fn on_the_wire(status: &ClusterStatus) -> Value {
    let mut value = json!(status);
    for (part, list) in [("controlPlane", "versions"), ("controlPlane", "upgradePlan"), ("workers", "versions")] {
        if let Some(part) = value.get_mut(part).and_then(Value::as_object_mut) {
            part.entry(list).or_insert(Value::Null);
        }
    }
    value
}

/// Whether the API has answered: whoever rolls the control plane says so; where nobody does, its first node.
fn is_initialized(cluster: &Cluster, parts: &Descendants) -> bool {
    if cluster.spec.control_plane_ref.is_none() {
        let has_node = |machine: &Machine| machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
        return parts.machines.iter().any(|machine| is_control_plane(&machine.metadata) && has_node(machine));
    }
    let reached = parts.control_plane.as_ref().and_then(|object| object.status.as_ref()?.initialization.as_ref());
    reached.is_some_and(|reached| reached.control_plane_initialized)
}

/// How far the control plane is: in the words of who rolls it, or counted where its machines stand for themselves.
fn control_plane(turn: &Turn, cluster: &Cluster, parts: &Descendants) -> Option<Progress> {
    if let Some(object) = &parts.control_plane {
        return Some(rolled(turn, cluster, object));
    }
    if cluster.spec.control_plane_ref.is_some() || cluster.spec.topology.is_some() {
        return None;
    }
    let machines = parts.machines.iter().filter(|machine| is_control_plane(&machine.metadata));
    let mut total = Total::default();
    machines.for_each(|machine| total.add_machine(machine));
    total.progress()
}

/// In the control plane's own words, and what is ahead of it.
fn rolled(turn: &Turn, cluster: &Cluster, object: &KubeadmControlPlane) -> Progress {
    let status = object.status.clone().unwrap_or_default();
    Progress {
        desired_replicas: object.spec.replicas,
        replicas: Some(status.replicas),
        up_to_date_replicas: Some(status.up_to_date_replicas),
        ready_replicas: Some(status.ready_replicas),
        available_replicas: Some(status.available_replicas),
        versions: status.versions,
        upgrade_plan: topology::ahead(turn, cluster, object),
    }
}

/// How far the workers are: all pools, sets and machines that nobody else counts, together.
fn workers(parts: &Descendants) -> Option<Progress> {
    let mut total = Total::default();
    for deployment in &parts.deployments {
        total.add(deployment.spec.replicas, deployment.status.as_ref());
    }
    for set in parts.lone_sets() {
        total.add(set.spec.replicas, set.status.as_ref());
    }
    let machines = parts.machines.iter().filter(|machine| !is_control_plane(&machine.metadata));
    let alone = machines.filter(|machine| controller::<MachineSet>(&machine.metadata).is_none());
    alone.for_each(|machine| total.add_machine(machine));
    total.progress()
}

/// Machines, counted.
#[derive(Default)]
struct Total {
    /// How many owners of machines, and machines without one.
    parts: usize,
    desired: u32,
    counted: MachineSetStatus,
}

impl Total {
    fn add(&mut self, desired: Option<u32>, status: Option<&MachineSetStatus>) {
        self.parts += 1;
        self.desired += desired.unwrap_or(1);
        let (total, Some(status)) = (&mut self.counted, status) else { return };
        total.replicas += status.replicas;
        total.ready_replicas += status.ready_replicas;
        total.available_replicas += status.available_replicas;
        total.up_to_date_replicas += status.up_to_date_replicas;
        for VersionCount { version, replicas } in &status.versions {
            match total.versions.iter_mut().find(|known| known.version == *version) {
                Some(known) => known.replicas += replicas,
                None => total.versions.push(VersionCount { version: version.clone(), replicas: *replicas }),
            }
        }
    }

    /// That there is a machine without an owner counts as the wish for it.
    fn add_machine(&mut self, machine: &Arc<Machine>) {
        let says =
            |type_: &str| u32::from(machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, type_)));
        let version = machine.spec.version.clone();
        let status = MachineSetStatus {
            replicas: 1,
            ready_replicas: says("Ready"),
            available_replicas: says("Available"),
            up_to_date_replicas: says("UpToDate"),
            versions: version.into_iter().map(|version| VersionCount { version, replicas: 1 }).collect(),
            ..MachineSetStatus::default()
        };
        self.add(Some(1), Some(&status));
    }

    /// Nothing where nothing was counted; the lowest version first.
    fn progress(mut self) -> Option<Progress> {
        self.counted.versions.sort_by_key(|each| each.version.parse::<KubernetesVersion>().ok());
        (self.parts > 0).then(|| Progress {
            desired_replicas: Some(self.desired),
            replicas: Some(self.counted.replicas),
            up_to_date_replicas: Some(self.counted.up_to_date_replicas),
            ready_replicas: Some(self.counted.ready_replicas),
            available_replicas: Some(self.counted.available_replicas),
            versions: self.counted.versions,
            upgrade_plan: Vec::new(),
        })
    }
}
