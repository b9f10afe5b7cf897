//! What does not answer leaves etcd before anything else changes in it.
//!
//! One more voter beside a sick one makes the quorum larger, and not the number of those that answer; one healthy voter less
//! makes the sick one count for more.

use super::member_change::voters;
use super::{Blocked, MemberChange};
use crate::inventory::EtcdMember;

/// Refuses to add a member, or to remove a healthy one, while another voter does not answer.
pub fn sick_member_first(members: &[EtcdMember], change: MemberChange) -> Option<Blocked> {
    let leaves_sick = members.iter().any(|member| change.is_about(member) && !member.is_sound());
    if leaves_sick {
        return None;
    }
    let sick = voters(members).find(|member| !member.is_sound())?;
    Some(Blocked::EtcdUnhealthy { member: sick.name.clone() })
}
