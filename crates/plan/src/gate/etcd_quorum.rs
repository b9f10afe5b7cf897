//! etcd keeps its quorum, whatever else goes wrong meanwhile.
//!
//! Of n voters, n / 2 + 1 have to answer. What is counted is the state after the change, at its worst: a new member may never
//! start, and one that has not started yet may not either.

use super::member_change::voters;
use super::{Blocked, MemberChange};
use crate::inventory::EtcdMember;

/// Refuses a change after which too few voters might answer.
pub fn etcd_quorum(members: &[EtcdMember], change: MemberChange) -> Option<Blocked> {
    let stay = || voters(members).filter(|member| !change.is_about(member));
    let before = voters(members).count();
    // A single member that grows to two needs both; counting the new one as lost would refuse every first join.
    let (added, lost) = match change {
        MemberChange::Add => (1, usize::from(before > 1)),
        MemberChange::Remove(_) | MemberChange::Keep => (0, 0),
    };
    let after = stay().count() + added;
    let unhealthy = stay().filter(|member| !member.is_sound()).count() + lost;
    let quorum = after / 2 + 1;
    (after.saturating_sub(unhealthy) < quorum).then_some(Blocked::EtcdQuorumAtRisk { voters: after, unhealthy })
}
