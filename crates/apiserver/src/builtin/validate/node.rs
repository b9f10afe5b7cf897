//! Nodes.

use serde_json::Value;

use super::pod::resources::quantity;
use super::pod::schedule::taint_effect;
use super::{Errors, METADATA, SPEC, STATUS, address, begin, formed};
use crate::field::{FieldError, Problem};
use crate::meta::format;
use crate::value::Fields;

/// What is wrong with a Node.
pub fn node(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    taints(spec, &mut errors);
    resources(new, &mut errors);
    let path = SPEC.field("podCIDRs");
    let ranges: Vec<&str> = spec.texts("podCIDRs").collect();
    for (i, range) in ranges.iter().enumerate() {
        address::cidr(range, &path.index(i), &mut errors);
    }
    let one_family = ranges.iter().all(|range| range.contains(':') == ranges[0].contains(':'));
    if ranges.len() > 2 || (ranges.len() == 2 && one_family) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(path, spec.at("podCIDRs").clone(), detail));
    }
    if let Some(old) = old {
        update(new, old, &mut errors);
    }
    errors
}

/// What is wrong with the status of a Node.
pub fn node_status(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    resources(new, &mut errors);
    if let Some(old) = old {
        update(new, old, &mut errors);
    }
    taints(new.at("spec"), &mut errors);
    errors
}

fn resources(node: &Value, errors: &mut Errors) {
    for field in ["capacity", "allocatable"] {
        let path = STATUS.field(field);
        for (name, amount) in node.at("status").entries(field) {
            quantity(name, amount, &path.field(name), errors);
        }
    }
}

/// Kubernetes says `metadata.taints`, though they are in the spec.
fn taints(spec: &Value, errors: &mut Errors) {
    let path = METADATA.field("taints");
    let taints = spec.list("taints");
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        formed(key, &path.field("key"), format::is_qualified_name, errors);
        let wrong = format::is_label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(path.field("value"), value, wrong.join(";")));
        }
        taint_effect(taint, &path, errors);
        if taints[..i].iter().any(|other| other.text("key") == key && other.text("effect") == effect) {
            let text = format!(
                "{{\"Key\":{key:?},\"Value\":{value:?},\"Effect\":{effect:?},\"TimeAdded\":{}}}",
                taint.at("timeAdded")
            );
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(Problem::Duplicate, path, taint.clone(), detail).showing(text));
        }
    }
}

fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let addresses = new.at("status").list("addresses");
    let path = STATUS.field("addresses");
    for (i, address) in addresses.iter().enumerate().filter(|(i, address)| addresses[..*i].contains(address)) {
        let text = format!("{{\"Type\":{},\"Address\":{}}}", address.at("type"), address.at("address"));
        errors.push(FieldError::duplicate(path.index(i), address.clone()).showing(text));
    }
    let (is, was) = (new.at("spec"), old.at("spec"));
    if !was.list("podCIDRs").is_empty() && is.at("podCIDRs") != was.at("podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(SPEC.field("podCIDRs"), detail));
    }
    if !was.text("providerID").is_empty() && is.text("providerID") != was.text("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(SPEC.field("providerID"), detail));
    }
    if is.text("externalID") != was.text("externalID") {
        errors.push(FieldError::forbidden(SPEC.field("externalID"), "may not be updated"));
    }
}
