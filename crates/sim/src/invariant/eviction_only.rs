//! W1: pods leave a machine by being evicted.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Health, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W1",
    demands: "Whoever empties a machine that is to go asks the Eviction API, until the time for that is over.",
    topics: &[Topic::Departures],
    check,
};

/// Those who made a pod may take it away, whatever becomes of its machine; and who looks after nodes takes away what is lost.
/// The Eviction API itself leaves no trace on a pod that is not ready.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PodKilled { pod, node } = fact else { return };
    let Some(machine) = cluster.machines.get(node).filter(|machine| machine.deleting) else { return };
    let is_reachable = cluster.workload.nodes.get(node).is_some_and(|node| node.ready) && cluster.workload.runs(node);
    let empties = cluster.actor.is_some_and(crate::actor::Actor::empties_machines);
    let leaves = cluster.workload.pods.get(pod).is_some_and(|pod| pod.must_leave() && pod.health == Health::Ready);
    if empties && leaves && is_reachable && !machine.removal.drain_is_over(cluster.now) && !cluster.is_ending() {
        findings.breach(&**pod, format!("Pod {pod} is deleted from {node} without an eviction"));
    }
}
