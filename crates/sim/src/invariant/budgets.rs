//! W2: no budget of pods is overdrawn.

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Health, Topic};

pub(super) const RULE: Rule = Rule {
    id: "W2",
    demands: "A pod is evicted only if each budget that covers it allows one more to go.",
    topics: &[Topic::Departures],
    check,
};

/// Whoever was let go is on the list of its budget, which by then allows one less. A pod that has ended needs no leave.
fn check(cluster: &Cluster, fact: &Fact, findings: &mut Findings) {
    let Fact::PodEvicted { pod: key, .. } = fact else { return };
    let (Some(pod), Some((namespace, name))) = (cluster.workload.pods.get(key), key.split_once('/')) else { return };
    if pod.health == Health::Ended {
        return;
    }
    for (budget_key, budget) in &cluster.workload.budgets {
        let is_beside = budget_key.split_once('/').is_some_and(|(place, _)| place == namespace);
        if is_beside && budget.covers(&pod.labels) && budget.allowed <= 0 && !budget.letting_go.contains(name) {
            findings.breach(&**key, format!("Pod {key} is evicted, and its budget {budget_key} allows none to go"));
        }
    }
}
