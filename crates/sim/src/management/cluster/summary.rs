//! What a Cluster says of all that belongs to it together, with the conditions and reasons of Cluster API.
//!
//! Of what a part says the first line is repeated: the rest changes with every step of every machine, and is in the part.

use std::sync::Arc;

use windlass_api::condition::ConditionStatus;
use windlass_api::kind::cluster_api::{Cluster, ClusterInitialization, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::{Condition, condition, is_true};
use windlass_api::reason::TopologyReason;

use super::Descendants;
use crate::management::conditions::Fact;
use crate::management::context::is_control_plane;
use crate::management::machine_set::fact;
use crate::management::ownership::controller;
use crate::management::write::Watched;

const AVAILABLE: &str = "Available";
const INFRASTRUCTURE: &str = "InfrastructureReady";
const CONTROL_PLANE: &str = "ControlPlaneAvailable";
const WORKERS: &str = "WorkersAvailable";
const TOPOLOGY: &str = "TopologyReconciled";
const DELETING: &str = "Deleting";

/// What a part says of something.
struct Said<'a> {
    /// The part, as people call it.
    who: String,
    /// What it says; nothing where it has not said anything yet.
    what: Option<&'a Condition>,
}

impl<'a> Said<'a> {
    fn by<K: Watched>(object: &'a K, type_: &str) -> Self {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let what = object.conditions().and_then(|all| condition(all, type_));
        Self { who: format!("{} {name}", K::kind(&())), what }
    }
}

/// How the same condition of several parts becomes one.
struct Merge {
    /// The status of a part that there is something to tell of.
    telling: ConditionStatus,
    /// The status if there is nothing to tell of any.
    otherwise: ConditionStatus,
    /// The reasons: there is something to tell, somebody cannot say, there is nothing.
    reasons: [&'static str; 3],
}

impl Merge {
    /// Of a condition that should hold.
    const fn wanted(reasons: [&'static str; 3]) -> Self {
        Self { telling: ConditionStatus::False, otherwise: ConditionStatus::True, reasons }
    }

    /// Of a condition that holds while something moves.
    const fn moving(reasons: [&'static str; 3]) -> Self {
        Self { telling: ConditionStatus::True, otherwise: ConditionStatus::False, reasons }
    }

    fn of(&self, type_: &'static str, source: &str, parts: &[Said<'_>]) -> Fact {
        let (mut told, mut unknown) = (Vec::new(), Vec::new());
        for Said { who, what } in parts {
            match what {
                None => unknown.push(line(who, &format!("Condition {source} not yet reported"))),
                Some(said) if said.status == self.telling.as_str() => told.push(line(who, brief(&said.message))),
                Some(said) if said.status == self.otherwise.as_str() => {}
                Some(said) => unknown.push(line(who, brief(&said.message))),
            }
        }
        self.fact(type_, told, unknown)
    }

    fn fact(&self, type_: &'static str, told: Vec<String>, unknown: Vec<String>) -> Fact {
        let [telling, not_known, nothing] = self.reasons;
        let (status, reason) = match (told.is_empty(), unknown.is_empty()) {
            (false, _) => (self.telling, telling),
            (true, false) => (ConditionStatus::Unknown, not_known),
            (true, true) => (self.otherwise, nothing),
        };
        Fact { type_, status, reason, message: [told, unknown].concat().join("\n") }
    }
}

/// The first line of a message, without the announcement of what follows.
fn brief(message: &str) -> &str {
    let first = message.lines().next().unwrap_or_default();
    first.strip_suffix(" because:").unwrap_or(first)
}

/// A line of a list. What is a list itself goes below.
fn line(who: &str, message: &str) -> String {
    match message {
        "" => format!("* {who}: No additional info provided"),
        list if list.starts_with("* ") => format!("* {who}:\n  {}", list.replace('\n', "\n  ")),
        text => format!("* {who}: {text}"),
    }
}

/// All but what follows from them.
pub(super) fn facts(cluster: &Cluster, parts: &Descendants, reached: &ClusterInitialization) -> Vec<Fact> {
    let (of_control_plane, workers): (Vec<_>, Vec<_>) =
        parts.machines.iter().cloned().partition(|machine| is_control_plane(&machine.metadata));
    vec![
        infrastructure_ready(cluster, parts, reached),
        initialized(reached),
        control_plane_available(cluster, parts, &of_control_plane),
        workers_available(parts),
        fact::machines_ready(&of_control_plane).named("ControlPlaneMachinesReady"),
        fact::machines_ready(&workers).named("WorkerMachinesReady"),
        up_to_date(&of_control_plane).named("ControlPlaneMachinesUpToDate"),
        up_to_date(&workers).named("WorkerMachinesUpToDate"),
        moving(parts, "RollingOut", ["RollingOut", "RollingOutUnknown", "NotRollingOut"]),
        moving(parts, "ScalingUp", ["ScalingUp", "ScalingUpUnknown", "NotScalingUp"]),
        moving(parts, "ScalingDown", ["ScalingDown", "ScalingDownUnknown", "NotScalingDown"]),
        fact::remediating(&parts.machines),
        fact::not_deleting(),
    ]
}

fn infrastructure_ready(cluster: &Cluster, parts: &Descendants, reached: &ClusterInitialization) -> Fact {
    match (&cluster.spec.infrastructure_ref, &parts.infrastructure) {
        _ if reached.infrastructure_provisioned => Fact::yes(INFRASTRUCTURE, "Ready"),
        (Some(part), None) => Fact::no(INFRASTRUCTURE, "DoesNotExist", format!("{} does not exist", part.kind)),
        _ => Fact::no(INFRASTRUCTURE, "NotReady", "the infrastructure is not provisioned yet"),
    }
}

fn initialized(reached: &ClusterInitialization) -> Fact {
    if reached.control_plane_initialized {
        Fact::yes("ControlPlaneInitialized", "Initialized")
    } else {
        Fact::no("ControlPlaneInitialized", "NotInitialized", "no machine of the control plane has a node yet")
    }
}

/// Whether the control plane can be relied on: in the words of who rolls it, or because one of its machines can be, where they
/// stand for themselves.
fn control_plane_available(cluster: &Cluster, parts: &Descendants, machines: &[Arc<Machine>]) -> Fact {
    if let Some(object) = &parts.control_plane {
        let said = object.status.as_ref().and_then(|status| condition(&status.conditions, AVAILABLE));
        return match said {
            Some(said) if said.status == "True" => Fact::yes(CONTROL_PLANE, "Available"),
            Some(said) => Fact::no(CONTROL_PLANE, "NotAvailable", said.message.as_str()),
            None => Fact::no(CONTROL_PLANE, "NotYetReported", "the control plane has not said anything yet"),
        };
    }
    match (&cluster.spec.control_plane_ref, &cluster.spec.topology) {
        (Some(part), _) => Fact::unknown(CONTROL_PLANE, "DoesNotExist", format!("{} does not exist", part.kind)),
        (None, Some(_)) => {
            Fact::unknown(CONTROL_PLANE, "DoesNotExist", "Waiting for cluster topology to be reconciled")
        }
        (None, None) => {
            let available = |machine: &Arc<Machine>| {
                machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, AVAILABLE))
            };
            if machines.iter().any(available) {
                Fact::yes(CONTROL_PLANE, "Available")
            } else {
                Fact::no(CONTROL_PLANE, "NotAvailable", "no machine of the control plane is available")
            }
        }
    }
}

fn workers_available(parts: &Descendants) -> Fact {
    if parts.deployments.is_empty() {
        return Fact::yes(WORKERS, "NoWorkers");
    }
    let said: Vec<Said<'_>> = parts.deployments.iter().map(|pool| Said::by(&**pool, AVAILABLE)).collect();
    Merge::wanted(["NotAvailable", "AvailableUnknown", "Available"]).of(WORKERS, AVAILABLE, &said)
}

/// Whether machines are what they should be. Nobody says so of those that stand for themselves.
fn up_to_date(machines: &[Arc<Machine>]) -> Fact {
    let known = fact::machines_up_to_date(machines);
    let is_alone = |machine: &&Arc<Machine>| {
        let meta = &machine.metadata;
        controller::<MachineSet>(meta).is_none() && controller::<KubeadmControlPlane>(meta).is_none()
    };
    let unsaid = |machine: &&Arc<Machine>| {
        machine.status.as_ref().is_none_or(|status| condition(&status.conditions, "UpToDate").is_none())
    };
    let silent: Vec<&Arc<Machine>> = machines.iter().filter(is_alone).filter(unsaid).collect();
    if silent.is_empty() || !known.holds() {
        return known;
    }
    let message = format!("* {}: Condition UpToDate not yet reported", fact::named(&silent));
    Fact::unknown(known.type_, "UpToDateUnknown", message)
}

/// Whether anything moves. A control plane counts as far as it says anything: the contract does not ask for more. Sets do not
/// roll out.
fn moving(parts: &Descendants, type_: &'static str, reasons: [&'static str; 3]) -> Fact {
    let control_plane = parts.control_plane.iter().map(|object| Said::by(&**object, type_));
    let deployments = parts.deployments.iter().map(|pool| Said::by(&**pool, type_));
    let sets = parts.lone_sets().filter(|_| type_ != "RollingOut").map(|set| Said::by(&**set, type_));
    let said: Vec<Said<'_>> = control_plane.filter(|said| said.what.is_some()).chain(deployments).chain(sets).collect();
    Merge::moving(reasons).of(type_, type_, &said)
}

/// `Available`: what is in the way of relying on the Cluster.
pub(super) fn available(cluster: &Cluster, conditions: &[Condition]) -> Fact {
    let (mut told, mut unknown) = (Vec::new(), Vec::new());
    let mut add = |type_: &str, bad: &str| match condition(conditions, type_) {
        None => unknown.push(line(type_, "Condition not yet reported")),
        Some(said) if said.status == "Unknown" => unknown.push(line(type_, &said.message)),
        Some(said) if said.status == bad && !is_on_its_way(said) => told.push(line(type_, &said.message)),
        Some(_) => {}
    };
    add(DELETING, "True");
    for type_ in [INFRASTRUCTURE, CONTROL_PLANE, WORKERS] {
        add(type_, "False");
    }
    if cluster.spec.topology.is_some() {
        add(TOPOLOGY, "False");
    }
    for gate in &cluster.spec.availability_gates {
        let negative = gate.polarity.as_deref() == Some("Negative");
        add(&gate.condition_type, if negative { "True" } else { "False" });
    }
    Merge::wanted(["NotAvailable", "AvailableUnknown", "Available"]).fact(AVAILABLE, told, unknown)
}

/// A topology that is not as it should be because it is being changed is no fault.
fn is_on_its_way(said: &Condition) -> bool {
    let faults = [TopologyReason::ReconcileFailed, TopologyReason::ClusterClassNotReconciled];
    said.type_ == TOPOLOGY && !faults.iter().any(|fault| said.reason == fault.as_str())
}

/// What a Cluster that goes waits for.
pub(super) fn deleting(parts: &Descendants) -> Fact {
    let (of_control_plane, workers): (Vec<&Arc<Machine>>, Vec<&Arc<Machine>>) =
        parts.machines.iter().partition(|machine| is_control_plane(&machine.metadata));
    let left = |what: &str, names: Vec<&Option<String>>| {
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("* {what}: {}", fact::shortened(&names)))
    };
    let deployments = left("MachineDeployments", parts.deployments.iter().map(|each| &each.metadata.name).collect());
    let sets = left("MachineSets", parts.sets.iter().map(|each| &each.metadata.name).collect());
    let machines = left("Worker Machines", workers.iter().map(|each| &each.metadata.name).collect());
    let masters = left("Control plane Machines", of_control_plane.iter().map(|each| &each.metadata.name).collect());
    let control_plane =
        left("KubeadmControlPlanes", parts.control_plane.iter().map(|each| &each.metadata.name).collect());
    let infrastructure = left("WCPClusters", parts.infrastructure.iter().map(|each| &each.metadata.name).collect());

    let of_workers: Vec<String> = [deployments, sets, machines].into_iter().flatten().collect();
    let of_masters: Vec<String> = [control_plane, masters].into_iter().flatten().collect();
    let (reason, lines) = match () {
        () if !of_workers.is_empty() => ("WaitingForWorkersDeletion", of_workers),
        () if !of_masters.is_empty() => ("WaitingForControlPlaneDeletion", of_masters),
        () if infrastructure.is_some() => ("WaitingForInfrastructureDeletion", infrastructure.into_iter().collect()),
        () => ("DeletionCompleted", Vec::new()),
    };
    Fact { message: lines.join("\n"), ..Fact::yes(DELETING, reason) }
}

impl Descendants {
    /// The sets that no deployment looks after.
    pub(super) fn lone_sets(&self) -> impl Iterator<Item = &Arc<MachineSet>> {
        self.sets.iter().filter(|set| controller::<MachineDeployment>(&set.metadata).is_none())
    }
}
