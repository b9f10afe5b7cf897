//! What a server fills in when a user leaves it out.
//!
//! Structs that Kubernetes always shows (`status: {}`, `resources: {}`) and times that it shows as `null` are filled in
//! too: a client sees what it would see from any other server.

pub(super) mod batch;
pub(super) mod cluster;
pub(super) mod config;
pub(super) mod network;
pub(super) mod pod;
pub(super) mod resources;
pub(super) mod storage;
pub(super) mod volume;
pub(super) mod webhook;
pub(super) mod workload;

use serde_json::Value;

use super::fill::{Fields, child_or_new, each, fill_null};

/// Makes `spec` and `status`, and hands out the spec.
fn spec_of(object: &mut Value) -> Option<&mut Fields> {
    let fields = object.as_object_mut()?;
    child_or_new(fields, "status");
    child_or_new(fields, "spec")
}

/// The times in conditions that have not been set yet.
fn conditions(status: &mut Fields, times: &[&str]) {
    each(status, "conditions", |condition| fill_null(condition, times));
}

/// Kinds with nothing to fill in but an empty spec.
pub(super) fn spec(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        child_or_new(fields, "spec");
    }
}

/// Kinds with nothing to fill in but an empty spec and status.
pub(super) fn spec_and_status(object: &mut Value) {
    spec_of(object);
}
