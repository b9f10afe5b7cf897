//! What is true of a number of machines, as sets and deployments say it in their conditions.
//!
//! The machines are named, but not what each of them waits for, as Cluster API also says: that changes with every step of every
//! machine, and is in the Machine.

use std::sync::Arc;

use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::{Condition, condition, is_true};

use crate::management::conditions::Fact;

fn conditions(machine: &Machine) -> &[Condition] {
    machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

/// Why a machine is not what it should be; `None` if it is, as far as it is known.
pub(in crate::management) fn outdated(machine: &Machine) -> Option<&str> {
    let up_to_date = condition(conditions(machine), "UpToDate")?;
    (up_to_date.status == "False").then_some(up_to_date.message.as_str())
}

/// Whether something is wrong with a machine, as its health check says, and its owner is to replace it.
pub(in crate::management) fn to_be_remediated(machine: &Machine) -> bool {
    let is_false = |type_: &str| condition(conditions(machine), type_).is_some_and(|said| said.status == "False");
    is_false("HealthCheckSucceeded") && is_false("OwnerRemediated")
}

/// `Machine a`, or `Machines a, b, c, ... (2 more)`.
pub(in crate::management) fn named(machines: &[&Arc<Machine>]) -> String {
    let mut names: Vec<&str> = machines.iter().filter_map(|machine| machine.metadata.name.as_deref()).collect();
    names.sort_unstable();
    let noun = if names.len() == 1 { "Machine" } else { "Machines" };
    format!("{noun} {}", shortened(&names))
}

/// `a, b, c, ... (2 more)`.
pub(in crate::management) fn shortened(names: &[&str]) -> String {
    match names.get(..3) {
        Some(first) if names.len() > 3 => format!("{}, ... ({} more)", first.join(", "), names.len() - 3),
        _ => names.join(", "),
    }
}

/// Whether all machines are ready.
pub(in crate::management) fn machines_ready(machines: &[Arc<Machine>]) -> Fact {
    if machines.is_empty() {
        return Fact::yes("MachinesReady", "NoReplicas");
    }
    let unready: Vec<&Arc<Machine>> =
        machines.iter().filter(|machine| !is_true(conditions(machine), "Ready")).collect();
    if unready.is_empty() {
        return Fact::yes("MachinesReady", "Ready");
    }
    Fact::no("MachinesReady", "NotReady", format!("* {}: not ready", named(&unready)))
}

/// Whether all machines are what they should be.
pub(in crate::management) fn machines_up_to_date(machines: &[Arc<Machine>]) -> Fact {
    if machines.is_empty() {
        return Fact::yes("MachinesUpToDate", "NoReplicas");
    }
    let old: Vec<&Arc<Machine>> = machines.iter().filter(|machine| outdated(machine).is_some()).collect();
    if old.is_empty() {
        return Fact::yes("MachinesUpToDate", "UpToDate");
    }
    Fact::no("MachinesUpToDate", "NotUpToDate", format!("* {}: not up-to-date", named(&old)))
}

/// Whether machines are replaced because something is wrong with them.
pub(in crate::management) fn remediating(machines: &[Arc<Machine>]) -> Fact {
    let ill: Vec<&Arc<Machine>> = machines.iter().filter(|machine| to_be_remediated(machine)).collect();
    if ill.is_empty() {
        return Fact::no("Remediating", "NotRemediating", "");
    }
    Fact { message: format!("* {}: to be remediated", named(&ill)), ..Fact::yes("Remediating", "Remediating") }
}

/// Whether machines are missing, and what is in the way.
pub(in crate::management) fn scaling_up(present: u32, wanted: u32, blocked: Option<String>) -> Fact {
    if present >= wanted {
        let message = blocked.map(|why| format!("Scaling up would be blocked {why}")).unwrap_or_default();
        return Fact::no("ScalingUp", "NotScalingUp", message);
    }
    let scaling = format!("Scaling up from {present} to {wanted} replicas");
    let message = blocked.map_or_else(|| scaling.clone(), |why| format!("{scaling} is blocked {why}"));
    Fact { message, ..Fact::yes("ScalingUp", "ScalingUp") }
}

/// Whether there are too many machines.
pub(in crate::management) fn scaling_down(present: u32, wanted: u32) -> Fact {
    if present <= wanted {
        return Fact::no("ScalingDown", "NotScalingDown", "");
    }
    let message = format!("Scaling down from {present} to {wanted} replicas");
    Fact { message, ..Fact::yes("ScalingDown", "ScalingDown") }
}

/// That the object is not on its way out.
pub(in crate::management) fn not_deleting() -> Fact {
    Fact::no("Deleting", "NotDeleting", "")
}
