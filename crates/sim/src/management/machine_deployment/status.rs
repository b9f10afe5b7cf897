//! What a `MachineDeployment` says of itself: counts and conditions, from its sets and their machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::kind::cluster_api::{
    LabelSelector, Machine, MachineDeployment, MachineSet, MachineSetStatus, VersionCount,
};

use super::rollout::Strategy;
use super::{is_current, limits};
use crate::management::conditions::{self, Fact};
use crate::management::context::Turn;
use crate::management::machine_set::{self, fact};

/// Counts and conditions.
pub(super) fn of(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> MachineSetStatus {
    let mut status = counted(turn, deployment, sets);
    let machines = machines(turn, sets);
    let wanted = deployment.spec.replicas.unwrap_or(1);
    status.phase = Some(phase(wanted, status.replicas).to_owned());
    let facts = [
        available(deployment, status.available_replicas),
        rolling_out(&machines),
        fact::scaling_up(
            status.replicas,
            wanted,
            machine_set::missing_templates(turn, &deployment.metadata, &deployment.spec.template),
        ),
        fact::scaling_down(status.replicas, wanted),
        fact::machines_ready(&machines),
        fact::machines_up_to_date(&machines),
        fact::remediating(&machines),
        fact::not_deleting(),
    ];
    for fact in facts {
        conditions::set(&mut status.conditions, fact, deployment.metadata.generation, &turn.now());
    }
    status
}

/// What a deployment says while its sets go; nothing if it has said so.
pub(super) fn going(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> Option<MachineSetStatus> {
    let mut status = counted(turn, deployment, sets);
    status.phase = Some("ScalingDown".to_owned());
    let fact = Fact { message: format!("Deleting {} MachineSets", sets.len()), ..Fact::yes("Deleting", "Deleting") };
    conditions::set(&mut status.conditions, fact, deployment.metadata.generation, &turn.now());
    (deployment.status.as_ref() != Some(&status)).then_some(status)
}

fn phase(wanted: u32, present: u32) -> &'static str {
    match wanted.cmp(&present) {
        std::cmp::Ordering::Equal => "Running",
        std::cmp::Ordering::Less => "ScalingDown",
        std::cmp::Ordering::Greater => "ScalingUp",
    }
}

/// The counts of all sets together. Conditions are as they were.
fn counted(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> MachineSetStatus {
    let mut total = MachineSetStatus {
        observed_generation: deployment.metadata.generation,
        selector: Some(selector_text(&deployment.spec.selector)),
        conditions: deployment.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
        ..MachineSetStatus::default()
    };
    let mut versions: BTreeMap<String, u32> = BTreeMap::new();
    for set in sets {
        let status = set.status.clone().unwrap_or_default();
        total.replicas += status.replicas;
        total.ready_replicas += status.ready_replicas;
        total.available_replicas += status.available_replicas;
        if is_current(turn, deployment, set) {
            total.up_to_date_replicas += status.replicas;
        }
        for counted in status.versions {
            *versions.entry(counted.version).or_default() += counted.replicas;
        }
    }
    total.versions = versions.into_iter().map(|(version, replicas)| VersionCount { version, replicas }).collect();
    total
}

/// Whether all machines are what they should be, can be relied on, and no other is there.
pub(super) fn is_complete(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let status = counted(turn, deployment, sets);
    [status.up_to_date_replicas, status.replicas, status.available_replicas] == [wanted; 3]
}

/// A selector as the scale subresource has it.
pub(in crate::management) fn selector_text(selector: &LabelSelector) -> String {
    let parts: Vec<String> = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    parts.join(",")
}

/// All machines, of the oldest set first.
fn machines(turn: &Turn, sets: &[Arc<MachineSet>]) -> Vec<Arc<Machine>> {
    sets.iter().flat_map(|set| machine_set::machines(turn, set)).collect()
}

fn available(deployment: &MachineDeployment, available: u32) -> Fact {
    let limits = limits(deployment);
    if available >= limits.least() {
        return Fact::yes("Available", "Available");
    }
    let required = format!("{available} available replicas, at least {} required", limits.least());
    let message = match limits.strategy {
        Strategy::OnDelete => required,
        Strategy::RollingUpdate => {
            let (missing, replicas) = (limits.unavailable_max, limits.replicas);
            format!("{required} (spec.strategy.rollout.maxUnavailable is {missing}, spec.replicas is {replicas})")
        }
    };
    Fact::no("Available", "NotAvailable", message)
}

/// How many machines are on their way out because they are not what they should be, and why.
fn rolling_out(machines: &[Arc<Machine>]) -> Fact {
    let outdated: Vec<&str> = machines.iter().filter_map(|machine| fact::outdated(machine)).collect();
    if outdated.is_empty() {
        return Fact::no("RollingOut", "NotRollingOut", "");
    }
    let mut reasons: Vec<&str> = outdated.iter().flat_map(|message| message.lines()).collect();
    // A change of version comes first.
    reasons.sort_by_key(|reason| (!reason.starts_with("* Version"), *reason));
    reasons.dedup();
    let lines: Vec<String> = [format!("Rolling out {} not up-to-date replicas", outdated.len())]
        .into_iter()
        .chain(reasons.into_iter().map(str::to_owned))
        .collect();
    Fact { message: lines.join("\n"), ..Fact::yes("RollingOut", "RollingOut") }
}
