//! O6: no machine runs that nobody knows.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "O6",
    demands: "A machine is switched on only for a Machine that cannot go unnoticed, and is off when that is gone.",
    topics: &[Topic::Nodes, Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    match fact {
        Fact::PoweredOn { node } if cluster.object.is_some() => match cluster.machines.get(node) {
            None => findings.breach(&**node, format!("{node} is switched on, and there is no such Machine")),
            Some(machine) if machine.finalizers == 0 => {
                findings.breach(&**node, format!("{node} is switched on, and its Machine could go unnoticed"));
            }
            Some(_) => {}
        },
        Fact::MachineDeleted { machine, .. } if cluster.workload.runs(machine) && !cluster.is_ending() => {
            findings.breach(&**machine, format!("Machine {machine} is gone, and is still switched on"));
        }
        _ => {}
    }
}
