//! W4: a node is closed before it is emptied.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, PodSort, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W4",
    demands: "From a machine that is to go, pods are evicted only when its node takes no new ones; those of DaemonSets and static ones \
              stay.",
    topics: &[Topic::Departures],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PodEvicted { pod, node } = fact else { return };
    if !cluster.machines.get(node).is_some_and(|machine| machine.deleting) {
        return;
    }
    // Where somebody has deleted the Node, no pod comes either.
    if cluster.workload.nodes.get(node).is_some_and(|node| !node.cordoned) {
        findings.breach(&**node, format!("Pod {pod} is evicted from {node}, which takes new pods"));
    }
    match cluster.workload.pods.get(pod).map(|pod| pod.sort) {
        Some(PodSort::Daemon) => {
            findings.breach(&**pod, format!("Pod {pod} is evicted, and comes back from its DaemonSet"));
        }
        Some(PodSort::Static) => findings.breach(&**pod, format!("Pod {pod} is evicted, and is static")),
        Some(PodSort::Other) | None => {}
    }
}
