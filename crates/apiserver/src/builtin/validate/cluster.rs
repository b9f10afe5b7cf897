//! Leases, Events and `ResourceQuotas`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::resources;
use super::{Errors, SPEC, STATUS, formed, immutable};
use crate::field::FieldError;
use crate::meta::format;
use crate::path::Path;
use crate::value::Fields;

/// What is wrong with a Lease. Like the original, it does not ask for standard finalizers.
pub fn lease(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let spec = new.at("spec");
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let path = SPEC.field("leaseDurationSeconds");
        errors.push(FieldError::invalid(path, seconds, "must be greater than 0"));
    }
    if let Some(transitions) = spec.int("leaseTransitions").filter(|transitions| *transitions < 0) {
        let path = SPEC.field("leaseTransitions");
        errors.push(FieldError::invalid(path, transitions, "must be greater than or equal to 0"));
    }
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(SPEC.field("preferredHolder"), detail));
    }
    errors
}

const NAMESPACE_DIFFERS: &str = "does not match event.namespace";

/// What is wrong with an Event of the core group.
pub fn event(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let namespace = new.at("metadata").text("namespace");
    let about = new.at("involvedObject").text("namespace");
    let path = "involvedObject.namespace";
    if new.has("eventTime") {
        if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.push(FieldError::invalid(path, about, NAMESPACE_DIFFERS));
        }
        recent_event(new, "reportingComponent", &mut errors);
    } else if (about.is_empty() && !matches!(namespace, "" | "default")) || (!about.is_empty() && about != namespace) {
        errors.push(FieldError::invalid(path, about, NAMESPACE_DIFFERS));
    }
    formed(namespace, &Path::new("namespace"), format::is_dns_subdomain, &mut errors);
    errors
}

/// What is wrong with an Event of the group `events.k8s.io`.
pub fn event_v1(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let namespace = new.at("metadata").text("namespace");
    let about = new.at("regarding").text("namespace");
    let path = "involvedObject.namespace";
    if new.has("eventTime") {
        if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.push(FieldError::invalid(path, about, NAMESPACE_DIFFERS));
        }
        recent_event(new, "reportingController", &mut errors);
    } else if (about.is_empty() && !matches!(namespace, "" | "default")) || (!about.is_empty() && about != namespace) {
        errors.push(FieldError::invalid(path, about, NAMESPACE_DIFFERS));
    }
    formed(namespace, &Path::new("namespace"), format::is_dns_subdomain, &mut errors);
    let Some(old) = old else {
        if !new.has("eventTime") {
            errors.push(FieldError::required("eventTime", ""));
        }
        if !matches!(new.text("type"), "Normal" | "Warning") {
            errors.push(FieldError::invalid("type", "", format!("has invalid value: {}", new.text("type"))));
        }
        return errors;
    };
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        immutable(new.at(field), old.at(field), &Path::new(shown), &mut errors);
    }
    errors
}

fn recent_event(event: &Value, controller: &str, errors: &mut Errors) {
    let name = event.text(controller);
    if name.is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    formed(name, &Path::new(controller), format::is_qualified_name, errors);
    for field in ["reportingInstance", "action", "reason"] {
        if event.text(field).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        if event.text(field).len() > 128 {
            errors.push(FieldError::invalid(field, "", "can have at most 128 characters"));
        }
    }
    if event.text("message").len() > 1024 || event.text("note").len() > 1024 {
        errors.push(FieldError::invalid("message", "", "can have at most 1024 characters"));
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// What is wrong with a `ResourceQuota`.
pub fn resource_quota(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = super::begin(new);
    let spec = new.at("spec");
    amounts(spec, "hard", &SPEC, &mut errors);
    let path = SPEC.field("scopes");
    let scopes: BTreeSet<&str> = spec.texts("scopes").collect();
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, spec.at("scopes").clone(), detail));
    for scope in spec.texts("scopes") {
        if !SCOPES.contains(&scope) {
            refuse("unsupported scope");
        }
        for _ in spec.entries("hard").filter(|(name, _)| !applies(scope, name)) {
            refuse("unsupported scope applied to resource");
        }
    }
    for [one, other] in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if scopes.contains(one) && scopes.contains(other) {
            refuse("conflicting scopes");
        }
    }
    match old {
        None => {
            amounts(new.at("status"), "hard", &STATUS, &mut errors);
            amounts(new.at("status"), "used", &STATUS, &mut errors);
        }
        Some(old) if old.at("spec").texts("scopes").collect::<BTreeSet<_>>() != scopes => {
            refuse("field is immutable");
        }
        Some(_) => {}
    }
    errors
}

fn is_quota_resource(name: &str) -> bool {
    let standard = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    ];
    standard.contains(&name) || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// Whether a scope makes sense for a resource.
fn applies(scope: &str, resource: &str) -> bool {
    let compute = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        _ if !is_quota_resource(resource) => true,
        "BestEffort" => resource == "pods",
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods" || compute.contains(&resource)
        }
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// What is wrong with amounts of resources that a quota is about.
pub(super) fn amounts(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field(field);
    for (name, amount) in object.entries(field) {
        let path = path.key(name);
        resources::name(name, &path, errors);
        if !name.contains('/') && !is_quota_resource(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
        }
        resources::quantity(name, amount, &path, errors);
    }
}
