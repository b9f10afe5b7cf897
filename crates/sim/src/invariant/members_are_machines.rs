//! E8: at rest, etcd is made of the machines of the control plane, and of nothing else.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E8",
    demands: "When no machine of the control plane comes or goes, each has a member of etcd, and each member a machine.",
    topics: &[Topic::Etcd, Topic::Machines],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let machines = || cluster.machines_of(Role::ControlPlane);
    let is_moving = cluster.running_update().is_some()
        || machines().any(|(name, machine)| machine.deleting || !cluster.has_joined(name, machine));
    let members = &cluster.workload.members;
    if is_moving || cluster.is_ending() || machines().next().is_none() || members.is_empty() {
        return;
    }
    let has_machine = |node: &str| cluster.machines.get(node).is_some_and(|machine| machine.role == Role::ControlPlane);
    for node in members.keys().filter(|node| !has_machine(node)) {
        findings.breach(&**node, format!("etcd has a member on {node}, and there is no such machine"));
    }
    for (name, _) in machines().filter(|(name, _)| !members.contains_key(*name)) {
        findings.breach(name, format!("Machine {name} of the control plane has no member of etcd"));
    }
}
