//! D6: no pod of an add-on is brought to where it has no image.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Health, Pod, Topic};

pub(super) const RULE: Rule = Rule {
    id: "D6",
    demands: "The pods of our add-ons go only when others have come in their place, or with their nodes, and none of them is on a node \
              that has no image for it.",
    topics: &[Topic::Placement],
    check,
};

fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    match fact {
        Fact::AddonApplied { addon, object, careless: true, .. } => {
            findings
                .breach(object, format!("add-on {addon}: {object} may stop a pod before another runs in its place"));
        }
        Fact::PodPlaced { pod, node } => {
            let lacks = |pod: &Pod| pod.health == Health::LacksImage && pod.bound.is_some();
            if cluster.workload.pods.get(pod).is_some_and(lacks) {
                findings.breach(&**pod, format!("Pod {pod} is on {node}, which has no image for it"));
            }
        }
        _ => {}
    }
}
