//! The fields that a configuration speaks about: whoever applies it owns them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element;
use super::set::{FieldSet, has_below, is_member, mark, steps};
use super::shape::{Kind, Place};

/// The fields of an object: its leaves, the elements of its lists and the keys of its free maps.
pub(super) fn fields(place: Place<'_>, value: &Value) -> FieldSet {
    let mut out = FieldSet::default();
    node(place, value, &mut out);
    out
}

/// Adds what is inside `value`; true when the value is owned as a whole.
fn node(place: Place<'_>, value: &Value, out: &mut FieldSet) -> bool {
    match (place.kind(Some(value)), value) {
        (Kind::Scalar, _) => true,
        (Kind::List, _) if place.is_atomic_list() => true,
        (Kind::List, Value::Array(list)) => {
            elements(place, list, out);
            false
        }
        (Kind::Map, _) if place.is_atomic_map() => true,
        (Kind::Map | Kind::Unknown, Value::Object(fields)) => {
            for (name, value) in fields {
                let inside = place.inside(name);
                let mut below = FieldSet::default();
                let whole = node(inside.place, value, &mut below);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                out.put(element::field(name), whole || empty || !inside.named, below);
            }
            false
        }
        (Kind::List | Kind::Map | Kind::Unknown, _) => false,
    }
}

fn elements(place: Place<'_>, list: &[Value], out: &mut FieldSet) {
    let mut found: BTreeMap<String, Option<&Value>> = BTreeMap::new();
    for value in list {
        // An element that cannot be told apart was refused before.
        if let Ok(step) = place.step(value) {
            // Duplicates are owned as one leaf.
            found.entry(step).and_modify(|value| *value = None).or_insert(Some(value));
        }
    }
    for (step, value) in found {
        let mut below = FieldSet::default();
        if let Some(value) = value {
            node(place.items(), value, &mut below);
        }
        out.put(step, true, below);
    }
}

/// The same set with every named field above a member made a member, too: when all that somebody owns in `spec.template`
/// goes, the template itself may go.
#[must_use]
pub(super) fn with_parents(place: Place<'_>, set: &FieldSet) -> FieldSet {
    let mut nodes = set.nodes().clone();
    add_parents(Some(place), &mut nodes);
    FieldSet::stored(nodes)
}

fn add_parents(place: Option<Place<'_>>, nodes: &mut Map<String, Value>) {
    for (step, node) in nodes.iter_mut() {
        if !has_below(node) {
            continue;
        }
        let inside = place.and_then(|place| match step.strip_prefix("f:") {
            Some(name) => Some(place.inside(name)).map(|inside| (inside.place, inside.named)),
            None if step.starts_with("k:") => Some((place.items(), false)),
            None => None,
        });
        if let Value::Object(below) = node {
            add_parents(inside.map(|(place, _)| place), below);
        }
        if inside.is_some_and(|(_, named)| named) {
            mark(node);
        }
    }
}

/// Adapts a set to a schema that changed: what became atomic has one owner for all of it.
pub(super) fn reconcile(place: Place<'_>, nodes: &mut Map<String, Value>) {
    for (step, node) in nodes.iter_mut() {
        // Without anything below, a node fits any schema.
        if !has_below(node) {
            continue;
        }
        let inside = match step.strip_prefix("f:") {
            Some(name) if place.kind(None) != Kind::List => {
                let inside = place.inside(name);
                if !inside.declared {
                    continue;
                }
                inside.place
            }
            _ => place.items(),
        };
        if inside.schema().is_none() || (inside.kind(None) == Kind::Map && inside.is_free_map()) {
            continue;
        }
        let atomic = match inside.kind(None) {
            Kind::Map => inside.is_atomic_map(),
            Kind::List => inside.is_atomic_list(),
            Kind::Scalar | Kind::Unknown => continue,
        };
        match node {
            Value::Object(below) if atomic => below.clear(),
            Value::Object(below) => reconcile(inside, below),
            _ => {}
        }
    }
}

/// Takes the fields of a set out of a value.
pub(super) fn remove(place: Place<'_>, value: &mut Value, set: &FieldSet) {
    remove_nodes(place, value, set.nodes());
}

fn remove_nodes(place: Place<'_>, value: &mut Value, nodes: &Map<String, Value>) {
    let kind = place.kind(Some(value));
    let keep = |place: Place<'_>, value: &mut Value, step: &str| match nodes.get(step) {
        Some(node) if is_member(node) => false,
        Some(Value::Object(below)) => {
            if steps(below).next().is_some() {
                remove_nodes(place, value, below);
            }
            true
        }
        None | Some(_) => true,
    };
    let emptied = match (kind, &mut *value) {
        (Kind::Scalar, _) => false,
        (Kind::List, Value::Array(list)) if !place.is_atomic_list() => {
            list.retain_mut(|value| place.step(value).map_or(true, |step| keep(place.items(), value, &step)));
            list.is_empty()
        }
        (Kind::Map | Kind::Unknown, Value::Object(fields)) if !place.is_atomic_map() => {
            fields.retain(|name, value| keep(place.inside(name).place, value, &element::field(name)));
            fields.is_empty()
        }
        // Something below an atomic value, or below one of another kind, is the mark of a set that is out of date.
        (Kind::List | Kind::Map | Kind::Unknown, _) => true,
    };
    if emptied {
        *value = Value::Null;
    }
}
