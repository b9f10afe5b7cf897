//! Namespaces and nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, UNKNOWN, age, condition, flag, joined, list, name, text, text_or};
use crate::builtin::Column;

/// The columns of [`namespace`].
pub(in crate::builtin) const NAMESPACE_COLUMNS: &[Column] = &[Column::NAME, Column::string("Status"), Column::AGE];

/// `Namespace`.
pub(in crate::builtin) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["status"]["phase"]).into(), age(object, now)]
}

/// The columns of [`node`].
pub(in crate::builtin) const NODE_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Status"),
    Column::string("Roles"),
    Column::AGE,
    Column::string("Version"),
    Column::wide("Internal-IP"),
    Column::wide("External-IP"),
    Column::wide("OS-Image"),
    Column::wide("Kernel-Version"),
    Column::wide("Container-Runtime"),
];

/// `Node`.
pub(in crate::builtin) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let info = &status["nodeInfo"];
    let mut kernel = text_or(&info["kernelVersion"], UNKNOWN).to_owned();
    let architecture = text(&info["architecture"]);
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        name(object),
        readiness(object).into(),
        roles(&object["metadata"]["labels"]).into(),
        age(object, now),
        text(&info["kubeletVersion"]).into(),
        address(status, "InternalIP").into(),
        address(status, "ExternalIP").into(),
        text_or(&info["osImage"], UNKNOWN).into(),
        kernel.into(),
        text_or(&info["containerRuntimeVersion"], UNKNOWN).into(),
    ]
}

fn readiness(object: &Value) -> String {
    let status = &object["status"];
    let known = list(&status["conditions"]).iter().any(|condition| condition["type"] == "Ready");
    let ready = match (known, condition(status, "Ready")) {
        (false, _) => "Unknown",
        (true, true) => "Ready",
        (true, false) => "NotReady",
    };
    let cordoned = if flag(&object["spec"]["unschedulable"]) { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

fn roles(labels: &Value) -> String {
    let roles: BTreeSet<&str> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { joined(roles.into_iter()) }
}

fn address<'a>(status: &'a Value, kind: &str) -> &'a str {
    let found = list(&status["addresses"]).iter().find(|address| address["type"] == kind);
    found.map_or(NONE, |address| text(&address["address"]))
}
