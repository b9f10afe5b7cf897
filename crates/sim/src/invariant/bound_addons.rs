//! D7: what is bound to a version runs on nodes of that version.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

pub(super) const RULE: Rule = Rule {
    id: "D7",
    demands: "A pod that is bound to a distribution is on a node of that distribution.",
    topics: &[Topic::Placement],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PodPlaced { pod: name, node } = fact else { return };
    let Some(bound) = cluster.workload.pods.get(name).and_then(|pod| pod.bound.as_ref()) else { return };
    let found = cluster.workload.nodes.get(node).and_then(|node| node.distribution.as_ref());
    if found != Some(bound) {
        let found = found.map_or("no distribution", |found| found);
        findings.breach(&**name, format!("Pod {name} is bound to {bound}, and {node} is of {found}"));
    }
}
