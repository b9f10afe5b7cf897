//! Who leads etcd hands that on before it goes.
//!
//! A leader that is removed leaves an election behind, and for as long as it takes no write is answered.

use super::Blocked;
use crate::inventory::{EtcdMember, Machine, MachineState};

/// Refuses to remove the member that leads.
pub fn leader_moves_first(members: &[EtcdMember], leaving: u64) -> Option<Blocked> {
    let leader = members.iter().find(|member| member.id == leaving && member.leader)?;
    Some(Blocked::EtcdLeaderLeaves { member: leader.shown() })
}

/// Refuses to make a member lead that is not a healthy voter, or that is on its way out with its machine.
pub fn may_lead(machines: &[Machine], members: &[EtcdMember], to: u64) -> Option<Blocked> {
    let heir = members.iter().find(|member| member.id == to);
    let leaves = |member: &EtcdMember| {
        let is_its = |machine: &Machine| machine.node() == member.name;
        let is_leaving = |machine: &Machine| matches!(machine.state, MachineState::Deleting { .. });
        machines.iter().any(|machine| is_its(machine) && is_leaving(machine))
    };
    let able = heir.is_some_and(|member| member.is_sound() && !leaves(member));
    (!able).then(|| Blocked::EtcdCannotLead { member: heir.map_or_else(|| format!("{to:x}"), EtcdMember::shown) })
}
