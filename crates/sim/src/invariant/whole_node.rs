//! C2: one machine of the control plane is always whole.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C2",
    demands: "On one machine of the control plane at least, API server, controller manager, scheduler and etcd are all well.",
    topics: &[Topic::Nodes, Topic::Etcd],
    check,
};

/// A control plane has begun when its first machine has been ready.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let has_begun = cluster.machines_of(Role::ControlPlane).any(|(_, machine)| machine.settled);
    if !has_begun || cluster.is_ending() {
        return;
    }
    let workload = &cluster.workload;
    if !workload.programs.keys().any(|node| workload.is_whole(node)) {
        findings.breach("whole", "no machine of the control plane has all four programs well".to_owned());
    }
}
