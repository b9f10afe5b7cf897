//! C5: after an update has failed, nothing is tried until somebody has looked.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C5",
    demands: "While a cluster says that its update has failed, no machine of its control plane is made or removed.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let (Fact::MachineCreated { machine, .. } | Fact::MachineDeleting { machine }) = fact else { return };
    let is_of_it = cluster.machines.get(machine).is_some_and(|machine| machine.role == Role::ControlPlane);
    let has_failed = cluster.wish.as_ref().is_some_and(|wish| wish.phase.as_deref() == Some("updateFailed"));
    if is_of_it && has_failed && !cluster.is_ending() {
        findings.breach(&**machine, format!("Machine {machine} comes or goes after the update has failed"));
    }
}
