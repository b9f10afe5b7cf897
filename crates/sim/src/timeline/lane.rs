//! Which machine a fact is about.

use super::Lane;
use crate::truth::{Cluster, Fact, Role};

/// The machine that a fact is about, if it is about one, and what that is for.
pub(super) fn of(fact: &Fact, cluster: &Cluster) -> Option<Lane> {
    let name = machine(fact)?;
    let machine = cluster.machines.get(name);
    let is_control_plane = match fact {
        Fact::MachineDeleted { role, .. } => *role == Role::ControlPlane,
        Fact::MemberAdded { .. }
        | Fact::MemberStarted { .. }
        | Fact::MemberPromoted { .. }
        | Fact::MemberRemoved { .. }
        | Fact::MemberAlarmed { .. }
        | Fact::LeaderMoved { .. } => true,
        _ => {
            let by_machine = machine.map(|machine| machine.role == Role::ControlPlane);
            by_machine.or_else(|| Some(cluster.workload.nodes.get(name)?.control_plane)).unwrap_or_default()
        }
    };
    let pool = match fact {
        Fact::MachineDeleted { pool, .. } => pool.as_deref(),
        _ => machine.and_then(|machine| machine.pool.as_deref()),
    };
    let version = machine.and_then(|machine| machine.version.as_ref()).map(ToString::to_string);
    Some(Lane { machine: name.to_owned(), pool: pool.map(str::to_owned), control_plane: is_control_plane, version })
}

fn machine(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::MachineCreated { machine, .. }
        | Fact::MachineRunning { machine }
        | Fact::MachineDeleting { machine }
        | Fact::MachineWaits { machine, .. }
        | Fact::MachineRemediated { machine }
        | Fact::MachineDeleted { machine, .. } => Some(machine),
        Fact::KubeadmFailed { node, .. }
        | Fact::NodeRegistered { node, .. }
        | Fact::NodeReady { node }
        | Fact::NodeNotReady { node, .. }
        | Fact::NodeCordoned { node }
        | Fact::NodeUncordoned { node }
        | Fact::NodeGone { node, .. }
        | Fact::PodEvicted { node, .. }
        | Fact::MemberAdded { node, .. }
        | Fact::MemberStarted { node }
        | Fact::MemberPromoted { node }
        | Fact::MemberRemoved { node, .. }
        | Fact::MemberAlarmed { node, .. }
        | Fact::LeaderMoved { node } => Some(node),
        _ => None,
    }
}
