//! V1: no kubelet is newer than an API server that it talks to.

use windlass_api::version::facts;

use super::exemption::KUBELET_OF_NEW_CONTROL_PLANE;
use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V1",
    demands: "No kubelet is newer than an API server that it can reach.",
    topics: &[Topic::Nodes, Topic::Request],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    let Some(oldest_of_all) = workload.serving().min_by_key(|(_, version)| *version) else { return };
    for (name, node) in &workload.nodes {
        let Some(kubelet) = node.kubelet.as_ref().filter(|_| workload.runs(name)) else { continue };
        // Nearly always.
        if kubelet.minor() <= oldest_of_all.1.minor() {
            continue;
        }
        let is_control_plane = cluster.is_of_control_plane(name);
        let is_local = is_control_plane && facts::kubelet_uses_local_api_server(kubelet);
        let beside = || workload.serving().find(|(server, _)| *server == &**name);
        let reached = if is_local { beside() } else { Some(oldest_of_all) };
        let Some((server, oldest)) = reached.filter(|(_, oldest)| kubelet.minor() > oldest.minor()) else { continue };
        let text = format!("the kubelet of {name} is {kubelet}, and the API server on {server} is {oldest}");
        // The new machine of the roll that is going on, and no other.
        let is_new = is_control_plane && cluster.rolls_to() == Some(kubelet);
        if KUBELET_OF_NEW_CONTROL_PLANE.covers(kubelet) && is_new {
            findings.exempt(&KUBELET_OF_NEW_CONTROL_PLANE, &**name, text);
        } else {
            findings.breach(&**name, text);
        }
    }
}
