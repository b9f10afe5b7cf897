//! Amounts of resources: written one way, counted in thousandths.

use serde_json::{Map, Value};

use crate::builtin::fill::{Fields, child, child_or_new};
use crate::quantity::Quantity;

/// The limits and requests of a container, a pod or a claim.
pub(super) fn requirements(owner: &mut Fields) {
    let Some(resources) = child_or_new(owner, "resources") else { return };
    amounts(resources, "limits");
    amounts(resources, "requests");
}

/// A map of amounts.
pub(super) fn amounts(owner: &mut Fields, name: &str) {
    for amount in child(owner, name).into_iter().flat_map(Map::values_mut) {
        write_canonically(amount, Quantity::rounded_up_to_milli);
    }
}

/// One amount.
pub(super) fn amount(owner: &mut Fields, name: &str) {
    if let Some(amount) = owner.get_mut(name) {
        write_canonically(amount, |quantity| quantity);
    }
}

fn write_canonically(amount: &mut Value, change: impl FnOnce(Quantity) -> Quantity) {
    let parsed = match amount {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    // What is malformed stays as it is, for validation to quote.
    if let Some(written) = parsed.map(|quantity| change(quantity).canonical()) {
        *amount = Value::String(written);
    }
}

/// Adds what is only in `from` to `to`.
pub(super) fn add_missing(owner: &mut Fields, from: &str, to: &str) {
    let Some(source) = owner.get(from).and_then(Value::as_object).filter(|map| !map.is_empty()) else { return };
    let source = source.clone();
    let Some(target) = child_or_new(owner, to) else { return };
    for (name, amount) in source {
        target.entry(name).or_insert(amount);
    }
}
