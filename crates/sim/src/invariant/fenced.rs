//! E9: what is gone cannot start any more.
//!
//! A member of etcd that such a machine has left behind is E8's business. It is removed after the machine is gone, and not
//! before: only then can nobody start it.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E9",
    demands: "When a machine of the control plane is gone it is switched off: nothing can start on it any more.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineDeleted { machine, role: Role::ControlPlane, .. } = fact else { return };
    if cluster.is_ending() {
        return;
    }
    if cluster.workload.runs(machine) {
        findings.breach(&**machine, format!("Machine {machine} is gone, and is still switched on"));
    }
}
