//! etcd goes up by one minor at a time, and from a patch that is known to work.
//!
//! Members of two minors live side by side while the control plane is replaced; of three, or of an old patch before some minors,
//! they do not.

use windlass_api::version::{KubernetesVersion, facts};

use super::Blocked;
use crate::inventory::EtcdMember;

/// Refuses a version of etcd that cannot be reached from that of every member. What is not known is not refused: a release
/// need not tag etcd with a version, and a member may not say which it runs.
pub fn etcd_step(tag: &str, members: &[EtcdMember]) -> Option<Blocked> {
    let to: KubernetesVersion = tag.parse().ok()?;
    members.iter().find_map(|member| {
        let at = member.version.as_ref()?;
        let why = if to < *at {
            format!("has {at}, and {to} is older")
        } else if !to.distance_from(at).is_within(0, 1) {
            format!("has {at}, and {to} is more than one minor ahead")
        } else {
            let floor = facts::etcd_floor(at.minor(), to.minor()).filter(|floor| at.patch() < *floor)?;
            format!("has {at}, and must have at least v{}.{floor} before it goes to {to}", at.minor())
        };
        Some(Blocked::EtcdStepRefused { member: member.shown(), why })
    })
}
