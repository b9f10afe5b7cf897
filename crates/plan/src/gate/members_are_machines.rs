//! etcd is made of the machines of the control plane, and of nothing else.
//!
//! A member that belongs to no machine is one that nobody will ever start again, and a machine without a member is one that
//! nobody would miss: with either, the arithmetic of everything else is wrong.

use super::Blocked;
use crate::inventory::{EtcdMember, Machine, MachineState};

/// Refuses to change a control plane whose members and machines are not the same, but for the machines that are excused: their
/// change is what is being done. A machine that is not a node yet may be known to etcd by another name than its own.
pub fn members_are_machines(
    machines: &[Machine],
    members: &[EtcdMember],
    excused: impl Fn(&Machine) -> bool,
) -> Option<Blocked> {
    let is_member = |machine: &Machine| members.iter().any(|member| member.name == machine.node());
    let is_node = |machine: &Machine| !matches!(machine.state, MachineState::Joining { .. });
    let lacking = machines.iter().find(|machine| is_node(machine) && !excused(machine) && !is_member(machine));
    if let Some(machine) = lacking {
        return Some(Blocked::EtcdMemberMissing { machine: machine.name.clone() });
    }
    let nameless = machines.iter().filter(|machine| !is_node(machine) && !is_member(machine)).count();
    let belongs = |member: &EtcdMember| machines.iter().any(|machine| machine.node() == member.name);
    let strangers = members.iter().filter(|member| !member.name.is_empty() && !belongs(member));
    let stranger = { strangers }.nth(nameless)?;
    Some(Blocked::EtcdMemberUnknown { member: stranger.shown() })
}
