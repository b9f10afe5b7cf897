//! C3: no machine of a control plane goes before another has taken its place.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Machine, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C3",
    demands: "A machine of a control plane is removed only when the node of its replacement is ready, has the label of a control \
              plane, and serves.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineDeleting { machine: name } = fact else { return };
    let Some(old) = cluster.machines.get(name).filter(|old| old.role == Role::ControlPlane) else { return };
    if cluster.is_ending() {
        return;
    }
    let is_replaced = match &cluster.control_plane {
        None => has_replacement(cluster, old),
        Some(control_plane) => {
            // One that is not well is replaced by being removed first; Cluster API counts before it does so.
            let needed = (control_plane.replicas as usize).saturating_sub(usize::from(control_plane.goes_first));
            !cluster.workload.serves_and_votes(name)
                || old.removal.is_remedy
                || cluster.machines_of(Role::ControlPlane).filter(|(other, m)| takes_over(cluster, other, m)).count()
                    >= needed
        }
    };
    if !is_replaced {
        findings.breach(&**name, format!("Machine {name} is to be deleted, and no replacement of it has a ready node"));
    }
}

/// Machines that replace each other in a row share the base of their names.
fn has_replacement(cluster: &Cluster, old: &Machine) -> bool {
    let mut others = cluster.machines_of(Role::ControlPlane).filter(|(_, other)| other.base == old.base);
    let is_ready = |node: &str| cluster.workload.nodes.get(node).is_some_and(|node| node.ready && node.control_plane);
    old.base.is_some() && others.any(|(other, machine)| !machine.deleting && is_ready(other))
}

fn takes_over(cluster: &Cluster, name: &str, machine: &Machine) -> bool {
    !machine.deleting && cluster.has_joined(name, machine)
}
