//! Roles and the bindings that grant them.

use serde_json::Value;

use super::{Errors, begin, formed};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::{Fields, same};

const GROUP: &str = "rbac.authorization.k8s.io";

/// What is wrong with a Role.
pub fn role(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    rules(new, true, &mut errors);
    errors
}

/// What is wrong with a `ClusterRole`.
pub fn cluster_role(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    rules(new, false, &mut errors);
    if new.has("aggregationRule") {
        let path = Path::new("aggregationRule");
        let path = path.field("clusterRoleSelectors");
        let selectors = new.at("aggregationRule").list("clusterRoleSelectors");
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(FieldError::required(path, detail));
        }
        for (i, wanted) in selectors.iter().enumerate() {
            let before = errors.len();
            selector::validate(wanted, &path.index(i), &mut errors);
            if errors.len() > before {
                errors.push(FieldError::invalid(path.index(i), Value::Null, "invalid label selector."));
            }
        }
    }
    errors
}

fn rules(role: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::new("rules");
    for (i, rule) in role.list("rules").iter().enumerate() {
        let path = path.index(i);
        if rule.list("verbs").is_empty() {
            errors.push(FieldError::required(path.field("verbs"), "verbs must contain at least one value"));
        }
        if !rule.list("nonResourceURLs").is_empty() {
            let mut refuse = |detail: &str| {
                let urls = rule.at("nonResourceURLs").clone();
                errors.push(FieldError::invalid(path.field("nonResourceURLs"), urls, detail));
            };
            if namespaced {
                refuse("namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.list(field).is_empty()) {
                refuse("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.list("apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(path.field("apiGroups"), detail));
        }
        if rule.list("resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(path.field("resources"), detail));
        }
    }
}

/// What is wrong with a `RoleBinding`.
pub fn role_binding(new: &Value, old: Option<&Value>) -> Errors {
    binding(new, old, true)
}

/// What is wrong with a `ClusterRoleBinding`.
pub fn cluster_role_binding(new: &Value, old: Option<&Value>) -> Errors {
    binding(new, old, false)
}

fn binding(new: &Value, old: Option<&Value>, namespaced: bool) -> Errors {
    let mut errors = begin(new);
    let (role, path) = (new.at("roleRef"), Path::new("roleRef"));
    if role.text("apiGroup") != GROUP {
        errors.push(FieldError::not_supported(path.field("apiGroup"), role.text("apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.text("kind")) {
        errors.push(FieldError::not_supported(path.field("kind"), role.text("kind"), kinds));
    }
    if role.text("name").is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    } else {
        formed(role.text("name"), &path.field("name"), format::is_path_segment_name, &mut errors);
    }
    let subjects = Path::new("subjects");
    for (i, who) in new.list("subjects").iter().enumerate() {
        subject(who, namespaced, &subjects.index(i), &mut errors);
    }
    if old.is_some_and(|old| !same(role, old.at("roleRef"))) {
        let text = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            role.at("apiGroup"),
            role.at("kind"),
            role.at("name")
        );
        errors.push(FieldError::invalid(path, role.clone(), "cannot change roleRef").showing(text));
    }
    errors
}

fn subject(subject: &Value, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                formed(name, &path.field("name"), format::is_dns_subdomain, errors);
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(path.field("apiGroup"), group, &[""]));
            }
            if !namespaced && subject.text("namespace").is_empty() {
                errors.push(FieldError::required(path.field("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(path.field("apiGroup"), group, &[GROUP]));
            }
        }
        other => {
            errors.push(FieldError::not_supported(path.field("kind"), other, &["ServiceAccount", "User", "Group"]));
        }
    }
}
