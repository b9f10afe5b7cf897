//! What containers ask for and may use.

use serde_json::Value;

use crate::builtin::validate::{Errors, formed};
use crate::field::FieldError;
use crate::meta::format;
use crate::path::Path;
use crate::quantity::Quantity;
use crate::value::Fields;

const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// An amount in an object; `None` when it is none. Numbers are amounts too.
pub fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Resources that Kubernetes itself knows.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that somebody else hands out on nodes.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && format::is_qualified_name(&format!("requests.{name}")).is_empty()
}

/// Resources that are counted, not measured.
pub fn is_integer(name: &str) -> bool {
    let counted = [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    counted.contains(&name) || (name.contains('/') && is_extended(name))
}

/// What is wrong with the name of any resource.
pub fn name(name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    formed(name, path, format::is_qualified_name, errors);
    if errors.len() > before {
        return false;
    }
    let known = STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !known {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
        return false;
    }
    true
}

/// What is wrong with an amount of a resource.
pub fn quantity(resource: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(quantity) = amount(value) else { return };
    if quantity.is_negative() {
        errors.push(FieldError::invalid(path, quantity.canonical(), "must be greater than or equal to 0"));
    }
    if is_integer(resource) && quantity.millis() % 1000 != 0 {
        errors.push(FieldError::invalid(path, quantity.canonical(), "must be an integer"));
    }
}

fn container_resource_name(resource: &str, path: &Path<'_>, errors: &mut Errors) {
    name(resource, path, errors);
    if !resource.contains('/') {
        if !matches!(resource, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(resource) {
            errors.push(FieldError::invalid(path, resource, "must be a standard resource for containers"));
        }
    } else if !is_native(resource) && !is_extended(resource) {
        errors.push(FieldError::invalid(path, resource, "doesn't follow extended resource name standard"));
    }
}

/// What is wrong with the resources of a container.
pub fn of_container(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    requirements(resources, container_resource_name, path, errors);
}

fn requirements(resources: &Value, name: fn(&str, &Path<'_>, &mut Errors), path: &Path<'_>, errors: &mut Errors) {
    let (limits, requests) = (path.field("limits"), path.field("requests"));
    let (mut basic, mut huge) = (false, false);
    for (field, path) in [("limits", &limits), ("requests", &requests)] {
        for (resource, value) in resources.entries(field) {
            let at = path.key(resource);
            name(resource, &at, errors);
            quantity(resource, value, &at, errors);
            if field == "requests" {
                against_limit(resource, value, resources.at("limits"), [&limits, &requests], errors);
            }
            huge |= is_huge_page(resource);
            basic |= matches!(resource, "cpu" | "memory");
        }
    }
    if huge && !basic {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// Nobody asks for more than they may use; what cannot be shared is asked for exactly.
fn against_limit(resource: &str, value: &Value, limits: &Value, paths: [&Path<'_>; 2], errors: &mut Errors) {
    let shareable = is_native(resource) && !is_huge_page(resource);
    let [limits_path, requests_path] = paths;
    let Some(request) = amount(value) else { return };
    let Some(limit) = limits.get(resource).and_then(amount) else {
        if !shareable {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(limits_path, detail));
        }
        return;
    };
    let relation = if request != limit && !shareable {
        "equal to"
    } else if request > limit {
        "less than or equal to"
    } else {
        return;
    };
    let detail = format!("must be {relation} {resource} limit of {}", limit.canonical());
    errors.push(FieldError::invalid(requests_path, request.canonical(), detail));
}

/// What is wrong with the resources of a pod as a whole.
pub fn pod_level(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let resources = spec.at("resources");
    if resources.is_null() {
        return;
    }
    let path = path.field("resources");
    if resources.has("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(path.field("claims"), detail));
    }
    requirements(resources, pod_resource_name, &path, errors);
}

fn pod_resource_name(resource: &str, path: &Path<'_>, errors: &mut Errors) {
    if name(resource, path, errors) && !matches!(resource, "cpu" | "memory") && !is_huge_page(resource) {
        errors.push(FieldError::not_supported(path, resource, &["cpu", "hugepages-", "memory"]));
    }
}
