//! Of a machine and the one that takes its place, one is always well.
//!
//! The old one goes when the new one is a healthy node and votes in etcd. A new one that did not become healthy is made anew only
//! while the old one still does its work: otherwise it may be all that there is.

use windlass_api::name::{NameLimit, UpdateId, replacement_name};

use super::{Blocked, control_plane_healthy::not_ready};
use crate::inventory::{EtcdMember, Machine, MachineState};

/// Refuses to take a machine away in an update while the one that stays in its place is not well.
pub fn replacement_healthy(
    machines: &[Machine],
    members: &[EtcdMember],
    leaving: &Machine,
    update: UpdateId,
) -> Option<Blocked> {
    let refuse = |why: String| Some(Blocked::SuccessorNotReady { machine: leaving.name.clone(), why });
    let replacement = replacement_name(leaving.row(), update, NameLimit::LabelValue);
    let is_successor = |machine: &&Machine| {
        let is_partner =
            if leaving.name == replacement { machine.name != replacement } else { machine.name == replacement };
        machine.row() == leaving.row() && is_partner
    };
    let Some(successor) = machines.iter().find(is_successor) else {
        return refuse("nothing has taken its place".to_owned());
    };
    // An old machine that stays because the new one failed need only do its work.
    let stands_in = leaving.name == replacement && matches!(successor.state, MachineState::Unhealthy { .. });
    if let Some(blocked) = not_ready(successor).filter(|_| !stands_in) {
        return refuse(blocked.to_string());
    }
    let votes = members.iter().any(|member| member.name == successor.node() && member.is_sound());
    if votes { None } else { refuse(format!("Machine {} does not vote in etcd", successor.name)) }
}
