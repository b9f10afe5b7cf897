//! Why something happened, as far as it can be told from what was true when it did.

use crate::actor::Actor;
use crate::truth::{Cluster, Fact, Machine, Role};

/// The reason for a fact, in words that go on after "because" or ":".
pub(super) fn of(fact: &Fact, cluster: &Cluster) -> Option<String> {
    match fact {
        Fact::MachineCreated { machine, .. } => creation(cluster, cluster.machines.get(machine)?),
        Fact::MachineDeleting { machine } => removal(cluster, cluster.machines.get(machine)?),
        Fact::PoolSwitched { .. } | Fact::JobCreated { .. } | Fact::AddonApplied { .. } | Fact::AddonRemoved { .. } => {
            Some(format!("ClusterUpdate {}", cluster.running_update()?.name))
        }
        Fact::NodeNotReady { why, .. } => why.as_deref().map(str::to_owned),
        Fact::NodeCordoned { node } | Fact::PodEvicted { node, .. } | Fact::NodeGone { node, .. } => {
            let machine = cluster.machines.get(node).filter(|machine| machine.deleting);
            machine.map(|_| format!("Machine {node} is to be deleted"))
        }
        Fact::MemberRemoved { node, .. } => {
            let replaced = cluster.machines.get(node)?;
            replaced_by(cluster, replaced)
        }
        _ => None,
    }
}

/// Who acted. What nobody says that he did was done by a person, or by etcd itself.
pub(super) fn actor(fact: &Fact, cluster: &Cluster) -> Actor {
    let is_of_etcd = matches!(fact, Fact::LeaderMoved { .. } | Fact::MemberPromoted { .. });
    match cluster.actor {
        Some(Actor::Kubernetes) if is_of_etcd => Actor::Etcd,
        Some(actor) => actor,
        None => Actor::Person,
    }
}

fn creation(cluster: &Cluster, machine: &Machine) -> Option<String> {
    if let Some(update) = cluster.running_update().filter(|update| update.brings(machine)) {
        return Some(format!("ClusterUpdate {}", update.name));
    }
    match machine.role {
        Role::ControlPlane => {
            let control_plane = cluster.control_plane.as_ref()?;
            let others = cluster.machines_of(Role::ControlPlane).filter(|(_, other)| other.version != machine.version);
            let oldest = others.filter_map(|(_, other)| other.version.as_ref()).min();
            Some(match oldest {
                Some(oldest) => format!("KubeadmControlPlane {} goes on from {oldest}", control_plane.name),
                None => format!("KubeadmControlPlane {} has {} machines", control_plane.name, control_plane.replicas),
            })
        }
        Role::Worker => Some(format!("MachineDeployment {}", machine.pool.as_deref()?)),
    }
}

fn removal(cluster: &Cluster, machine: &Machine) -> Option<String> {
    if cluster.is_ending() {
        return Some("the cluster is to be deleted".to_owned());
    }
    if machine.removal.is_remedy {
        return Some("it is not well".to_owned());
    }
    replaced_by(cluster, machine).or_else(|| {
        let pool = machine.pool.as_ref()?;
        let is_old = cluster.pools.get(pool).is_some_and(|now| now.version != machine.version);
        Some(if is_old {
            format!("MachineDeployment {pool} is at another version")
        } else {
            format!("MachineDeployment {pool}")
        })
    })
}

/// The version that takes the place of a machine of the control plane.
fn replaced_by(cluster: &Cluster, machine: &Machine) -> Option<String> {
    let to =
        cluster.rolls_to().filter(|to| machine.role == Role::ControlPlane && machine.version.as_ref() != Some(*to))?;
    Some(format!("the control plane goes to {to}"))
}
