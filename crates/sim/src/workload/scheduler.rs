//! The scheduler: which node a pod goes to.

use std::collections::BTreeMap;

use super::seen::{Pod, Truth};
use super::view::View;
use super::write::PODS;
use super::{Workload, pod};

/// Finds nodes for the pods that have none.
pub(super) fn schedule(workload: &Workload, view: &View) {
    // What is bound in this round counts, too.
    let mut counts: BTreeMap<&str, usize> = view.nodes.keys().map(|node| (&**node, view.count_on(node))).collect();
    let now = workload.now();
    for key in &view.unscheduled {
        let Some(waiting) = view.pods.get(key) else { continue };
        match node_for(view, waiting, &counts) {
            Some(node) => {
                *counts.entry(node).or_default() += 1;
                workload.change(PODS, key, |object| pod::bind(object, node, now));
            }
            None if !waiting.known_unschedulable() => {
                workload.change(PODS, key, |object| pod::wait_for_node(object, now));
            }
            None => {}
        }
    }
}

/// The node with the fewest pods of those that are ready, not cordoned and fit; the first by name of several.
fn node_for<'a>(view: &'a View, pod: &Pod, counts: &BTreeMap<&'a str, usize>) -> Option<&'a str> {
    let ready = view.nodes.iter().filter(|(_, node)| node.ready() == Truth::True && !node.spec.unschedulable);
    let fitting = ready.filter(|(_, node)| pod.spec.fits(node)).map(|(name, _)| &**name);
    fitting.min_by_key(|name| (counts.get(name).copied().unwrap_or_default(), *name))
}
