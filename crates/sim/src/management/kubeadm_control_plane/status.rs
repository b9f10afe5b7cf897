//! How a control plane is doing: counts and conditions, of it and of its machines.

use std::collections::BTreeMap;

use windlass_api::condition::ConditionStatus;
use windlass_api::kind::cluster_api::VersionCount;
use windlass_api::kind::control_plane::{ControlPlaneInitialization, KubeadmControlPlaneStatus};
use windlass_api::kind::{Condition, condition, is_true};
use windlass_api::label;
use windlass_api::version::KubernetesVersion;

use super::health::{ETCD_MEMBER, Sight};
use super::plan::Step;
use super::remediation;
use super::view::{Replica, View};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn};
use crate::management::{part, write};

/// Tells each machine how its components are and whether it is as it should be. Those that go are told nothing, and those that
/// have no node yet nothing of components: there is nothing to be seen on them.
pub(super) async fn tell_machines(turn: &Turn, view: &View<'_>) -> Result<(), Error> {
    for replica in view.replicas.iter().filter(|replica| !replica.leaves()) {
        // While nobody answers, what was known before still stands.
        let visible = replica.node().is_some() && !matches!(view.sight, Sight::Unreachable);
        let machine = &*replica.machine;
        let mut status = machine.status.clone().unwrap_or_default();
        let up_to_date = if replica.outdated.is_empty() {
            Fact::yes("UpToDate", "UpToDate")
        } else {
            Fact::no("UpToDate", "NotUpToDate", bullets(&replica.outdated))
        };
        if !visible && says(&status.conditions, &up_to_date) {
            continue;
        }
        let components = replica.components.iter().filter(|_| visible).cloned();
        for fact in components.chain([up_to_date]) {
            conditions::set(&mut status.conditions, fact, machine.metadata.generation, &turn.now());
        }
        if machine.status.as_ref() != Some(&status) {
            write::status(turn, machine, &status).await?;
        }
    }
    Ok(())
}

/// Whether conditions say as much. Who has said nothing at all is new, and says itself that it is as it should be.
fn says(conditions: &[Condition], fact: &Fact) -> bool {
    match condition(conditions, fact.type_) {
        Some(known) => known.status == fact.status.to_string() && known.message == fact.message,
        None => conditions.is_empty(),
    }
}

/// Says how the control plane is doing.
pub(super) async fn say(turn: &Turn, view: &View<'_>, step: &Step<'_>) -> Result<(), Error> {
    let mut status = counted(view);
    let facts = [
        available(view),
        initialized(view),
        Fact::yes("CertificatesAvailable", "Available"),
        etcd_healthy(view),
        components_healthy(view),
        machines_ready(view),
        machines_up_to_date(view),
        rolling_out(view),
        scaling(view, step, Direction::Up, missing_template(turn, view)),
        scaling(view, step, Direction::Down, None),
        remediating(view),
        Fact::no("Deleting", "NotDeleting", ""),
    ];
    for fact in facts {
        conditions::set(&mut status.conditions, fact, view.object.metadata.generation, &turn.now());
    }
    if view.object.status.as_ref() != Some(&status) {
        write::status(turn, view.object, &status).await?;
    }
    Ok(())
}

fn counted(view: &View<'_>) -> KubeadmControlPlaneStatus {
    let count = |is_so: &dyn Fn(&Replica) -> bool| {
        u32::try_from(view.replicas.iter().filter(|replica| is_so(replica)).count()).unwrap_or(u32::MAX)
    };
    let says = |replica: &Replica, type_: &str| {
        replica.machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, type_))
    };
    let versions = versions(view);
    let cluster = view.cluster.metadata.name.as_deref().unwrap_or_default();
    KubeadmControlPlaneStatus {
        observed_generation: view.object.metadata.generation,
        version: versions.first().map(|lowest| lowest.version.clone()),
        versions,
        selector: Some(format!("{}={cluster},{}", label::CLUSTER_NAME.name, label::CONTROL_PLANE.name)),
        replicas: count(&|_| true),
        ready_replicas: count(&|replica| says(replica, "Ready")),
        available_replicas: count(&|replica| says(replica, "Available")),
        up_to_date_replicas: count(&|replica| replica.outdated.is_empty()),
        initialization: Some(ControlPlaneInitialization { control_plane_initialized: view.initialized() }),
        last_remediation: remediation::last(view)
            .or_else(|| view.object.status.as_ref().and_then(|status| status.last_remediation.clone())),
        conditions: view.object.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
    }
}

/// Every version that a machine has, the lowest first.
fn versions(view: &View<'_>) -> Vec<VersionCount> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for replica in &view.replicas {
        *counts.entry(replica.machine.spec.version.as_deref().unwrap_or_default()).or_default() += 1;
    }
    let mut versions: Vec<VersionCount> =
        counts.into_iter().map(|(version, replicas)| VersionCount { version: version.to_owned(), replicas }).collect();
    versions.sort_by_key(|each| each.version.parse::<KubernetesVersion>().ok());
    versions
}

fn available(view: &View<'_>) -> Fact {
    if !view.initialized() {
        return Fact::no("Available", "NotAvailable", "Control plane not yet initialized");
    }
    let (Some(members), Sight::Seen(_)) = (view.sight.members(), &view.sight) else {
        return fact("Available", ConditionStatus::Unknown, "InspectionFailed", "Remote conditions unknown");
    };
    let voters = || members.iter().filter(|member| !member.learner);
    let mut missing = Vec::new();
    if voters().filter(|member| member.healthy).count() <= voters().count() / 2 {
        missing.push("fewer members of etcd are healthy than a quorum needs".to_owned());
    }
    // Whoever works alone needs all of them on one machine; etcd is asked through the member beside the API server.
    if !view.replicas.iter().any(|replica| !replica.leaves() && replica.unhealthy().next().is_none()) {
        missing.push("There are no Machines with healthy control plane components, at least 1 required".to_owned());
    }
    if missing.is_empty() {
        Fact::yes("Available", "Available")
    } else {
        Fact::no("Available", "NotAvailable", bullets(&missing))
    }
}

fn initialized(view: &View<'_>) -> Fact {
    if view.initialized() {
        Fact::yes("Initialized", "Initialized")
    } else {
        Fact::no("Initialized", "NotInitialized", "")
    }
}

fn etcd_healthy(view: &View<'_>) -> Fact {
    healthy(view, "EtcdClusterHealthy", |fact| fact.type_ == ETCD_MEMBER || fact.type_ == "EtcdPodHealthy")
}

fn components_healthy(view: &View<'_>) -> Fact {
    healthy(view, "ControlPlaneComponentsHealthy", |fact| fact.type_ != ETCD_MEMBER)
}

/// What the machines say about some of their components, together.
fn healthy(view: &View<'_>, type_: &'static str, concerned: impl Fn(&Fact) -> bool) -> Fact {
    if !view.initialized() {
        return fact(
            type_,
            ConditionStatus::Unknown,
            "InspectionFailed",
            "Waiting for Cluster control plane to be initialized",
        );
    }
    if matches!(view.sight, Sight::Unreachable) {
        return fact(type_, ConditionStatus::Unknown, "ConnectionDown", "Remote connection not established yet");
    }
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    for replica in view.replicas.iter().filter(|replica| !replica.leaves()) {
        for each in replica.unhealthy().filter(|each| concerned(each)) {
            let said = format!("Machine {}: {}: {}", replica.name(), each.type_, each.message);
            if each.status == ConditionStatus::False { wrong.push(said) } else { unknown.push(said) }
        }
    }
    match () {
        () if !wrong.is_empty() => Fact::no(type_, "NotHealthy", bullets(&wrong)),
        () if !unknown.is_empty() => fact(type_, ConditionStatus::Unknown, "HealthUnknown", &bullets(&unknown)),
        () => Fact::yes(type_, "Healthy"),
    }
}

fn machines_ready(view: &View<'_>) -> Fact {
    if view.replicas.is_empty() {
        return Fact::yes("MachinesReady", "NoReplicas");
    }
    let ready =
        |replica: &&Replica| replica.machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Ready"));
    let unready: Vec<String> = view
        .replicas
        .iter()
        .filter(|replica| !ready(replica))
        .map(|replica| format!("Machine {} is not ready", replica.name()))
        .collect();
    if unready.is_empty() {
        Fact::yes("MachinesReady", "Ready")
    } else {
        Fact::no("MachinesReady", "NotReady", bullets(&unready))
    }
}

fn machines_up_to_date(view: &View<'_>) -> Fact {
    if view.replicas.is_empty() {
        return Fact::yes("MachinesUpToDate", "NoReplicas");
    }
    let outdated = reasons(view);
    if outdated.is_empty() {
        Fact::yes("MachinesUpToDate", "UpToDate")
    } else {
        Fact::no("MachinesUpToDate", "NotUpToDate", bullets(&outdated))
    }
}

fn rolling_out(view: &View<'_>) -> Fact {
    let many = view.outdated().count();
    if many == 0 {
        return Fact::no("RollingOut", "NotRollingOut", "");
    }
    let message = format!("Rolling out {many} not up-to-date replicas\n{}", bullets(&reasons(view)));
    fact("RollingOut", ConditionStatus::True, "RollingOut", &message)
}

/// Why machines are replaced, each reason once.
fn reasons(view: &View<'_>) -> Vec<String> {
    let mut reasons: Vec<String> = view.outdated().flat_map(|replica| replica.outdated.iter().cloned()).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// That the template of the machines is not there, if it is not.
fn missing_template(turn: &Turn, view: &View<'_>) -> Option<String> {
    let reference = &view.object.spec.machine_template.spec.infrastructure_ref;
    let is_there = part::template(turn, &view.object.metadata, reference).is_some();
    (!is_there).then(|| format!("{} does not exist", reference.kind))
}

/// Whether there are fewer or more machines than asked for, and what keeps that from being changed.
fn scaling(view: &View<'_>, step: &Step<'_>, direction: Direction, missing: Option<String>) -> Fact {
    let (present, desired) = (view.replicas.len(), view.desired());
    let (type_, reason, not, verb, is_so) = match direction {
        Direction::Up => ("ScalingUp", "ScalingUp", "NotScalingUp", "up", present < desired),
        Direction::Down => ("ScalingDown", "ScalingDown", "NotScalingDown", "down", present > desired),
    };
    if !is_so {
        let would = missing.map(|missing| format!("Scaling {verb} would be blocked because {missing}"));
        return Fact::no(type_, not, would.unwrap_or_default());
    }
    let message = format!("Scaling {verb} from {present} to {desired} replicas");
    let waits = match step {
        Step::Wait(blocking) => blocking.as_slice(),
        Step::Rest | Step::Begin | Step::Grow | Step::Shrink(_) => &[],
    };
    let blocking: Vec<String> = missing.into_iter().chain(waits.iter().cloned()).collect();
    let message =
        if blocking.is_empty() { message } else { format!("{message} is blocked because:\n{}", bullets(&blocking)) };
    fact(type_, ConditionStatus::True, reason, &message)
}

fn remediating(view: &View<'_>) -> Fact {
    let ill = view.replicas.iter().filter(|replica| remediation::is_ill(replica));
    let names: Vec<String> = ill.map(|replica| format!("Machine {}", replica.name())).collect();
    if names.is_empty() {
        Fact::no("Remediating", "NotRemediating", "")
    } else {
        fact("Remediating", ConditionStatus::True, "Remediating", &bullets(&names))
    }
}

fn fact(type_: &'static str, status: ConditionStatus, reason: &'static str, message: &str) -> Fact {
    Fact { type_, status, reason, message: message.to_owned() }
}

/// A list as Cluster API writes it in messages.
fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("* {line}")).collect::<Vec<_>>().join("\n")
}
