//! A control plane changes by one machine at a time.
//!
//! Whoever makes or removes a machine, us or somebody who repairs, the next one waits for it: two at once can be one too many
//! for etcd. And there is never more than one machine more than asked for.

use super::Blocked;
use super::control_plane_healthy::not_ready;
use crate::inventory::{Machine, MachineState};

/// Refuses to make or remove a machine while another one comes or goes, but for those that are excused: their coming or going
/// is what is being done.
pub fn one_machine_at_a_time(machines: &[Machine], excused: impl Fn(&Machine) -> bool) -> Option<Blocked> {
    let moves = |machine: &&Machine| {
        matches!(machine.state, MachineState::Joining { .. } | MachineState::Deleting { .. }) && !excused(machine)
    };
    if let Some(blocked) = machines.iter().find(moves).and_then(not_ready) {
        return Some(blocked);
    }
    let is_doubled = |machine: &&Machine| {
        let row: Vec<&Machine> = machines.iter().filter(|other| other.row() == machine.row()).collect();
        row.len() > 1 && !row.into_iter().any(&excused)
    };
    let doubled = machines.iter().find(is_doubled)?;
    let why = "there is another one in its place, and one of them is still to go".to_owned();
    Some(Blocked::ControlPlaneMachineNotReady { machine: doubled.name.clone(), why })
}
