//! A machine leaves etcd before it goes.
//!
//! A machine that is switched off while it is a member is a member that does not answer, and counts.

use super::Blocked;
use crate::inventory::{EtcdMember, Machine};

/// Refuses to delete a machine that is still a member of etcd.
pub fn member_leaves_first(members: &[EtcdMember], leaving: &Machine) -> Option<Blocked> {
    let member = members.iter().find(|member| member.name == leaving.node())?;
    Some(Blocked::EtcdMemberStays { machine: leaving.name.clone(), member: member.shown() })
}
