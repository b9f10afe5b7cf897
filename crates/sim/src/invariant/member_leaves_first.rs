//! E7: a machine leaves etcd before it goes.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E7",
    demands: "A machine that is to go is not switched off while it is a voter of etcd.",
    topics: &[Topic::Nodes],
    check,
};

/// A machine that fails is off before anybody decides that it is to go: its member is removed afterwards.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PoweredOff { node } = fact else { return };
    let is_going = |role| cluster.machines.get(node).is_some_and(|machine| machine.deleting && machine.role == role);
    let votes = cluster.workload.members.get(node).is_some_and(|member| member.started && !member.learner);
    if votes && is_going(Role::ControlPlane) && !cluster.is_ending() {
        findings.breach(&**node, format!("Machine {node} is switched off, and is still a voter of etcd"));
    }
}
