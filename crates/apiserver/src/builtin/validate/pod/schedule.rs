//! Where a pod may run.

use serde_json::Value;

use crate::builtin::validate::{Errors, formed, one_of};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::Fields;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with the gates that hold a pod back.
pub fn gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let readiness = path.field("readinessGates");
    for (i, gate) in spec.list("readinessGates").iter().enumerate() {
        let path = readiness.index(i);
        formed(gate.text("conditionType"), &path.field("conditionType"), format::is_qualified_name, errors);
    }
    let path = path.field("schedulingGates");
    let gates = spec.list("schedulingGates");
    for (i, gate) in gates.iter().enumerate() {
        let name = gate.text("name");
        formed(name, &path.index(i), format::is_qualified_name, errors);
        if gates[..i].iter().any(|other| other.text("name") == name) {
            errors.push(FieldError::duplicate(path.index(i), name));
        }
    }
}

/// What is wrong with the taints that a pod tolerates.
pub fn tolerations(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, toleration) in spec.list("tolerations").iter().enumerate() {
        let path = path.index(i);
        let (key, operator) = (toleration.text("key"), toleration.text("operator"));
        let (value, effect) = (toleration.text("value"), toleration.text("effect"));
        if !key.is_empty() {
            formed(key, &path.field("key"), format::is_qualified_name, errors);
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(path.field("operator"), operator, detail));
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(path.field("effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                let wrong = format::is_label_value(value);
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid(path.field("operator"), value, wrong.join(";")));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(path.field("operator"), value, detail));
                }
            }
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(path.field("operator"), operator, &known));
            }
            _ => errors.push(FieldError::not_supported(path.field("operator"), operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            taint_effect(toleration, &path, errors);
        }
    }
}

/// What is wrong with the effect of a taint, or of one that is tolerated.
pub fn taint_effect(taint: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(taint, "effect", path, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
}

/// What is wrong with what a pod wants to be near to, or away from.
pub fn affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    node_affinity(affinity.at("nodeAffinity"), &path.field("nodeAffinity"), errors);
    for field in ["podAffinity", "podAntiAffinity"] {
        let (terms, path) = (affinity.at(field), path.field(field));
        for (i, term) in terms.list(REQUIRED).iter().enumerate() {
            pod_term(term, &path.field(REQUIRED).index(i), errors);
        }
        let preferred = path.field(PREFERRED);
        for (i, term) in terms.list(PREFERRED).iter().enumerate() {
            let path = preferred.index(i);
            weight(term, &path, errors);
            pod_term(term.at("podAffinityTerm"), &path.field("podAffinityTerm"), errors);
        }
    }
}

fn node_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    if affinity.has(REQUIRED) {
        node_selector(affinity.at(REQUIRED), &path.field(REQUIRED), errors);
    }
    let preferred = path.field(PREFERRED);
    for (i, term) in affinity.list(PREFERRED).iter().enumerate() {
        let path = preferred.index(i);
        weight(term, &path, errors);
        node_term(term.at("preference"), Values::Any, &path.field("preference"), errors);
    }
}

/// What is wrong with a selector of nodes.
pub fn node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("nodeSelectorTerms");
    let terms = selector.list("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(path, "must have at least one node selector term"));
    }
    for (i, term) in terms.iter().enumerate() {
        node_term(term, Values::Labels, &path.index(i), errors);
    }
}

/// Whether the values in a selector of nodes must be possible values of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Labels,
    Any,
}

fn node_term(term: &Value, values: Values, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.field("matchExpressions");
    for (i, requirement) in term.list("matchExpressions").iter().enumerate() {
        let path = expressions.index(i);
        let count = requirement.list("values").len();
        match requirement.text("operator") {
            "In" | "NotIn" if count == 0 => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(path.field("values"), detail));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(path.field("values"), detail));
            }
            "Gt" | "Lt" if count != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(path.field("values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                errors.push(FieldError::invalid(path.field("operator"), other, "not a valid selector operator"));
            }
        }
        formed(requirement.text("key"), &path.field("key"), format::is_qualified_name, errors);
        for (j, value) in requirement.texts("values").enumerate().filter(|_| values == Values::Labels) {
            formed(value, &path.field("values").index(j), format::is_label_value, errors);
        }
    }
    let fields = path.field("matchFields");
    for (i, requirement) in term.list("matchFields").iter().enumerate() {
        node_field(requirement, &fields.index(i), errors);
    }
}

fn node_field(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if requirement.list("values").len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(path.field("values"), detail));
            }
        }
        other => errors.push(FieldError::invalid(path.field("operator"), other, "not a valid selector operator")),
    }
    let key = requirement.text("key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(path.field("key"), key, "not a valid field selector key"));
        return;
    }
    for (i, value) in requirement.texts("values").enumerate() {
        formed(value, &path.field("values").index(i), format::is_dns_subdomain, errors);
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = term.int("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(path.field("weight"), weight, "must be in the range 1-100"));
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::validate(term.at(field), &path.field(field), errors);
    }
    for namespace in term.texts("namespaces") {
        formed(namespace, &path.field("namespace"), format::is_dns_label, errors);
    }
    let key = term.text("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
    }
    formed(key, &path.field("topologyKey"), format::is_qualified_name, errors);
}

/// What is wrong with how pods are to be spread.
pub fn topology_spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let constraints = spec.list("topologySpreadConstraints");
    for (i, constraint) in constraints.iter().enumerate() {
        let path = path.index(i);
        positive(constraint.int("maxSkew").unwrap_or_default(), &path.field("maxSkew"), errors);
        let (key, action) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(path.field("topologyKey"), "can not be empty"));
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let path = path.field("whenUnsatisfiable");
            errors.push(FieldError::not_supported(path, action, &["DoNotSchedule", "ScheduleAnyway"]));
        }
        let same = |other: &Value| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action;
        if constraints[i + 1..].iter().any(same) {
            let path = path.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(path, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = constraint.int("minDomains") {
            positive(domains, &path.field("minDomains"), errors);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(path.field("minDomains"), domains, detail));
            }
        }
        selector::validate(constraint.at("labelSelector"), &path.field("labelSelector"), errors);
    }
}

fn positive(value: i64, path: &Path<'_>, errors: &mut Errors) {
    if value <= 0 {
        errors.push(FieldError::invalid(path, value, "must be greater than zero"));
    }
}
