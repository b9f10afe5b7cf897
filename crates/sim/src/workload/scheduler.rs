//! The scheduler: which node a pod goes to, and why to none.

use std::collections::BTreeMap;

use super::seen::{Node, PodSpec, Refusal, Room, Taint};
use super::view::View;
use super::write::PODS;
use super::{Workload, pod};

/// A node, and what is on it already.
struct Offer<'a> {
    node: &'a Node,
    pods: usize,
    left: Room,
}

/// Finds nodes for the pods that have none.
pub(super) fn schedule(workload: &Workload, view: &View) {
    if view.unscheduled.is_empty() {
        return;
    }
    let mut offers = BTreeMap::new();
    for (name, node) in &view.nodes {
        offers.insert(&**name, Offer { node, pods: view.count_on(name), left: view.left_on(name, node) });
    }
    let now = workload.now();
    for key in &view.unscheduled {
        let Some(waiting) = view.pods.get(key) else { continue };
        match node_for(&waiting.spec, &offers) {
            Ok(node) => {
                // What is bound in this round counts, too.
                if let Some(offer) = offers.get_mut(node) {
                    offer.pods += 1;
                    offer.left = offer.left.minus(waiting.spec.room());
                }
                workload.change(PODS, key, |object| pod::bind(object, node, now));
            }
            Err(message) if waiting.unschedulable() != Some(&message) => {
                workload.change(PODS, key, |object| pod::wait_for_node(object, &message, now));
            }
            Err(_) => {}
        }
    }
}

/// The node with the fewest pods of those that take the pod, and rather one that would not prefer others; the first by name of
/// several. Otherwise why it is none, as kube-scheduler says it.
fn node_for<'a>(spec: &PodSpec, offers: &BTreeMap<&'a str, Offer<'_>>) -> Result<&'a str, String> {
    let mut refusals: BTreeMap<Refusal, usize> = BTreeMap::new();
    let mut best = None;
    for (name, offer) in offers {
        if let Some(refusal) = spec.refusal(offer.node, offer.left) {
            *refusals.entry(refusal).or_default() += 1;
            continue;
        }
        let shunned = spec.kept_away_by(offer.node, &[Taint::PREFER_NO_SCHEDULE]).is_some();
        let rank = (shunned, offer.pods, *name);
        best = Some(best.map_or(rank, |best: (bool, usize, &'a str)| best.min(rank)));
    }
    best.map(|(_, _, name)| name).ok_or_else(|| explain(&refusals))
}

fn explain(refusals: &BTreeMap<Refusal, usize>) -> String {
    let nodes: usize = refusals.values().sum();
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = refusals.iter().map(|(refusal, count)| format!("{count} {refusal}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}
