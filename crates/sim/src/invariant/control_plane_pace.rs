//! C1: a control plane changes by one machine at a time.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C1",
    demands: "At most one machine of a control plane is being made or removed, and there is at most one more than asked for.",
    topics: &[Topic::Machines, Topic::Nodes, Topic::Request],
    check,
};

/// A machine is being made until its node has been ready for the first time; where Cluster API rolls the control plane, until
/// it serves and votes. Whoever asks for fewer machines has more of them for a while.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let mut unfinished = cluster
        .machines_of(Role::ControlPlane)
        .filter(|(name, machine)| machine.deleting || !cluster.has_joined(name, machine))
        .map(|(name, _)| name);
    if let (Some(first), Some(second)) = (unfinished.next(), unfinished.next()) {
        let all: Vec<&str> = [first, second].into_iter().chain(unfinished).collect();
        findings.breach("unfinished", format!("these are being made or removed at once: {}", all.join(", ")));
    }
    if !matches!(fact, Fact::MachineCreated { .. }) {
        return;
    }
    let count = cluster.machines_of(Role::ControlPlane).count();
    let wished = cluster.control_plane_count().map(|count| count as usize);
    if let Some(wished) = wished.filter(|wished| count > wished + 1) {
        findings.breach("count", format!("the control plane has {count} machines, and {wished} are asked for"));
    }
}
