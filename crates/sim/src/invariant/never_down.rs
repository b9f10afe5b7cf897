//! V8: versions go up.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V8",
    demands: "No machine of a control plane is asked for at a version below that of another one which is there.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineCreated { machine: name, role: Role::ControlPlane, .. } = fact else { return };
    let Some(version) = cluster.machines.get(name).and_then(|machine| machine.version.as_ref()) else { return };
    let newest = cluster.machines_of(Role::ControlPlane).filter_map(|(other, machine)| {
        let version = machine.version.as_ref()?;
        (!machine.deleting && *other != **name).then_some((version, other))
    });
    if let Some((newest, other)) = newest.max().filter(|(newest, _)| version < newest) {
        findings.breach(&**name, format!("Machine {name} is created at {version}, and Machine {other} is at {newest}"));
    }
}
