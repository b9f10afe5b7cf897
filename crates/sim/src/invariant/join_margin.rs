//! E2: etcd could bear it if a new member never started.

use super::quorum::quorum;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E2",
    demands: "A member is added to etcd only if there is a quorum without it, and a machine goes only if there is one afterwards.",
    topics: &[Topic::Etcd, Topic::Machines],
    check,
};

/// The second member is the exception: with one voter there is no quorum of two without it.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let (node, is_added) = match fact {
        Fact::MemberAdded { node, .. } => (node, true),
        Fact::MachineDeleting { machine } => (machine, false),
        _ => return,
    };
    let workload = &cluster.workload;
    if !is_added && cluster.machines.get(node).is_none_or(|machine| machine.role != Role::ControlPlane) {
        return;
    }
    let others = || workload.voters().filter(|(voter, _)| **voter != **node);
    let healthy = others().filter(|(voter, member)| workload.is_healthy(voter, member)).count();
    let (before, voters) = (others().count(), others().count() + usize::from(is_added));
    // Who is not in etcd takes nothing away from it.
    let matters = if is_added { before > 1 } else { before > 0 && workload.members.contains_key(node) };
    if matters && healthy < quorum(voters) {
        let what = if is_added { "is added to etcd" } else { "is to go" };
        let text =
            format!("{node} {what}: {healthy} of {voters} voters answer without it, and {} are needed", quorum(voters));
        findings.breach(&**node, text);
    }
}
