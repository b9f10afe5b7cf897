//! The control plane changes only while all of its machines are well.
//!
//! A control plane that lacks a machine already has less to lose than a change may cost.

use super::Blocked;
use crate::inventory::{Machine, MachineState};

/// Refuses to change the control plane while a machine of it is not well, but for those that are excused: what an attempt that
/// failed has left half-done is judged and repaired by the next attempt.
pub fn control_plane_healthy(machines: &[Machine], excused: impl Fn(&Machine) -> bool) -> Option<Blocked> {
    let is_sick = |machine: &&Machine| matches!(machine.state, MachineState::Unhealthy { .. }) && !excused(machine);
    machines.iter().find(is_sick).and_then(not_ready)
}

/// What keeps a machine from being ready.
pub(crate) fn not_ready(machine: &Machine) -> Option<Blocked> {
    let why = match &machine.state {
        MachineState::Ready { .. } => return None,
        MachineState::Joining { .. } => "it is on the way to being a node".to_owned(),
        MachineState::Unhealthy { why, .. } => why.clone(),
        MachineState::Deleting { .. } => "it is on the way out".to_owned(),
    };
    Some(Blocked::ControlPlaneMachineNotReady { machine: machine.name.clone(), why })
}
