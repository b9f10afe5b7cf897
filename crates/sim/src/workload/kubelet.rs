//! Kubelets, and what the node controller makes of their silence.

use jiff::Timestamp;
use windlass_api::label;
use windlass_api::name::NodeName;
use windlass_apiserver::store::{Key, Range, Store};

use super::record::{Configuration, Machine, Stage};
use super::seen::{Node, Truth};
use super::view::View;
use super::write::{NODES, PODS, set_condition};
use super::{Begins, Workload, pod};

/// The network of a node's pods is there.
pub(super) fn node_ready(workload: &Workload, view: &View, node: &str) {
    if !view.is_on(node) || view.nodes.get(node).is_none_or(|node| node.ready() != Truth::False) {
        return;
    }
    let now = workload.now();
    workload.change(NODES, &Key::new("", node), |object| {
        set_condition(object, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
    });
}

/// A kubelet has been silent for too long: nobody knows how its node is, and its pods do not count any more.
pub(super) fn node_lost(workload: &Workload, view: &View, node: &str) {
    let now = workload.now();
    if !view.is_silent(node, now) || view.nodes.get(node).is_none_or(|node| node.ready() == Truth::Unknown) {
        return;
    }
    workload.change(NODES, &Key::new("", node), |object| {
        set_condition(object, "Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", now);
    });
    for (key, _) in view.pods_on(node).filter(|(_, pod)| pod.ready()) {
        workload.change(PODS, key, |object| pod::lose(object, now));
    }
}

/// Nobody waits any longer for a lost node: its pods are to end, so that others take their place. They are shown until the node
/// is deleted, as nobody can tell whether they have ended.
pub(super) fn pods_given_up(workload: &Workload, view: &View, node: &str) {
    if !view.is_silent(node, workload.now()) || !view.nodes.contains_key(node) {
        return;
    }
    for (key, _) in view.pods_on(node).filter(|(_, pod)| pod.active() && !view.stays(pod)) {
        workload.delete_pod(key);
    }
}

/// The containers of a pod run.
pub(super) fn pod_started(workload: &Workload, view: &View, key: &Key) {
    let Some(pod) = view.pods.get(key).filter(|pod| pod.starts()) else { return };
    let node = pod.spec.node_name.as_deref().unwrap_or_default();
    let Some(machine) = view.machines.get(node).filter(|_| view.is_on(node)) else { return };
    let now = workload.now();
    workload.change(PODS, key, |object| pod::run(object, &machine.address, now));
}

/// The containers of a pod have ended. One whose kubelet is silent waits for its node to be deleted.
pub(super) fn pod_ended(view: &mut View, key: &Key) {
    let Some(pod) = view.pods.get(key).filter(|pod| pod.deleting() && pod.metadata.finalizers.is_empty()) else {
        return;
    };
    if pod.spec.node_name.as_deref().is_none_or(|node| view.is_on(node)) {
        view.ended.insert(key.clone());
    }
}

/// The machines that there must be if these are the nodes, and whether they are of the control plane.
pub(super) fn machines_behind_nodes(store: &Store, now: Timestamp) -> Vec<(Machine, bool)> {
    let range = Range { namespace: None, after: None, limit: 0 };
    let nodes = store.list(NODES, range, |_| true).entries;
    let nodes = nodes.iter().filter_map(|entry| serde_json::from_slice::<Node>(&entry.json).ok());
    let machine = |node: Node| {
        let labels = &node.metadata.labels;
        let control_plane =
            [label::NODE_CONTROL_PLANE.name, label::NODE_MASTER.name].iter().any(|label| labels.contains_key(*label));
        let machine = Machine {
            name: NodeName::new(&node.metadata.name).ok()?,
            address: node.address(),
            kubelet: node.kubelet().parse().ok()?,
            provider_id: node.spec.provider_id,
            begins: if control_plane { Begins::JoinControlPlane } else { Begins::Join },
            booted_at: node.metadata.creation_timestamp.unwrap_or(now),
            stage: Stage::Done,
            on: true,
            off_at: None,
            configuration: Configuration::default(),
        };
        Some((machine, control_plane))
    };
    nodes.filter_map(machine).collect()
}
