//! A machine belongs to one update until that lets go of it.
//!
//! Were the mark of another update passed over, two of them could replace the same machine, each by one of its own.

use windlass_api::name::UpdateId;

use super::Blocked;
use crate::inventory::Machine;

/// Refuses to change the control plane while a machine carries the mark of another update.
pub fn one_attempt(machines: &[Machine], ours: UpdateId) -> Option<Blocked> {
    machines.iter().find_map(|machine| {
        let theirs = machine.update.filter(|theirs| *theirs != ours)?;
        Some(Blocked::ForeignAttempt { machine: machine.name.clone(), theirs })
    })
}
