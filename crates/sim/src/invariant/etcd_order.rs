//! E5: what does not answer leaves etcd before anything else changes in it.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E5",
    demands: "No member is added to etcd, and no healthy voter removed, while another voter is not healthy.",
    topics: &[Topic::Etcd],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let (changed, what) = match fact {
        Fact::MemberAdded { node, .. } => (node, "is added to"),
        Fact::MemberRemoved { node, healthy: true, member } if !member.learner => (node, "is removed from"),
        _ => return,
    };
    let workload = &cluster.workload;
    let others = workload.voters().filter(|(node, _)| **node != **changed);
    let unhealthy: Vec<&str> =
        others.filter(|(node, member)| !workload.is_healthy(node, member)).map(|(node, _)| node).collect();
    if !unhealthy.is_empty() {
        let unhealthy = unhealthy.join(", ");
        findings.breach(&**changed, format!("{changed} {what} etcd while these do not answer: {unhealthy}"));
    }
}
