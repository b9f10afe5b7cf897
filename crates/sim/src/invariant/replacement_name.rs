//! C10: a name stands for one replacement.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C10",
    demands: "A machine takes the place of one other machine, and never of a second one.",
    topics: &[Topic::Machines],
    check,
};

/// Two names that were cut would lead to one replacement for two machines: the second of them would find it there.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineRebased { machine, was } = fact else { return };
    let now = cluster.machines.get(machine).and_then(|machine| machine.base.as_deref());
    let (was, now) = (was.as_deref().unwrap_or("nobody"), now.unwrap_or("nobody"));
    findings.breach(&**machine, format!("Machine {machine} took the place of {was}, and takes that of {now}"));
}
