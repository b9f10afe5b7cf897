//! The members of etcd change one at a time.
//!
//! A member that does not vote yet, or that has been added and has not started, is a change on its way. It comes to its end
//! before the next one begins: the member catches up and votes, or it goes.

use super::{Blocked, MemberChange};
use crate::inventory::EtcdMember;

/// Refuses a change while another is on its way.
pub fn one_member_change(members: &[EtcdMember], change: MemberChange) -> Option<Blocked> {
    let others = members.iter().filter(|member| !change.is_about(member));
    { others }.find_map(|member| {
        let why = match (member.name.is_empty(), member.learner) {
            (true, _) => "has been added and has not started",
            (false, true) => "does not vote yet",
            (false, false) => return None,
        };
        Some(Blocked::EtcdChanging { member: member.shown(), why: why.to_owned() })
    })
}
