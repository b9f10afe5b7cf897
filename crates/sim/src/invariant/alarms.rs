//! E13: nothing changes in a control plane whose etcd raises an alarm.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "E13",
    demands: "No machine of a control plane is made or removed while a member of etcd raises an alarm.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let (Fact::MachineCreated { machine, .. } | Fact::MachineDeleting { machine }) = fact else { return };
    let is_of_it = cluster.machines.get(machine).is_some_and(|machine| machine.role == Role::ControlPlane);
    let mut alarmed = cluster.workload.troubles.iter().filter(|(_, trouble)| !trouble.alarms.is_empty());
    if let Some((node, trouble)) = alarmed.next().filter(|_| is_of_it && !cluster.is_ending()) {
        let alarms: Vec<&str> = trouble.alarms.iter().map(|alarm| &**alarm).collect();
        let text = format!("Machine {machine} comes or goes while etcd on {node} complains: {}", alarms.join(", "));
        findings.breach(&**machine, text);
    }
}
