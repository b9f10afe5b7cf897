//! The cells of `kubectl get`, one per column, as Kubernetes prints them.
//!
//! A server always fills in the wide columns too; kubectl leaves them out.

pub(super) mod cluster;
pub(super) mod config;
pub(super) mod event;
pub(super) mod meta;
pub(super) mod network;
pub(super) mod pod;
mod selector;
pub(super) mod storage;
pub(super) mod workload;

use jiff::Timestamp;
use serde_json::Value;

use crate::age;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const UNSET: &str = "<unset>";

/// How many of several things are shown before the rest is only counted.
const SHOWN: usize = 3;

/// The string there; empty when there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The string there, or a word for its absence.
fn text_or<'a>(value: &'a Value, absent: &'a str) -> &'a str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(absent)
}

/// The whole number there; zero when there is none.
fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Whether it says `true` there.
fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// The list there; empty when there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The size of the map there.
fn entries(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

/// The object's name.
fn name(object: &Value) -> Value {
    text(&object["metadata"]["name"]).into()
}

/// How long the object has been there.
fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// How long ago the time there was.
fn since(time: &Value, now: Timestamp) -> String {
    age::since(time.as_str(), now)
}

/// Whether the object is on its way out.
fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a condition is `True`.
fn condition(status: &Value, kind: &str) -> bool {
    list(&status["conditions"])
        .iter()
        .find(|condition| condition["type"] == kind)
        .is_some_and(|found| found["status"] == "True")
}

/// One string of each element, with commas between.
fn joined<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    elements.collect::<Vec<_>>().join(",")
}

/// The names and the images of the containers in a pod template.
fn containers(template: &Value) -> [Value; 2] {
    let containers = list(&template["spec"]["containers"]);
    ["name", "image"].map(|field| joined(containers.iter().map(|container| text(&container[field]))).into())
}
