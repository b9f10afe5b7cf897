//! A change to the members of etcd, which several gates judge.

use crate::inventory::EtcdMember;

/// A change to the members of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// One more, which has yet to start.
    Add,
    /// This one goes.
    Remove(u64),
    /// None comes or goes: what has not started yet never will, because the machine goes that could be whose it is.
    Keep,
}

impl MemberChange {
    /// Whether it is about this member.
    pub(super) fn is_about(self, member: &EtcdMember) -> bool {
        self == Self::Remove(member.id)
    }
}

/// Those that count.
pub(super) fn voters(members: &[EtcdMember]) -> impl Iterator<Item = &EtcdMember> {
    members.iter().filter(|member| !member.learner)
}
