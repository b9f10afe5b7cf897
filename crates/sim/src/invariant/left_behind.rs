//! V7: a control plane does not go where its nodes cannot follow.

use windlass_api::version::facts::behind_max;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Role, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V7",
    demands: "A machine of the control plane is asked for only at a version that no kubelet and no kube-proxy is too old for.",
    topics: &[Topic::Machines],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::MachineCreated { machine, role: Role::ControlPlane, .. } = fact else { return };
    let Some(to) = cluster.machines.get(machine).and_then(|machine| machine.version.as_ref()) else { return };
    let workload = &cluster.workload;
    let kubelets = workload.nodes.iter().filter_map(|(name, node)| Some(("kubelet", name, node.kubelet.as_ref()?)));
    let proxies = workload.proxies.values().map(|proxy| ("kube-proxy", &proxy.node, &proxy.version));
    for (what, node, version) in kubelets.chain(proxies).filter(|(_, node, _)| workload.runs(node)) {
        if !version.distance_from(to).is_within(behind_max(version), u64::MAX) {
            let text = format!("Machine {machine} is created at {to}, and the {what} of {node} is {version}");
            findings.breach(format!("{what} {node}"), text);
        }
    }
}
