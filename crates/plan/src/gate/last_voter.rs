//! The last voter of etcd never goes, and the last but one only while both answer.
//!
//! With the last voter goes the data. Of two voters both are needed for any change: when one does not answer, nothing can be
//! removed any more, and trying it is how the other one is lost, too.

use super::Blocked;
use super::member_change::voters;
use crate::inventory::EtcdMember;

/// Refuses to remove the last voter, or one of two that do not both answer.
pub fn last_voter(members: &[EtcdMember], leaving: u64) -> Option<Blocked> {
    let member = voters(members).find(|member| member.id == leaving)?;
    let safe = match voters(members).count() {
        0 | 1 => false,
        2 => voters(members).all(EtcdMember::is_sound),
        _ => true,
    };
    (!safe).then(|| Blocked::EtcdLastVoter { member: member.shown() })
}
