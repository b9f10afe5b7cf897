//! C1: a control plane changes by one machine at a time.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C1",
    demands: "At most one machine of a control plane is being made or removed, and there is at most one more than asked for.",
    topics: &[Topic::Machines, Topic::Nodes, Topic::Request],
    check,
};

/// A machine is being made until its node has been ready for the first time.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    if cluster.is_ending() {
        return;
    }
    let machines = || cluster.machines_of(Role::ControlPlane);
    let unfinished: Vec<&str> =
        machines().filter(|(_, machine)| machine.deleting || !machine.settled).map(|(name, _)| name).collect();
    if unfinished.len() > 1 {
        findings.breach("unfinished", format!("these are being made or removed at once: {}", unfinished.join(", ")));
    }
    let count = machines().count();
    let wished = cluster.wish.as_ref().map(|wish| wish.control_plane_count as usize);
    if let Some(wished) = wished.filter(|wished| count > wished + 1) {
        findings.breach("count", format!("the control plane has {count} machines, and {wished} are asked for"));
    }
}
