//! `PodDisruptionBudgets` and `PriorityClasses`.

use serde_json::Value;

use super::{Errors, SPEC, begin, immutable, not_more_than_100_percent, positive_int_or_percent, shown};
use crate::field::FieldError;
use crate::meta::selector;
use crate::path::Path;
use crate::value::Fields;

/// What is wrong with a `PodDisruptionBudget`. Like the original, it does not look at finalizers.
pub fn pod_disruption_budget(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let spec = new.at("spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = shown(spec, &["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"]);
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(SPEC, spec.clone(), detail).showing(shown));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if spec.has(field) {
            let path = SPEC.field(field);
            positive_int_or_percent(spec.at(field), &path, &mut errors);
            not_more_than_100_percent(spec.at(field), &path, &mut errors);
        }
    }
    selector::validate(spec.at("selector"), &SPEC.field("selector"), &mut errors);
    let policy = spec.at("unhealthyPodEvictionPolicy");
    if let Some(policy) = policy.as_str().filter(|policy| !matches!(*policy, "AlwaysAllow" | "IfHealthyBudget")) {
        let path = SPEC.field("unhealthyPodEvictionPolicy");
        errors.push(FieldError::not_supported(path, policy, &["AlwaysAllow", "IfHealthyBudget"]));
    }
    errors
}

/// The lowest value that only the system's own classes may have.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

/// What is wrong with a `PriorityClass`.
pub fn priority_class(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let value = new.int("value").unwrap_or_default();
    let Some(old) = old else {
        let name = new.at("metadata").text("name");
        if name.starts_with("system-") {
            let known = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
            if !known.contains(&(name, value)) {
                let detail = "priority class names with 'system-' prefix are reserved for system use only. error: ";
                let why = match known.iter().find(|(known, _)| *known == name) {
                    Some((_, expected)) => format!("value of {name} PriorityClass must be {expected}"),
                    None => format!("{name} is not a known system priority class"),
                };
                errors.push(FieldError::forbidden("metadata.name", format!("{detail}{why}")));
            }
        } else if value > HIGHEST_USER_PRIORITY {
            let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}");
            errors.push(FieldError::forbidden("value", detail));
        }
        preemption_policy(new, &mut errors);
        return errors;
    };
    if value != old.int("value").unwrap_or_default() {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    immutable(new.at("preemptionPolicy"), old.at("preemptionPolicy"), &Path::new("preemptionPolicy"), &mut errors);
    errors
}

fn preemption_policy(class: &Value, errors: &mut Errors) {
    match class.text("preemptionPolicy") {
        "" | "PreemptLowerPriority" | "Never" => {}
        other => {
            errors.push(FieldError::not_supported("preemptionPolicy", other, &["PreemptLowerPriority", "Never"]));
        }
    }
}
