//! The control plane changes only while all of it is well.
//!
//! A machine that joins adds a member to etcd, and one that is removed takes one away. With a member down already, either can
//! cost the quorum, and with it the cluster.

use windlass_api::name::{MachineName, NameLimit, UpdateId, replacement_name};

use super::Blocked;
use crate::inventory::{Inventory, Machine, MachineState};

/// Refuses to change the control plane while a machine of it or a member of etcd is not well. What `update` itself made is
/// left out: an attempt that failed may have left it half-done, and the next attempt is who judges and repairs it.
pub fn control_plane_healthy(inventory: &Inventory, update: UpdateId) -> Option<Blocked> {
    let machines = &inventory.control_plane.machines;
    let (made_now, made_before): (Vec<&Machine>, Vec<&Machine>) =
        machines.iter().partition(|machine| is_made_by(machine, update));
    if let Some(blocked) = made_before.iter().find_map(|machine| not_ready(machine)) {
        return Some(blocked);
    }
    let Some(workload) = inventory.reachable() else { return inventory.unreachable() };
    let is_now = |member: &str| made_now.iter().any(|machine| machine.name.as_str() == member);
    let sick =
        workload.etcd.iter().find(|member| !is_now(&member.name) && (member.name.is_empty() || !member.healthy))?;
    Some(Blocked::EtcdUnhealthy { member: sick.name.clone() })
}

/// Whether a machine took the place of another in this update.
fn is_made_by(machine: &Machine, update: UpdateId) -> bool {
    let made = |base: &MachineName| replacement_name(base, update, NameLimit::LabelValue) == machine.name;
    machine.base.as_ref().is_some_and(made)
}

/// What keeps a machine from being ready.
pub(crate) fn not_ready(machine: &Machine) -> Option<Blocked> {
    let why = match &machine.state {
        MachineState::Ready { .. } => return None,
        MachineState::Joining => "it is on the way to being a node".to_owned(),
        MachineState::Unhealthy { why, .. } => why.clone(),
        MachineState::Deleting => "it is on the way out".to_owned(),
    };
    Some(Blocked::ControlPlaneMachineNotReady { machine: machine.name.clone(), why })
}
