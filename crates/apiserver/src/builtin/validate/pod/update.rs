//! What may change in a pod after it was created: very little.

use serde_json::Value;

use crate::builtin::validate::{Errors, SPEC};
use crate::field::FieldError;
use crate::meta::format;
use crate::value::{Fields, same};

const MAY_CHANGE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a change of a pod's spec.
pub fn pod(new: &Value, old: &Value, errors: &mut Errors) {
    for field in ["containers", "initContainers"] {
        if new.list(field).len() != old.list(field).len() {
            errors.push(FieldError::forbidden(SPEC.field(field), "pod updates may not add or remove containers"));
            return;
        }
        for (i, container) in new.list(field).iter().enumerate() {
            if container.text("image").is_empty() {
                errors.push(FieldError::required(SPEC.field(field).index(i).field("image"), ""));
            }
        }
    }
    if !active_deadline(new, old, errors) {
        return;
    }
    tolerations(new, old, errors);
    scheduling_gates(new, old, errors);
    if same(new, old) {
        return;
    }
    let mut allowed = new.clone();
    take_over_what_may_change(&mut allowed, old);
    if !same(&allowed, old) {
        let detail =
            format!("pod updates may not change fields other than {MAY_CHANGE}\n{}", difference(old, &allowed));
        errors.push(FieldError::forbidden(SPEC, detail));
    }
}

/// A deadline can be set, and come nearer; nothing else. Returns whether to go on.
fn active_deadline(new: &Value, old: &Value, errors: &mut Errors) -> bool {
    let path = SPEC.field("activeDeadlineSeconds");
    match (new.int("activeDeadlineSeconds"), old.int("activeDeadlineSeconds")) {
        (Some(is), was) => {
            let wrong = format::is_in_range(is, 0, i64::from(i32::MAX));
            if let Some(detail) = wrong.into_iter().next() {
                errors.push(FieldError::invalid(path, is, detail));
                return false;
            }
            if was.is_some_and(|was| was < is) {
                errors.push(FieldError::invalid(path, is, "must be less than or equal to previous value"));
                return false;
            }
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        (None, None) => {}
    }
    true
}

fn tolerations(new: &Value, old: &Value, errors: &mut Errors) {
    let but_for_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    if new.at("tolerations") == old.at("tolerations") {
        return;
    }
    let kept: Vec<Value> = new.list("tolerations").iter().map(but_for_seconds).collect();
    if !old.list("tolerations").iter().all(|toleration| kept.contains(&but_for_seconds(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(SPEC.field("tolerations"), detail));
        return;
    }
    // They have been checked with the rest of the pod; a real server says it twice.
    super::schedule::tolerations(new, &SPEC.field("tolerations"), errors);
}

fn scheduling_gates(new: &Value, old: &Value, errors: &mut Errors) {
    for (i, gate) in new.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        if !old.list("schedulingGates").iter().any(|known| known.text("name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(SPEC.field("schedulingGates").index(i).field("name"), detail));
        }
    }
}

/// Sets what may change to what it was, so that what is left is what may not.
fn take_over_what_may_change(spec: &mut Value, old: &Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    for list in ["containers", "initContainers"] {
        let containers = fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.zip(old.list(list)) {
            if let Some(container) = container.as_object_mut() {
                container.insert("image".into(), old.at("image").clone());
            }
        }
    }
    let mut keep = |field: &str| {
        fields.insert(field.into(), old.at(field).clone());
    };
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(field);
    }
    if !old.list("schedulingGates").is_empty() {
        for field in ["nodeSelector", "affinity"] {
            keep(field);
        }
    }
    let was = old.int("terminationGracePeriodSeconds").unwrap_or_default();
    if was < 0 && fields.get("terminationGracePeriodSeconds").and_then(Value::as_i64) == Some(1) {
        fields.insert("terminationGracePeriodSeconds".into(), was.into());
    }
}

/// The fields that differ, one line each. Kubernetes shows Go structs here, in a form that it does not keep stable.
fn difference(old: &Value, new: &Value) -> String {
    let names = old.as_object().into_iter().chain(new.as_object()).flat_map(serde_json::Map::keys);
    let mut names: Vec<&String> = names.collect();
    names.sort_unstable();
    names.dedup();
    let changed = names.into_iter().filter(|name| !same(old.at(name), new.at(name)));
    let lines: Vec<String> =
        changed.map(|name| format!("-{name}: {}\n+{name}: {}\n", old.at(name), new.at(name))).collect();
    lines.concat()
}
