//! What becomes of a pod, written into it.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::time;

use super::seen::Template;
use super::write::set_condition;

/// A pod from a template, with one label more.
pub(super) fn from_template(template: &Template, hash_label: &str, hash: &str, owner: Value) -> Value {
    // The template is a part of an object in the store, which is JSON.
    let mut pod: Value = serde_json::from_str(template.0.get()).unwrap_or_default();
    pod["metadata"]["labels"][hash_label] = hash.into();
    pod["metadata"]["ownerReferences"] = owner;
    pod["status"] = json!({"phase": "Pending"});
    pod
}

/// Binds it to a node.
pub(super) fn bind(pod: &mut Value, node: &str, now: Timestamp) {
    pod["spec"]["nodeName"] = node.into();
    set_condition(pod, "PodScheduled", "True", "", "", now);
}

/// Says that no node fits.
pub(super) fn wait_for_node(pod: &mut Value, now: Timestamp) {
    let message = "no node that is ready has what the pod selects and lets it in";
    set_condition(pod, "PodScheduled", "False", "Unschedulable", message, now);
}

/// Its containers run, and answer.
pub(super) fn run(pod: &mut Value, host: &str, now: Timestamp) {
    let started = time::format(now);
    let status = |container: &Value| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": started}},
        })
    };
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let containers: Vec<Value> = containers.iter().map(status).collect();
    pod["status"]["phase"] = "Running".into();
    pod["status"]["hostIP"] = host.into();
    pod["status"]["startTime"] = started.clone().into();
    pod["status"]["containerStatuses"] = containers.into();
    for condition in ["Initialized", "ContainersReady", "Ready"] {
        set_condition(pod, condition, "True", "", "", now);
    }
}

/// Nobody hears of it any more.
pub(super) fn lose(pod: &mut Value, now: Timestamp) {
    set_condition(pod, "Ready", "False", "NodeNotReady", "the kubelet of its node is silent", now);
}
