//! W6: who waits for a budget says so.

use jiff::SignedDuration;

use super::{Findings, Rule};
use crate::truth::{Cluster, Fact, Topic};

/// How long a machine may wait before it has to say what for.
const SILENCE_MAX: SignedDuration = SignedDuration::from_secs(60);

pub(super) const RULE: Rule = Rule {
    id: "W6",
    demands: "A machine that cannot be emptied because of a budget says within a minute that it is being drained.",
    topics: &[Topic::Machines, Topic::Nodes, Topic::Departures],
    check,
};

/// Whether it is seen depends on something else happening in the cluster after the minute: silence writes nothing.
fn check(cluster: &Cluster, _: &Fact, findings: &mut Findings) {
    let workload = &cluster.workload;
    // Nearly always.
    if workload.budgets.is_empty() || cluster.is_ending() {
        return;
    }
    for (name, machine) in cluster.machines.iter().filter(|(_, machine)| machine.deleting) {
        let since = machine.removal.since.filter(|since| cluster.now.duration_since(*since) > SILENCE_MAX);
        let says = machine.removal.waits_for.as_ref().is_some_and(|(reason, _)| !reason.is_empty());
        if since.is_none() || says || machine.removal.drain_is_over(cluster.now) {
            continue;
        }
        let held = workload.pods.iter().find(|(key, pod)| {
            let is_of = |budget: &str| {
                budget.split_once('/').map(|(place, _)| place) == key.split_once('/').map(|(place, _)| place)
            };
            let mut budgets = workload.budgets.iter().filter(|(budget, _)| is_of(budget));
            pod.node == *name
                && pod.must_leave()
                && budgets.any(|(_, budget)| budget.allowed <= 0 && budget.covers(&pod.labels))
        });
        if let Some((pod, _)) = held {
            findings.breach(
                &**name,
                format!("Machine {name} waits for Pod {pod}, which a budget keeps, and does not say so"),
            );
        }
    }
}
