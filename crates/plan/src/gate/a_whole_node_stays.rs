//! One machine of the control plane with all its programs well is left, whatever goes.

use windlass_api::name::MachineName;

use super::Blocked;
use crate::inventory::{Machine, MachineState};

/// Refuses to take a machine away that is the last one that is well, or when none is.
pub fn a_whole_node_stays(machines: &[Machine], leaving: &MachineName) -> Option<Blocked> {
    let stays = |machine: &Machine| machine.name != *leaving && matches!(machine.state, MachineState::Ready { .. });
    (!machines.iter().any(stays)).then(|| Blocked::NoWholeNode { machine: leaving.clone() })
}
