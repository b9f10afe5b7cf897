//! V2: no kubelet is much older than an API server that it talks to.

use windlass_api::version::facts::behind_max;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "V2",
    demands: "No kubelet is more than three minors older than an API server of its cluster (two below 1.25).",
    topics: &[Topic::Nodes],
    check,
};

fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    let Some((server, newest)) = workload.serving().max_by_key(|(_, version)| *version) else { return };
    for (name, node) in &workload.nodes {
        let Some(kubelet) = node.kubelet.as_ref().filter(|_| workload.runs(name)) else { continue };
        if !kubelet.distance_from(newest).is_within(behind_max(kubelet), u64::MAX) {
            findings.breach(
                &**name,
                format!("the kubelet of {name} is {kubelet}, and the API server on {server} is {newest}"),
            );
        }
    }
}
