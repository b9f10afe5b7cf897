//! E1: etcd keeps its quorum.

use super::exemption::JOIN_AS_VOTER;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E1",
    demands: "More than half of the voters of etcd are healthy.",
    topics: &[Topic::Etcd, Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    let voters = workload.voters().count();
    // Until its first member has started there is no etcd that could lose anything.
    let has_begun = workload.voters().any(|(_, member)| member.started);
    if !has_begun || cluster.is_ending() {
        return;
    }
    let healthy = workload.voters().filter(|(node, member)| workload.is_healthy(node, member)).count();
    if healthy >= quorum(voters) {
        return;
    }
    let message = format!("{healthy} of {voters} voters of etcd are healthy, and {} are needed", quorum(voters));
    let mut joining = workload.voters().filter(|(_, member)| !member.started).map(|(node, _)| node);
    // No wider than one machine that joins, and that is switched on: without it there must be a quorum.
    let is_window = match (joining.next(), joining.next()) {
        (Some(node), None) => {
            let covered = workload.running.get(node).is_some_and(|kubeadm| JOIN_AS_VOTER.covers(kubeadm));
            covered && healthy >= quorum(voters - 1)
        }
        _ => false,
    };
    if is_window {
        findings.exempt(&JOIN_AS_VOTER, "quorum", message);
    } else {
        findings.breach("quorum", message);
    }
}

/// More than half.
pub(crate) fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}
