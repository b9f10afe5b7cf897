//! Where an object is not what we would like it to be.

use serde_json::Value;

use super::list;
use super::ownership::Ownership;
use super::path::{Path, Segment};

/// A field that is not what we would like it to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Where it is.
    pub path: Path,
    /// What it is; nothing if it is not there.
    pub live: Option<Value>,
    /// What we would like it to be; nothing if it should go.
    pub desired: Option<Value>,
}

/// How far a field is taken apart that is not there at all.
#[derive(Clone, Copy)]
enum Detail<'o> {
    /// To the last value in it.
    Values,
    /// As far as parts of it have owners of their own.
    Owners(&'o Ownership),
}

impl Detail<'_> {
    fn divides(self, path: &Path) -> bool {
        match self {
            Self::Values => true,
            Self::Owners(ownership) => ownership.is_divided_below(path),
        }
    }
}

/// The values in `desired` that `live` does not have, or has otherwise. What should be empty may be absent.
pub(crate) fn differences(desired: &Value, live: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(desired, Some(live), &Path::default(), Detail::Values, &mut found);
    // Whether a map keeps the order of insertion depends on how other crates were built.
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

/// Whether there are no such values. Asked far more often than what they are.
pub(crate) fn agrees(desired: &Value, live: &Value) -> bool {
    covered(desired, Some(live)) || differences(desired, live).is_empty()
}

/// The fields of `desired` that `live` does not have, or has otherwise: those apart that have owners apart.
pub(super) fn owned(desired: &Value, live: &Value, ownership: &Ownership) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(desired, Some(live), &Path::default(), Detail::Owners(ownership), &mut found);
    found
}

fn walk(desired: &Value, live: Option<&Value>, path: &Path, detail: Detail<'_>, found: &mut Vec<Difference>) {
    let live = live.filter(|live| !live.is_null());
    if covered(desired, live) {
        return;
    }
    match (desired, live) {
        (Value::Null, _) => {}
        (Value::Object(desired), Some(Value::Object(live))) => {
            for (name, desired) in desired {
                walk(desired, live.get(name), &path.field(name), detail, found);
            }
        }
        (Value::Object(desired), None) if detail.divides(path) => {
            for (name, desired) in desired {
                walk(desired, None, &path.field(name), detail, found);
            }
        }
        (Value::Array(desired), Some(Value::Array(live))) if is_set(path) => union(desired, live, path, found),
        (Value::Array(_), Some(Value::Array(_))) if elements(desired, live, path, detail, found) => {}
        (desired, live) => {
            found.push(Difference { path: path.clone(), live: live.cloned(), desired: Some(desired.clone()) });
        }
    }
}

/// Whether a list is a set: everybody adds to it, and nobody replaces it.
fn is_set(path: &Path) -> bool {
    matches!(path.last(), Some(Segment::Field(name)) if name == "finalizers")
}

fn union(desired: &[Value], live: &[Value], path: &Path, found: &mut Vec<Difference>) {
    let missing: Vec<&Value> = desired.iter().filter(|element| !live.contains(element)).collect();
    if missing.is_empty() {
        return;
    }
    let both = live.iter().chain(missing).cloned().collect();
    let (path, live) = (path.clone(), Some(Value::Array(live.to_vec())));
    found.push(Difference { path, live, desired: Some(Value::Array(both)) });
}

/// Compares two lists element by element, if their elements have keys. What we do not mention is not ours.
fn elements(
    desired: &Value,
    live: Option<&Value>,
    path: &Path,
    detail: Detail<'_>,
    found: &mut Vec<Difference>,
) -> bool {
    let (Some(Segment::Field(name)), Some(desired), Some(live)) =
        (path.last(), desired.as_array(), live.and_then(Value::as_array))
    else {
        return false;
    };
    let Some([desired, live]) = list::keyed(name, [desired, live]) else { return false };
    for (segment, element) in desired {
        let there = live.iter().find(|(known, _)| *known == segment).map(|(_, element)| *element);
        walk(element, there, &path.then(segment), detail, found);
    }
    true
}

/// Whether two values are the same to an API server: it leaves out what is empty.
fn same(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len() && desired.iter().zip(live).all(|(desired, live)| covered(desired, Some(live)))
        }
        (desired, live) => desired == live,
    }
}

/// Whether a value is as it should be, element by element: what others put beside it does not count.
fn covered(desired: &Value, live: Option<&Value>) -> bool {
    match (desired, live) {
        (desired, None | Some(Value::Null)) => is_empty(desired),
        (Value::Object(desired), Some(Value::Object(live))) => {
            desired.iter().all(|(name, desired)| covered(desired, live.get(name)))
        }
        (desired, Some(live)) => same(desired, live),
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(elements) => elements.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
