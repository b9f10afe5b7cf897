//! Settings, rights, priorities and events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::resources;
use crate::builtin::fill::{Fields, child_or_new, each, fill, fill_null, fill_zero, text};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Secret. What was given as text becomes data, which is the only form that is ever shown.
pub(in crate::builtin) fn secret(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fill_zero(fields, "type", "Opaque");
    let Some(given) = fields.get("stringData").filter(|given| given.is_object() || given.is_null()) else { return };
    let texts = given.as_object().cloned().unwrap_or_default();
    // A value that is no text is left for others to refuse.
    if texts.values().all(Value::is_string) {
        fields.remove("stringData");
        if !texts.is_empty()
            && let Some(data) = child_or_new(fields, "data")
        {
            for (name, text) in texts {
                data.insert(name, STANDARD.encode(text.as_str().unwrap_or_default()).into());
            }
        }
    }
}

/// Role and `ClusterRole`.
pub(in crate::builtin) fn role(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fill_null(fields, &["rules"]);
    }
}

/// `RoleBinding` and `ClusterRoleBinding`.
pub(in crate::builtin) fn role_binding(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(role) = child_or_new(fields, "roleRef") {
        fill_zero(role, "apiGroup", RBAC);
    }
    each(fields, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_zero(subject, "apiGroup", RBAC);
        }
    });
}

/// `PriorityClass`.
pub(in crate::builtin) fn priority_class(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fill(fields, "preemptionPolicy", "PreemptLowerPriority");
    }
}

/// `ResourceQuota`.
pub(in crate::builtin) fn resource_quota(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(spec) = child_or_new(fields, "spec") {
        resources::amounts(spec, "hard");
    }
    if let Some(status) = child_or_new(fields, "status") {
        resources::amounts(status, "hard");
        resources::amounts(status, "used");
    }
}

/// `LimitRange`. What containers get by default follows from the bounds.
pub(in crate::builtin) fn limit_range(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|fields| child_or_new(fields, "spec")) else { return };
    fill_null(spec, &["limits"]);
    each(spec, "limits", |limit| {
        if text(limit, "type") == "Container" {
            resources::add_missing(limit, "max", "default");
            resources::add_missing(limit, "default", "defaultRequest");
            resources::add_missing(limit, "min", "defaultRequest");
        }
        for amounts in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            resources::amounts(limit, amounts);
        }
    });
}

/// Event of the core group.
pub(in crate::builtin) fn core_event(object: &mut Value) {
    event(
        object,
        ["involvedObject", "source"],
        &["firstTimestamp", "lastTimestamp", "eventTime"],
        "reportingComponent",
    );
}

/// Event of `events.k8s.io`. The object that it is about may be nothing.
pub(in crate::builtin) fn new_event(object: &mut Value) {
    let times = &["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"];
    event(object, ["regarding", "deprecatedSource"], times, "");
}

fn event(object: &mut Value, structs: [&str; 2], times: &[&str], component: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    for name in structs {
        child_or_new(fields, name);
    }
    fill_null(fields, times);
    if !component.is_empty() {
        reporter(fields, component);
    }
}

/// The core group always shows who reported, even when nobody did.
fn reporter(fields: &mut Fields, component: &str) {
    fill(fields, component, "");
    fill(fields, "reportingInstance", "");
}
