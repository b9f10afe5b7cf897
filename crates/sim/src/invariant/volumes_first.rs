//! W5: a machine goes after its volumes.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W5",
    demands: "A machine that is to go is switched off only when no volume is attached to it, or the time for that is over.",
    topics: &[Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PoweredOff { node } = fact else { return };
    let Some(machine) = cluster.machines.get(node).filter(|machine| machine.deleting) else { return };
    let attached = cluster.workload.attachments.iter().find(|(_, to)| *to == node);
    if let Some((volume, _)) = attached.filter(|_| !machine.removal.detach_is_over(cluster.now) && !cluster.is_ending())
    {
        findings.breach(&**node, format!("Machine {node} is switched off, and {volume} is attached to it"));
    }
}
