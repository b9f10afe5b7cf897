//! V1: no kubelet is newer than an API server that it talks to.

use windlass_api::version::facts;

use super::exemption::KUBELET_OF_NEW_CONTROL_PLANE;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic, Update};

pub(super) const RULE: Rule = Rule {
    id: "V1",
    demands: "No kubelet is newer than an API server that it can reach.",
    topics: &[Topic::Nodes, Topic::Request],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    for (name, node) in &workload.nodes {
        let Some(kubelet) = node.kubelet.as_ref().filter(|_| workload.runs(name)) else { continue };
        let is_local = node.control_plane && facts::kubelet_uses_local_api_server(kubelet);
        let reached = workload.serving().filter(|(server, _)| !is_local || *server == &**name);
        let Some((server, oldest)) = reached.min_by_key(|(_, version)| *version) else { continue };
        if kubelet.minor() <= oldest.minor() {
            continue;
        }
        let text = format!("the kubelet of {name} is {kubelet}, and the API server on {server} is {oldest}");
        // The new machine of the update that is running, and no other.
        let is_new = |update: &Update| node.control_plane && *kubelet == update.to;
        if KUBELET_OF_NEW_CONTROL_PLANE.covers(kubelet) && cluster.running_update().is_some_and(is_new) {
            findings.exempt(&KUBELET_OF_NEW_CONTROL_PLANE, &**name, text);
        } else {
            findings.breach(&**name, text);
        }
    }
}
