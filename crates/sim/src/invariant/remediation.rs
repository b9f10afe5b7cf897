//! C8: a machine that is not well is replaced alone.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C8",
    demands: "A machine of a control plane is remediated only if no other one comes or goes, and if it is not the only one.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineDeleting { machine: name } = fact else { return };
    let is_remedy = |machine: &crate::truth::Machine| machine.role == Role::ControlPlane && machine.removal.is_remedy;
    if !cluster.machines.get(name).is_some_and(is_remedy) || cluster.is_ending() {
        return;
    }
    let mut others = cluster.machines_of(Role::ControlPlane).filter(|(other, _)| **other != **name).peekable();
    if others.peek().is_none() {
        findings.breach(&**name, format!("Machine {name} is remediated, and is the only one of the control plane"));
    }
    let moving = others.find(|(other, machine)| machine.deleting || !cluster.has_joined(other, machine));
    if let Some((other, _)) = moving {
        findings.breach(&**name, format!("Machine {name} is remediated while Machine {other} comes or goes"));
    }
}
