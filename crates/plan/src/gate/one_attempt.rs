//! A machine belongs to one update until that lets go of it.
//!
//! Were the mark of another update passed over, two of them could replace the same machine, each by one of its own.

use windlass_api::name::UpdateId;
use windlass_api::version::KubernetesVersion;

use super::Blocked;
use crate::inventory::Machine;

/// Refuses to change the control plane while a machine carries the mark of another update.
pub fn one_attempt(machines: &[Machine], ours: UpdateId) -> Option<Blocked> {
    machines.iter().find_map(|machine| {
        let theirs = machine.update.filter(|theirs| *theirs != ours)?;
        Some(Blocked::ForeignAttempt { machine: machine.name.clone(), theirs })
    })
}

/// Refuses to go on with what another update has begun if that was on its way to another version: the machines that it made
/// would count as replaced.
pub fn one_version(machines: &[Machine], ours: UpdateId, version: &KubernetesVersion) -> Option<Blocked> {
    let other = machines.iter().find(|machine| machine.is_made_by(ours) && machine.version != *version)?;
    let (machine, made) = (other.name.clone(), other.version.clone());
    Some(Blocked::AttemptOfAnotherVersion { machine, made, by: ours })
}
