//! V11: no object is left in a kind that the next version has no more.

use windlass_api::version::facts::has_pod_security_policy;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V11",
    demands: "No machine of a control plane is asked for at a version without PodSecurityPolicy while there are objects of that kind.",
    topics: &[Topic::Machines],
    check,
};

/// Of the kinds that Kubernetes has dropped, this is the one whose objects are not read under another name afterwards.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineCreated { machine: name, role: Role::ControlPlane, .. } = fact else { return };
    let Some(version) = cluster.machines.get(name).and_then(|machine| machine.version.as_ref()) else { return };
    let left = cluster.workload.security_policies;
    if left > 0 && !has_pod_security_policy(version) {
        let text =
            format!("Machine {name} is created at {version}, which has no PodSecurityPolicy, and there are {left}");
        findings.breach("policies", text);
    }
}
