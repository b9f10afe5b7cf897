//! Whether a pool that Cluster API rolls gets anywhere, and what keeps it.
//!
//! Cluster API replaces workers by itself and never gives up. So it is looked at what its machines say: pods that may not be
//! evicted, a machine that does not become a node, one that does not go. What is told first is what a person can do something
//! about; that a pool does not move is told with it, and after an hour the update has failed.

use jiff::{SignedDuration, Timestamp};
use windlass_api::reason::DeletionReason;

use super::workers::rolling;
use crate::gate::{self, Blocked};
use crate::inventory::{MachineState, Milestone, Pool, PoolMachine};
use crate::report::StageState;
use crate::target::PoolTarget;

/// A pod that may not be evicted is tried again every 20 seconds; one refusal says nothing yet.
const DRAIN_PATIENCE: SignedDuration = SignedDuration::from_secs(30);
/// What a machine says about itself while it is made sounds like a fault for a while.
const FAULT_PATIENCE: SignedDuration = SignedDuration::from_mins(5);
/// To become a node, or to go: what a machine of the control plane is given, too.
const MACHINE_PATIENCE: SignedDuration = SignedDuration::from_mins(15);
/// After so long without a move it is said so.
const STALLED_AFTER: SignedDuration = SignedDuration::from_mins(30);
/// Of many machines with the same trouble, a few are enough.
const NAMED_MAX: usize = 5;

/// How the rollout of a pool goes: at work, or given up, with what it waits for.
pub(super) fn judge(now: Timestamp, pool: &PoolTarget, observed: &Pool) -> (StageState, Vec<Blocked>) {
    let trouble = observed.machines.iter().filter_map(|machine| trouble(now, machine));
    let mut blocked: Vec<Blocked> = trouble.take(NAMED_MAX).collect();
    let stalled = observed.moved_at.filter(|moved_at| is_over(now, *moved_at, STALLED_AFTER));
    blocked.push(match stalled {
        Some(since) => Blocked::PoolStalled { pool: pool.name.clone(), since },
        None => rolling(pool, observed),
    });
    let state = if gate::gave_up(observed, now).is_some() { StageState::Failed } else { StageState::Running };
    (state, blocked)
}

fn is_over(now: Timestamp, since: Timestamp, patience: SignedDuration) -> bool {
    now.duration_since(since) >= patience
}

/// What is wrong with a machine, once it has had its time.
fn trouble(now: Timestamp, machine: &PoolMachine) -> Option<Blocked> {
    if machine.leaving.is_some() {
        return stays(now, machine);
    }
    let failed = |why: String| Some(Blocked::MachineFailed { machine: machine.name.clone(), why });
    let fault = machine.failing.as_ref().filter(|failing| is_over(now, failing.since, FAULT_PATIENCE));
    match (&machine.state, fault) {
        (_, Some(fault)) => failed(fault.why.clone()),
        (MachineState::Joining { awaits }, None) if is_over(now, machine.created, MACHINE_PATIENCE) => {
            let minutes = MACHINE_PATIENCE.as_mins();
            failed(format!("after {minutes} minutes it is no node: {}", what_is_missing(*awaits)))
        }
        (
            MachineState::Joining { .. }
            | MachineState::Ready { .. }
            | MachineState::Unhealthy { .. }
            | MachineState::Deleting { .. },
            None,
        ) => None,
    }
}

fn what_is_missing(awaits: Milestone) -> &'static str {
    match awaits {
        Milestone::ProviderId => "its infrastructure has not booted it",
        Milestone::Node => "it has booted, and has not joined",
        Milestone::Components | Milestone::RoleLabel => "it has joined, and is not complete",
    }
}

/// What keeps a machine that is on the way out.
fn stays(now: Timestamp, machine: &PoolMachine) -> Option<Blocked> {
    let leaving = machine.leaving.as_ref()?;
    let name = machine.name.clone();
    let drains = leaving.step == DeletionReason::DrainingNode.as_str();
    let refused = refusals(&leaving.why);
    if drains && !refused.is_empty() && is_over(now, leaving.since, DRAIN_PATIENCE) {
        return Some(Blocked::DrainBlocked { machine: name, why: refused.join("; ") });
    }
    if !is_over(now, leaving.since, MACHINE_PATIENCE) {
        return None;
    }
    let said = said(&leaving.why);
    if drains || leaving.step == DeletionReason::WaitingForVolumeDetach.as_str() {
        return Some(Blocked::DrainBlocked { machine: name, why: said });
    }
    let minutes = MACHINE_PATIENCE.as_mins();
    let why = format!("after {minutes} minutes it is still on its way out: {}", leaving.step);
    let why = if said.is_empty() { why } else { format!("{why}, {said}") };
    Some(Blocked::MachineFailed { machine: name, why })
}

/// The lines of Cluster API about pods that may not be evicted. Pods that end, or finish by themselves, only take their time.
fn refusals(why: &str) -> Vec<&str> {
    let is_refusal = |line: &&str| {
        line.contains("cannot evict pod as it would violate the pod's disruption budget")
            || line.contains("failed to evict Pod")
    };
    why.lines().filter(is_refusal).map(|line| line.trim_start_matches("* ")).collect()
}

/// A message of many lines as one.
fn said(why: &str) -> String {
    why.lines().map(|line| line.trim_start_matches("* ")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
