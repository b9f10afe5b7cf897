//! The checks of what controllers report: objects that are given to the `status` subresource.

use serde_json::Value;

use super::pod::resources::amount;
use super::{Errors, STATUS, address, begin, cluster, formed, immutable, node, non_negative};
use crate::field::FieldError;
use crate::meta::{format, too_long};
use crate::path::Path;
use crate::value::Fields;

/// The checks of a built-in kind's status. Kinds that are not listed have none beyond their schema and metadata.
pub fn of(group: &str, kind: &str) -> fn(&Value, Option<&Value>) -> Errors {
    match (group, kind) {
        ("", "Namespace") => namespace,
        ("", "Node") => node::node_status,
        ("", "PersistentVolumeClaim") => persistent_volume_claim,
        ("", "Pod") => pod,
        ("", "ReplicationController") | ("apps", "ReplicaSet") => replica_set,
        ("", "ResourceQuota") => resource_quota,
        ("", "Service") | ("networking.k8s.io", "Ingress") => load_balancer,
        ("apps", "DaemonSet") => daemon_set,
        ("apps", "Deployment") => deployment,
        ("apps", "StatefulSet") => stateful_set,
        ("batch", "Job") => job,
        ("policy", "PodDisruptionBudget") => pod_disruption_budget,
        _ => super::nothing_more,
    }
}

fn namespace(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let phase = new.at("status").text("phase");
    let (expected, detail) = if new.at("metadata").has("deletionTimestamp") {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase != expected {
        errors.push(FieldError::invalid("status.Phase", phase, detail));
    }
    errors
}

fn persistent_volume_claim(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    if new.at("spec").list("accessModes").is_empty() {
        errors.push(FieldError::required("Spec.accessModes", ""));
    }
    let path = STATUS.field("capacity");
    for (resource, value) in new.at("status").entries("capacity") {
        if let Some(size) = amount(value).filter(|size| size.units() < 0) {
            let detail = "must be a valid resource quantity";
            errors.push(FieldError::invalid(path.key(resource), size.units(), detail));
        }
    }
    errors
}

fn pod(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let status = new.at("status");
    let path = STATUS.field("conditions");
    for (i, condition) in status.list("conditions").iter().enumerate() {
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            formed(kind, &path.index(i).field("Type"), format::is_qualified_name, &mut errors);
        }
    }
    if let Some(old) = old {
        if new.at("spec").text("nodeName") != old.at("spec").text("nodeName") {
            errors.push(FieldError::forbidden(STATUS.field("nodeName"), "may not be changed directly"));
        }
        // A report without a class keeps the one that the pod has.
        if status.has("qosClass") {
            immutable(status.at("qosClass"), old.at("status").at("qosClass"), &STATUS.field("qosClass"), &mut errors);
        }
    }
    let path = STATUS.field("podIPs");
    for (i, ip) in status.list("podIPs").iter().enumerate() {
        address::ip(ip.text("ip"), &path.index(i), &mut errors);
    }
    errors
}

fn resource_quota(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    cluster::amounts(new.at("status"), "hard", &STATUS, &mut errors);
    cluster::amounts(new.at("status"), "used", &STATUS, &mut errors);
    errors
}

/// The addresses of a Service or an Ingress that something outside the cluster gave it.
fn load_balancer(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let path = STATUS.field("loadBalancer");
    let path = path.field("ingress");
    let points = new.at("status").at("loadBalancer").list("ingress");
    if new.text("kind") == "Service" && new.at("spec").text("type") != "LoadBalancer" {
        if !points.is_empty() {
            errors.push(FieldError::forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return errors;
    }
    for (i, point) in points.iter().enumerate() {
        let path = path.index(i);
        let (ip, hostname) = (point.text("ip"), point.text("hostname"));
        if !ip.is_empty() {
            address::ip(ip, &path.field("ip"), &mut errors);
        }
        if !hostname.is_empty() {
            formed(hostname, &path.field("hostname"), format::is_dns_subdomain, &mut errors);
            if hostname.parse::<std::net::IpAddr>().is_ok() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(path.field("hostname"), hostname, detail));
            }
        }
    }
    errors
}

/// None of the counts is negative.
fn counts(new: &Value, fields: &[&str]) -> Errors {
    let mut errors = begin(new);
    for field in fields {
        non_negative(new.at("status"), field, &STATUS, &mut errors);
    }
    errors
}

/// None of the parts is more than the whole; `ready` is how the words call the replicas that are ready.
fn parts(new: &Value, fields: &[&str], ready: &str, errors: &mut Errors) {
    let count = |field: &str| new.at("status").int(field).unwrap_or_default();
    let mut at_most = |field: &str, limit: i64, name: &str| {
        if count(field) > limit {
            let detail = format!("cannot be greater than {name}");
            errors.push(FieldError::invalid(STATUS.field(field), count(field), detail));
        }
    };
    for field in fields {
        at_most(field, count("replicas"), "status.replicas");
    }
    at_most("availableReplicas", count("readyReplicas"), ready);
}

fn deployment(new: &Value, _old: Option<&Value>) -> Errors {
    let fields = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let mut errors = counts(new, &fields);
    parts(new, &["updatedReplicas", "readyReplicas", "availableReplicas"], "readyReplicas", &mut errors);
    errors
}

fn replica_set(new: &Value, _old: Option<&Value>) -> Errors {
    let fields = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let mut errors = counts(new, &fields);
    parts(new, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], "readyReplicas", &mut errors);
    errors
}

fn stateful_set(new: &Value, _old: Option<&Value>) -> Errors {
    let fields = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let mut errors = counts(new, &fields);
    let some = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    parts(new, &some, "status.readyReplicas", &mut errors);
    errors
}

fn daemon_set(new: &Value, _old: Option<&Value>) -> Errors {
    let fields = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    counts(new, &fields)
}

fn job(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = counts(new, &["active", "succeeded", "failed", "ready", "terminating"]);
    let count = |object: &Value, field: &str| object.at("status").int(field).unwrap_or_default();
    for field in ["failed", "succeeded"] {
        if old.is_some_and(|old| count(new, field) < count(old, field)) {
            let detail = format!("cannot decrease the {field} counter");
            errors.push(FieldError::invalid(STATUS.field(field), count(new, field), detail));
        }
    }
    errors
}

fn pod_disruption_budget(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    conditions(new.at("status"), &STATUS.field("conditions"), &mut errors);
    for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        non_negative(new.at("status"), field, &STATUS, &mut errors);
    }
    errors
}

/// What is wrong with conditions of the common form.
fn conditions(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    const REASON_MAX_BYTES: usize = 1024;
    const MESSAGE_MAX_BYTES: usize = 32 * 1024;
    let all = status.list("conditions");
    for (i, condition) in all.iter().enumerate() {
        let path = path.index(i);
        let (kind, state) = (condition.text("type"), condition.text("status"));
        if all[..i].iter().any(|other| other.text("type") == kind) {
            errors.push(FieldError::duplicate(path.field("type"), kind));
        }
        formed(kind, &path.field("type"), format::is_qualified_name, errors);
        if !matches!(state, "True" | "False" | "Unknown") {
            errors.push(FieldError::not_supported(path.field("status"), state, &["False", "True", "Unknown"]));
        }
        if let Some(generation) = condition.int("observedGeneration").filter(|generation| *generation < 0) {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(path.field("observedGeneration"), generation, detail));
        }
        if condition.text("lastTransitionTime").is_empty() {
            errors.push(FieldError::required(path.field("lastTransitionTime"), ""));
        }
        match condition.text("reason") {
            "" => errors.push(FieldError::required(path.field("reason"), "")),
            reason => {
                formed(reason, &path.field("reason"), format::is_condition_reason, errors);
                if reason.len() > REASON_MAX_BYTES {
                    errors.push(too_long(&path.field("reason"), REASON_MAX_BYTES));
                }
            }
        }
        if condition.text("message").len() > MESSAGE_MAX_BYTES {
            errors.push(too_long(&path.field("message"), MESSAGE_MAX_BYTES));
        }
    }
}
