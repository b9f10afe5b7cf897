//! Kubelets: nodes that come up, and containers that start and end.

use jiff::Timestamp;
use windlass_api::label;
use windlass_api::name::NodeName;
use windlass_apiserver::store::{Key, Range, Store};

use super::record::{Configuration, Machine, Stage};
use super::seen::{Life, Node, Pod, RestartPolicy, Truth};
use super::view::View;
use super::write::{NODES, PODS, set_condition};
use super::{Begins, Capacity, Workload, image, lifecycle, pod};

/// The network of a node's pods is there. The taints that kept pods away until then go in the same write: the controller that
/// removes them would come a moment later.
pub(super) fn node_ready(workload: &Workload, view: &View, node: &str) {
    if !view.is_on(node) || view.nodes.get(node).is_none_or(|node| node.heard() != Some(Truth::False)) {
        return;
    }
    let now = workload.now();
    workload.change(NODES, &Key::new("", node), |object| {
        set_condition(object, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
        lifecycle::taint(object, Truth::True, now);
    });
}

/// The pod, if it is as far as that and its kubelet is at work, and the machine that it is on.
fn on_machine<'a>(view: &'a View, key: &Key, is_so: impl Fn(Life) -> bool) -> Option<(&'a Pod, &'a Machine)> {
    let pod = view.pods.get(key).filter(|pod| pod.life().is_some_and(is_so))?;
    let node = pod.spec.node_name.as_deref()?;
    Some((pod, view.machines.get(node).filter(|_| view.is_on(node))?))
}

/// The containers of a pod run, if their images can be had.
pub(super) fn pod_started(workload: &Workload, view: &View, key: &Key) {
    let Some((pod, machine)) = on_machine(view, key, |life| life == Life::Starts) else { return };
    let now = workload.now();
    if workload.faults().crash_loops(workload.name(), key) {
        workload.change(PODS, key, |object| {
            pod::run(object, &machine.address, now);
            pod::crash(object, 1, now);
        });
        return;
    }
    workload.change(PODS, key, |object| match image::missing(machine, &pod.spec) {
        Some(image) => pod::miss_image(object, image, now),
        None => pod::run(object, &machine.address, now),
    });
}

/// A kubelet asks for an image less and less often; what is on a disk does not change, so that it is not asked for again.
pub(super) fn pull_given_up(workload: &Workload, view: &View, key: &Key) {
    let missed = |life| matches!(life, Life::ImageMissing { .. });
    let Some((pod, machine)) = on_machine(view, key, missed) else { return };
    let Some(image) = image::missing(machine, &pod.spec) else { return };
    workload.change(PODS, key, |object| pod::stop_pulling(object, image));
}

/// The containers of a pod have ended by themselves.
pub(super) fn containers_ended(workload: &Workload, view: &View, key: &Key) {
    let now = workload.now();
    let over = |life| matches!(life, Life::RunsUntil(at) if at <= now);
    let Some((pod, _)) = on_machine(view, key, over) else { return };
    let code = pod.exit_code();
    let for_good = match pod.spec.restart_policy {
        RestartPolicy::Never => true,
        RestartPolicy::OnFailure => code == 0,
        RestartPolicy::Always => false,
    };
    workload.change(
        PODS,
        key,
        |object| {
            if for_good { pod::finish(object, code, now) } else { pod::crash(object, code, now) }
        },
    );
}

/// The containers of a pod run once more.
pub(super) fn containers_restarted(workload: &Workload, view: &View, key: &Key) {
    let now = workload.now();
    let over = |life| matches!(life, Life::RestartsAt(at) if at <= now);
    let Some((_, machine)) = on_machine(view, key, over) else { return };
    if workload.faults().crash_loops(workload.name(), key) {
        workload.change(PODS, key, |object| pod::crash(object, 1, now));
        return;
    }
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
        // Nobody hears of it, and has not for long enough to say so.
        let lost = node.heard() == Some(Truth::Unknown);
        let machine = Machine {
            name: NodeName::new(&node.metadata.name).ok()?,
            address: node.address(),
            kubelet: node.kubelet().parse().ok()?,
            begins: if control_plane { Begins::JoinControlPlane } else { Begins::Join },
            booted_at: node.metadata.creation_timestamp.unwrap_or(now),
            stage: Stage::Done,
            on: !lost,
            off_at: lost.then(|| node.heard_at().unwrap_or(now)),
            gone_at: None,
            capacity: Capacity::default(),
            zone: None,
            images: node.images().into_iter().filter(|image| !image::has_registry(image)).collect(),
            configuration: Configuration::default(),
            failure: None,
            provider_id: node.spec.provider_id,
        };
        Some((machine, control_plane))
    };
    nodes.filter_map(machine).collect()
}
