//! C7: an update does not change its target on the way.

use std::collections::BTreeSet;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "C7",
    demands: "The machines of a control plane are of the version that its update comes from, or of the one that it goes to.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineCreated { machine: name, role: Role::ControlPlane, .. } = fact else { return };
    let versions: BTreeSet<_> =
        cluster.machines_of(Role::ControlPlane).filter_map(|(_, machine)| machine.version.as_ref()).collect();
    let Some(version) = cluster.machines.get(name).and_then(|machine| machine.version.as_ref()) else { return };
    if let Some(update) = cluster.running_update() {
        if *version != update.from && *version != update.to {
            let text =
                format!("Machine {name} is created at {version}, by an update from {} to {}", update.from, update.to);
            findings.breach(&**name, text);
        }
    } else if versions.len() > 2 {
        let versions: Vec<String> = versions.into_iter().map(ToString::to_string).collect();
        findings.breach("versions", format!("the control plane is of {} at once", versions.join(", ")));
    }
}
