//! What a Machine says of itself: its conditions, in the words of Cluster API, and its phase.
//!
//! `Ready` sums up the others; `Available` is `Ready` for long enough.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::kind::cluster_api::{
    Cluster, Machine, MachineInitialization, MachineSet, MachineStatus, NodeReference,
};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::{Condition, condition, is_true};

use super::node::{Seen, Sight};
use super::{Parts, provisioned};
use crate::management::conditions::{self, Fact, WAITING_FOR_CONTROL_PLANE};
use crate::management::context::{Turn, deleting, is_control_plane};
use crate::management::ownership::controller;
use crate::management::write::Writable;

const DELETING: &str = "Deleting";
const BOOTSTRAP: &str = "BootstrapConfigReady";
const INFRASTRUCTURE: &str = "InfrastructureReady";
const NODE_READY: &str = "NodeReady";
const NODE_HEALTHY: &str = "NodeHealthy";
const HEALTH_CHECK: &str = "HealthCheckSucceeded";

/// After so long it is said that a removal takes long.
const REMOVAL_IS_SLOW_AFTER: Duration = Duration::from_secs(15 * 60);
/// And after so long of draining, why.
const DRAIN_IS_SLOW_AFTER: Duration = Duration::from_secs(5 * 60);

/// The status of a Machine that stays, and when it changes by itself.
pub(super) fn of(
    turn: &Turn,
    machine: &Machine,
    cluster: &Cluster,
    parts: &Parts,
    node: &Sight,
) -> (MachineStatus, Option<Duration>) {
    let mut status = machine.status.clone().unwrap_or_default();
    if let Sight::Node(seen) = node {
        let name = machine.metadata.name.clone().unwrap_or_default();
        status.node_ref.get_or_insert(NodeReference { name });
        status.node_info.clone_from(&seen.info);
    }
    let facts = node_facts(machine, cluster, node, &status);
    // A machine that its set or control plane has just made is what it should be; from then on they say so.
    let made = controller::<MachineSet>(&machine.metadata).or(controller::<KubeadmControlPlane>(&machine.metadata));
    let unasked = made.is_some() && condition(&status.conditions, "UpToDate").is_none();
    let fresh = unasked.then(|| Fact::yes("UpToDate", "UpToDate"));
    let facts = facts.into_iter().chain([Fact::no(DELETING, "NotDeleting", "")]).chain(fresh);
    let wait = conclude(turn, machine, Some(cluster), parts, &mut status, facts);
    (status, wait)
}

/// The status of a Machine that goes. Its node is not asked any more: what was last known of it stays.
pub(super) fn of_going(turn: &Turn, machine: &Machine, parts: &Parts, going: Fact) -> MachineStatus {
    let mut status = machine.status.clone().unwrap_or_default();
    conclude(turn, machine, None, parts, &mut status, [going]);
    status
}

/// Puts facts into a status, and what follows from them. When that changes by itself, if it does.
fn conclude(
    turn: &Turn,
    machine: &Machine,
    cluster: Option<&Cluster>,
    parts: &Parts,
    status: &mut MachineStatus,
    facts: impl IntoIterator<Item = Fact>,
) -> Option<Duration> {
    let before = status.initialization.take().unwrap_or_default();
    let reached = MachineInitialization {
        infrastructure_provisioned: before.infrastructure_provisioned || provisioned(parts),
        bootstrap_data_secret_created: before.bootstrap_data_secret_created
            || machine.spec.bootstrap.data_secret_name.is_some(),
    };
    if let Some(infrastructure) = parts.infrastructure.as_ref().and_then(|part| part.status.as_ref()) {
        status.addresses.clone_from(&infrastructure.addresses);
        // As with its addresses, only from where it is told that the machine is there.
        if reached.infrastructure_provisioned {
            status.failure_domain.clone_from(&infrastructure.failure_domain);
        }
    }
    let (generation, now) = (machine.metadata.generation, turn.now());
    let put = |conditions: &mut Vec<Condition>, fact| conditions::set(conditions, fact, generation, &now);
    for fact in part_facts(machine, cluster, parts, &reached).into_iter().chain(facts) {
        put(&mut status.conditions, fact);
    }
    status.initialization = Some(reached);
    status.observed_generation = generation;
    phase(machine, status, &now.0.to_string());
    let ready = summary(machine, status, turn.clock.now());
    put(&mut status.conditions, ready);
    let (available, wait) = availability(turn, machine, &status.conditions);
    put(&mut status.conditions, available);
    wait
}

fn phase(machine: &Machine, status: &mut MachineStatus, now: &str) {
    let reached = status.initialization.clone().unwrap_or_default();
    let phase = match (reached.infrastructure_provisioned, &status.node_ref) {
        _ if deleting(&machine.metadata) => "Deleting",
        (true, Some(_)) => "Running",
        (true, None) => "Provisioned",
        (false, _) if reached.bootstrap_data_secret_created => "Provisioning",
        (false, _) => "Pending",
    };
    if status.phase.as_deref() != Some(phase) {
        status.phase = Some(phase.to_owned());
        status.last_updated = Some(now.to_owned());
    }
}

/// How the parts are doing, in their own words where they say anything. What is not there says nothing.
fn part_facts(
    machine: &Machine,
    cluster: Option<&Cluster>,
    parts: &Parts,
    reached: &MachineInitialization,
) -> [Fact; 2] {
    let config = machine.spec.bootstrap.config_ref.as_ref();
    let said = parts.config.as_deref().and_then(Writable::said);
    let mut bootstrap = match config {
        None => Fact::yes(BOOTSTRAP, "DataSecretProvided"),
        Some(config) => part_fact(BOOTSTRAP, machine, &config.kind, reached.bootstrap_data_secret_created, said),
    };
    if bootstrap.reason == "NotReady" && bootstrap.message.is_empty() && !is_control_plane(&machine.metadata) {
        // What its configuration is about to say, so that it need not be repeated in a write of its own.
        cluster.and_then(waits_for).unwrap_or_default().clone_into(&mut bootstrap.message);
    }
    let said = parts.infrastructure.as_ref().and_then(Writable::said);
    let kind = &machine.spec.infrastructure_ref.kind;
    [bootstrap, part_fact(INFRASTRUCTURE, machine, kind, reached.infrastructure_provisioned, said)]
}

fn part_fact(type_: &'static str, machine: &Machine, kind: &str, done: bool, said: Option<&[Condition]>) -> Fact {
    let Some(said) = said else {
        return match (done, deleting(&machine.metadata)) {
            (true, true) => Fact::no(type_, "ObjectDeleted", format!("{kind} has been deleted")),
            (true, false) => {
                Fact::no(type_, "ObjectDeleted", format!("{kind} has been deleted while the Machine still exists"))
            }
            (false, _) => Fact::no(type_, "ObjectDoesNotExist", format!("{kind} does not exist")),
        };
    };
    if done {
        return Fact::yes(type_, "Ready");
    }
    let said = condition(said, "Ready").or_else(|| said.iter().find(|condition| condition.status == "False"));
    Fact::no(type_, "NotReady", said.map(|said| said.message.clone()).unwrap_or_default())
}

/// What a cluster has to come to before anything can join it.
fn waits_for(cluster: &Cluster) -> Option<&'static str> {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if !is_true(conditions, INFRASTRUCTURE) {
        return Some("Waiting for Cluster status.initialization.infrastructureProvisioned to be true");
    }
    (!is_true(conditions, "ControlPlaneInitialized")).then_some(WAITING_FOR_CONTROL_PLANE)
}

/// How the node is doing. While its API does not answer, nothing new is known.
fn node_facts(machine: &Machine, cluster: &Cluster, node: &Sight, status: &MachineStatus) -> Vec<Fact> {
    let both = |fact: Fact| vec![fact.clone().named(NODE_READY), fact.named(NODE_HEALTHY)];
    let wait = |message: String| both(Fact::unknown(NODE_READY, "InspectionFailed", message));
    if let Some(message) = waits_for(cluster) {
        return wait(message.to_owned());
    }
    match (node, &status.node_ref, &machine.spec.provider_id) {
        (Sight::Unreachable, ..) if condition(&status.conditions, NODE_HEALTHY).is_some() => Vec::new(),
        (Sight::Unreachable, ..) => both(Fact::unknown(NODE_READY, "ConnectionDown", "")),
        (Sight::Node(seen), ..) => vec![node_ready(seen), node_health(seen)],
        (Sight::None, Some(node), _) => both(Fact::no(
            NODE_READY,
            "NodeDeleted",
            format!("Node {} has been deleted while the Machine still exists", node.name),
        )),
        (Sight::None, None, Some(id)) => wait(format!("Waiting for a Node with spec.providerID {id} to exist")),
        (Sight::None, None, None) => {
            wait(format!("Waiting for {} to report spec.providerID", machine.spec.infrastructure_ref.kind))
        }
    }
}

fn node_ready(node: &Seen) -> Fact {
    let said = |message: &str| if message.is_empty() { String::new() } else { format!("* Node.Ready: {message}") };
    match node.condition("Ready") {
        Some(ready) if ready.status == "True" => Fact::yes(NODE_READY, "NodeReady"),
        Some(ready) if ready.status == "False" => Fact::no(NODE_READY, "NodeNotReady", said(&ready.message)),
        Some(ready) => Fact::unknown(NODE_READY, "NodeReadyUnknown", said(&ready.message)),
        None => Fact::unknown(NODE_READY, "NodeReadyUnknown", "* Node.Ready: Condition not yet reported"),
    }
}

/// Whether the node is ready and has enough of everything. A kubelet that says nothing about what it has enough of is taken to
/// have it: simulated ones may say no more than that they are ready.
fn node_health(node: &Seen) -> Fact {
    let conditions = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
    let (mut wrong, mut unknown, mut messages) = (false, false, Vec::new());
    for type_ in conditions {
        let wanted = if type_ == "Ready" { "True" } else { "False" };
        let Some(found) = node.condition(type_) else {
            if type_ == "Ready" {
                unknown = true;
                messages.push("* Node.Ready: Condition not yet reported".to_owned());
            }
            continue;
        };
        if found.status == wanted {
            continue;
        }
        (wrong, unknown) = (wrong || found.status != "Unknown", unknown || found.status == "Unknown");
        let said =
            if found.message.is_empty() { format!("Condition is {}", found.status) } else { found.message.clone() };
        messages.push(format!("* Node.{type_}: {said}"));
    }
    let message = messages.join("\n");
    match (wrong, unknown) {
        (true, _) => Fact::no(NODE_HEALTHY, "NodeNotHealthy", message),
        (false, true) => Fact::unknown(NODE_HEALTHY, "NodeHealthUnknown", message),
        (false, false) => Fact::yes(NODE_HEALTHY, "NodeHealthy"),
    }
}

/// `Ready`: what is wrong with a Machine, or what nobody can tell of it.
fn summary(machine: &Machine, status: &MachineStatus, now: Timestamp) -> Fact {
    let goes = deleting(&machine.metadata);
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    let mut add = |type_: &str, bad: &str| {
        let Some(found) = condition(&status.conditions, type_) else {
            if type_ != HEALTH_CHECK {
                unknown.push(format!("* {type_}: Condition not yet reported"));
            }
            return;
        };
        // It is no fault of a Machine that goes that its parts have gone before it.
        let gone = ["ObjectDeleted", "ObjectDoesNotExist", "NodeDeleted", "NodeDoesNotExist"];
        if goes && gone.contains(&found.reason.as_str()) {
            return;
        }
        let said = match type_ {
            DELETING if goes => progress(machine, status, found, now),
            _ if found.message.is_empty() => "No additional info provided".to_owned(),
            _ => found.message.clone(),
        };
        match found.status.as_str() {
            "Unknown" => unknown.push(format!("* {type_}: {said}")),
            is if is == bad => wrong.push(format!("* {type_}: {said}")),
            _ => {}
        }
    };
    add(DELETING, "True");
    for type_ in [BOOTSTRAP, INFRASTRUCTURE, NODE_HEALTHY, HEALTH_CHECK] {
        add(type_, "False");
    }
    for gate in &machine.spec.readiness_gates {
        let negative = gate.polarity.as_deref() == Some("Negative");
        add(&gate.condition_type, if negative { "True" } else { "False" });
    }
    match (wrong.is_empty(), unknown.is_empty()) {
        (true, true) => Fact::yes("Ready", "Ready"),
        (true, false) => Fact::unknown("Ready", "ReadyUnknown", unknown.join("\n")),
        (false, _) => Fact::no("Ready", "NotReady", [wrong, unknown].concat().join("\n")),
    }
}

/// How far a removal is, in few words that are the same for many machines, so that they can be counted.
fn progress(machine: &Machine, status: &MachineStatus, deleting: &Condition, now: Timestamp) -> String {
    let stage = &deleting.reason;
    let took = |since: Option<Timestamp>, longer: Duration| {
        since.and_then(|since| Duration::try_from(now.duration_since(since)).ok()).is_some_and(|took| took > longer)
    };
    let began = machine.metadata.deletion_timestamp.as_ref().map(|began| began.0);
    if !took(began, REMOVAL_IS_SLOW_AFTER) {
        return format!("Machine deletion in progress, stage: {stage}");
    }
    let slow = format!("Machine deletion in progress since more than 15m, stage: {stage}");
    let drains = status.deletion.as_ref().and_then(|since| since.node_drain_start_time.as_ref()?.parse().ok());
    if stage != "DrainingNode" || !took(drains, DRAIN_IS_SLOW_AFTER) {
        return slow;
    }
    let reasons = [
        ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
        ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
        ("failed to evict Pod", "Pod eviction errors"),
        ("waiting for completion", "Pods not completed yet"),
    ];
    let reasons: Vec<&str> =
        reasons.iter().filter(|(words, _)| deleting.message.contains(words)).map(|(_, reason)| *reason).collect();
    if reasons.is_empty() { slow } else { format!("{slow}, delay likely due to {}", reasons.join(", ")) }
}

/// `Available`: ready for as long as it has to be. How long it still is until then.
fn availability(turn: &Turn, machine: &Machine, conditions: &[Condition]) -> (Fact, Option<Duration>) {
    let Some(ready) = condition(conditions, "Ready").filter(|ready| ready.status == "True") else {
        return (Fact::no("Available", "NotReady", ""), None);
    };
    let wanted = Duration::from_secs(machine.spec.min_ready_seconds.unwrap_or_default().into());
    // Who need not have been ready for any time is available at once, whatever the clock says.
    let since: Option<Timestamp> = ready.last_transition_time.parse().ok().filter(|_| !wanted.is_zero());
    match since.and_then(|since| turn.remaining(since, wanted)) {
        None => (Fact::yes("Available", "Available"), None),
        wait => (Fact::no("Available", "WaitingForMinReadySeconds", ""), wait),
    }
}

#[cfg(test)]
mod tests;
