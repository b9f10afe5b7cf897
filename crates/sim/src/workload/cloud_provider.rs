//! The cloud provider: it deletes the node of a machine that the infrastructure has no more, as the node lifecycle controller of a
//! cloud-controller-manager does. Mostly the Machine was faster; not where the API did not answer when the Machine went.

use windlass_apiserver::store::{Key, Resource};

use super::Workload;
use super::view::View;
use super::write::NODES;

/// Looks for the machine of a node that nobody hears of.
pub(super) fn look(workload: &Workload, view: &View, node: &str) {
    let is_gone = view.machines.get(node).is_some_and(|machine| machine.gone_at.is_some());
    let store = workload.server().store();
    let key = Key::new("", node);
    let Some(entry) = store.get(NODES, &key).filter(|_| is_gone && view.is_silent(node, workload.now())) else {
        return;
    };
    let last = entry.to_value("", "");
    // Whoever was faster has deleted it.
    drop(store.remove(&Resource::from(NODES), &key, entry.revision, last, workload.now()));
}
