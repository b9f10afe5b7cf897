//! W7: a node is deleted with its machine, and with no other.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W7",
    demands: "A node is deleted only when the machine that it is the node of is to go, or is lost.",
    topics: &[Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::NodeGone { node, provider_id } = fact else { return };
    let Some(machine) = cluster.machines.get(node) else { return };
    if cluster.is_ending() {
        return;
    }
    let is_other = provider_id.is_some() && machine.provider_id.is_some() && *provider_id != machine.provider_id;
    if machine.deleting && is_other {
        findings.breach(&**node, format!("Node {node} is deleted with Machine {node}, and is the node of another"));
    } else if !machine.deleting && !is_other && cluster.workload.runs(node) {
        findings.breach(&**node, format!("Node {node} is deleted, and its machine runs"));
    }
}
