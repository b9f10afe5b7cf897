//! C3: no machine of a control plane goes before another has taken its place.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C3",
    demands: "A machine of a control plane is removed only when the node of its replacement is ready.",
    topics: &[Topic::Machines],
    check,
};

/// Machines that replace each other in a row share the base of their names.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineDeleting { machine: name } = fact else { return };
    let Some(old) = cluster.machines.get(name).filter(|old| old.role == Role::ControlPlane) else { return };
    if cluster.is_ending() {
        return;
    }
    let is_ready = |node: &str| cluster.workload.nodes.get(node).is_some_and(|node| node.ready);
    let mut replacements =
        cluster.machines_of(Role::ControlPlane).filter(|(_, other)| !other.deleting && other.base == old.base);
    if old.base.is_none() || !replacements.any(|(other, _)| is_ready(other)) {
        findings.breach(&**name, format!("Machine {name} is to be deleted, and no replacement of it has a ready node"));
    }
}
