//! Nothing changes in a control plane whose etcd raises an alarm.
//!
//! Without space no member can be added or removed, and from corrupt data a new member would get corrupt data.

use super::Blocked;
use crate::inventory::EtcdMember;

/// Refuses to change the control plane while a member of etcd warns of something.
pub fn no_alarms(members: &[EtcdMember]) -> Option<Blocked> {
    members.iter().find_map(|member| {
        let alarm = *member.alarms.first()?;
        Some(Blocked::EtcdAlarm { member: member.shown(), alarm })
    })
}
