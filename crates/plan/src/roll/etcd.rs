//! Whose members of etcd are whose.

use crate::inventory::{EtcdMember, Machine};

/// The member of a machine, by the name of its node.
pub fn member_of<'a>(machine: &Machine, members: &'a [EtcdMember]) -> Option<&'a EtcdMember> {
    members.iter().find(|member| member.name == machine.node())
}

/// A member that was added and has never started.
pub fn unstarted(members: &[EtcdMember]) -> Option<&EtcdMember> {
    members.iter().find(|member| member.name.is_empty())
}
