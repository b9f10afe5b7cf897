//! Namespaces and nodes.

use serde_json::{Value, json};

use super::{conditions, resources, spec_of};
use crate::builtin::fill::{child_or_new, fill, fill_zero, unset};

/// Namespace. Its name is a label too, so that selectors can choose by it.
pub(in crate::builtin) fn namespace(object: &mut Value) {
    spec_of(object);
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(status) = child_or_new(fields, "status") {
        fill_zero(status, "phase", "Active");
        conditions(status, &["lastTransitionTime"]);
    }
    label_with_name(object);
}

/// Sets the label with the name, once there is a name.
pub(in crate::builtin) fn label_with_name(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(name) = metadata.get("name").filter(|name| name.as_str().is_some_and(|name| !name.is_empty())) else {
        return;
    };
    let name = name.clone();
    if let Some(labels) = child_or_new(metadata, "labels") {
        labels.insert("kubernetes.io/metadata.name".into(), name);
    }
}

/// Node.
pub(in crate::builtin) fn node(object: &mut Value) {
    if let Some(spec) = spec_of(object) {
        pod_ranges(spec);
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    resources::amounts(status, "capacity");
    if unset(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".into(), capacity);
    }
    resources::amounts(status, "allocatable");
    conditions(status, &["lastHeartbeatTime", "lastTransitionTime"]);
    fill(status, "daemonEndpoints", json!({ "kubeletEndpoint": { "Port": 0 } }));
    if let Some(info) = child_or_new(status, "nodeInfo") {
        for fact in NODE_FACTS {
            fill(info, fact, "");
        }
    }
}

/// What a node always says of itself, even when it says nothing.
const NODE_FACTS: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];

/// The first of several ranges of pod addresses has a field of its own; each is filled in from the other.
fn pod_ranges(spec: &mut crate::builtin::fill::Fields) {
    if let Some(range) = spec.get("podCIDR").filter(|range| range.as_str().is_some_and(|range| !range.is_empty())) {
        // The older field decides where the two differ.
        let ranges = json!([range]);
        if spec.get("podCIDRs").and_then(|ranges| ranges.get(0)) != ranges.get(0) {
            spec.insert("podCIDRs".into(), ranges);
        }
    } else if let Some(first) = spec.get("podCIDRs").and_then(|ranges| ranges.get(0)).cloned() {
        spec.insert("podCIDR".into(), first);
    }
}
