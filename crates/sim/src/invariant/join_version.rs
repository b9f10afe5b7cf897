//! V9: Cluster API's workers join a control plane of their own minor, and one that is at rest.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V9",
    demands: "Where Cluster API rolls the control plane, a worker is made only at the minor of the control plane, and only when that \
              is of one version.",
    topics: &[Topic::Machines],
    check,
};

/// Before its first machine has said which version it has, a control plane is being made: workers may wait beside it.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineCreated { machine: name, role: Role::Worker, .. } = fact else { return };
    let Some(control_plane) = &cluster.control_plane else { return };
    let (Some(asked), Some(reached)) = (&control_plane.version, &control_plane.reached) else { return };
    let Some(version) = cluster.machines.get(name).and_then(|machine| machine.version.as_ref()) else { return };
    if reached != asked {
        let text = format!("Machine {name} is created while the control plane goes from {reached} to {asked}");
        findings.breach(&**name, text);
    } else if version.minor() != asked.minor() {
        findings.breach(&**name, format!("Machine {name} is created at {version}, and the control plane is {asked}"));
    }
}
