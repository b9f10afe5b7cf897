//! What a write changed: the fields that are new or different, and those that are gone.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{self, equal};
use super::set::FieldSet;
use super::shape::{Kind, Place};

/// The difference between two objects.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Delta {
    /// Fields that are there now and were not, or were different.
    pub(super) changed: FieldSet,
    /// Fields that were there.
    pub(super) removed: FieldSet,
}

impl Delta {
    /// Whether the objects have the same fields with the same values.
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// What was at a place before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Before<'a> {
    /// Nothing.
    Absent,
    /// A new object of a built-in kind. It is a Go struct: some of its fields exist from the start, so nobody adds them.
    Blank,
    /// This value.
    Present(&'a Value),
}

impl<'a> Before<'a> {
    /// The state before an object was created.
    pub(super) fn creation(place: Place<'_>) -> Self {
        if place.is_builtin() { Self::Blank } else { Self::Absent }
    }

    fn value(self) -> Option<&'a Value> {
        match self {
            Self::Absent | Self::Blank => None,
            Self::Present(value) => Some(value),
        }
    }

    fn object(self) -> Option<&'a Map<String, Value>> {
        self.value().and_then(Value::as_object)
    }

    fn array(self) -> &'a [Value] {
        self.value().and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What a field of a blank struct holds. The schema tells: a field that holds a struct is blank too, one that is always
    /// written has the default of its type, and one that is required and has none is null.
    fn blank_field(place: Place<'a>, name: &str, after: &Value) -> Self {
        const NULL: &Value = &Value::Null;
        if place.holds_struct(name) {
            return Self::Blank;
        }
        let field = place.inside(name).place.schema();
        match field.and_then(|schema| schema.default.as_ref()) {
            Some(zero @ (Value::Bool(false) | Value::Number(_))) if equal(zero, after) && !after.is_null() => {
                Self::Present(zero)
            }
            Some(Value::String(text)) if text.is_empty() && after.as_str() == Some("") => {
                field.and_then(|schema| schema.default.as_ref()).map_or(Self::Absent, Self::Present)
            }
            _ if after.is_null() || place.requires(name) => Self::Present(NULL),
            _ => Self::Absent,
        }
    }
}

/// What happened to the value at a place itself, apart from what is in it.
#[derive(Debug, Clone, Copy, Default)]
struct Itself {
    changed: bool,
    removed: bool,
}

/// A value either is a leaf, or its inside has been compared.
enum Visited {
    Leaf(Itself),
    Inside,
}

/// Compares two objects.
pub(super) fn objects(place: Place<'_>, before: Before<'_>, after: &Value) -> Result<Delta, String> {
    let mut delta = Delta::default();
    // Nobody owns the whole object, so what happened to it itself does not matter.
    node(place, before, Some(after), &mut delta)?;
    Ok(delta)
}

fn node(place: Place<'_>, before: Before<'_>, after: Option<&Value>, out: &mut Delta) -> Result<Itself, String> {
    let was = place.kind(before.value());
    let is = place.kind(after);
    let mut itself = Itself::default();
    let visited = match (before, after) {
        (_, None) => visit(was, place, before, after, out)?,
        (Before::Absent | Before::Blank, Some(_)) => visit(is, place, before, after, out)?,
        (Before::Present(_), Some(_)) => {
            // A value that became one of another kind is compared as both: its former inside is gone, and it has changed.
            if was != is
                && let Visited::Leaf(leaf) = visit(was, place, before, after, out)?
            {
                itself = leaf;
            }
            visit(is, place, before, after, out)?
        }
    };
    match (visited, before, after) {
        (Visited::Leaf(leaf), _, _) => {
            itself.changed |= leaf.changed;
            itself.removed |= leaf.removed;
        }
        (Visited::Inside, Before::Absent, _) => itself.changed = true,
        (Visited::Inside, Before::Blank | Before::Present(_), None) => itself.removed = true,
        (Visited::Inside, Before::Blank | Before::Present(_), Some(_)) => {}
    }
    Ok(itself)
}

fn visit(
    kind: Kind,
    place: Place<'_>,
    before: Before<'_>,
    after: Option<&Value>,
    out: &mut Delta,
) -> Result<Visited, String> {
    match kind {
        Kind::Scalar => Ok(Visited::Leaf(leaf(before, after))),
        Kind::Map | Kind::Unknown => {
            let is = after.and_then(Value::as_object);
            // Two empty maps are compared as leaves: an empty one and none are not the same.
            let both_empty = before.object().is_none_or(Map::is_empty) && is.is_none_or(Map::is_empty);
            if both_empty || place.is_atomic_map() {
                return Ok(Visited::Leaf(leaf(before, after)));
            }
            fields(place, before, is, out)?;
            Ok(Visited::Inside)
        }
        Kind::List => {
            let is = after.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if (before.array().is_empty() && is.is_empty()) || place.is_atomic_list() {
                return Ok(Visited::Leaf(leaf(before, after)));
            }
            elements(place, before.array(), is, out)?;
            Ok(Visited::Inside)
        }
    }
}

fn leaf(before: Before<'_>, after: Option<&Value>) -> Itself {
    let same = |after: &Value| match before {
        Before::Absent => false,
        Before::Blank => after.as_object().is_some_and(Map::is_empty),
        Before::Present(value) => equal(value, after),
    };
    match after {
        None => Itself { changed: false, removed: true },
        Some(after) => Itself { changed: !same(after), removed: false },
    }
}

fn fields<'a>(
    place: Place<'a>,
    before: Before<'a>,
    after: Option<&'a Map<String, Value>>,
    out: &mut Delta,
) -> Result<(), String> {
    let was = before.object();
    for (name, value) in after.into_iter().flatten() {
        let former = match (before, was.and_then(|was| was.get(name))) {
            // What is the same needs no schema. This makes a small change to a large object cheap.
            (Before::Absent | Before::Present(_), Some(former)) if former == value => continue,
            (Before::Absent | Before::Present(_), Some(former)) => Before::Present(former),
            (Before::Absent | Before::Present(_), None) => Before::Absent,
            (Before::Blank, _) => Before::blank_field(place, name, value),
        };
        let mut inside = Delta::default();
        let itself = node(place.inside(name).place, former, Some(value), &mut inside)?;
        attach(out, || element::field(name), itself, inside);
    }
    for (name, value) in was.into_iter().flatten() {
        if after.is_none_or(|after| !after.contains_key(name)) {
            let mut inside = Delta::default();
            let itself = node(place.inside(name).place, Before::Present(value), None, &mut inside)?;
            attach(out, || element::field(name), itself, inside);
        }
    }
    Ok(())
}

/// The elements that one step leads to. More than one means that the list has duplicates.
#[derive(Default)]
struct Twins<'a> {
    before: Vec<&'a Value>,
    after: Vec<&'a Value>,
}

/// The elements of a list that is new.
fn new_elements(place: Place<'_>, after: &[Value], out: &mut Delta) -> Result<(), String> {
    let items = place.items();
    for value in after {
        let step = place.step(value)?;
        let mut inside = Delta::default();
        // Duplicates are owned together, as if they were one leaf.
        if !out.changed.nodes().contains_key(&step) {
            node(items, Before::Absent, Some(value), &mut inside)?;
        }
        out.changed.put(step, true, inside.changed);
    }
    Ok(())
}

fn elements(place: Place<'_>, before: &[Value], after: &[Value], out: &mut Delta) -> Result<(), String> {
    if before.is_empty() {
        return new_elements(place, after, out);
    }
    let mut all: BTreeMap<String, Twins<'_>> = BTreeMap::new();
    for value in before {
        all.entry(place.step(value)?).or_default().before.push(value);
    }
    for value in after {
        all.entry(place.step(value)?).or_default().after.push(value);
    }
    let items = place.items();
    for (step, twins) in all {
        let mut inside = Delta::default();
        let first = twins.before.first().map_or(Before::Absent, |value| Before::Present(value));
        let itself = match (&twins.before[..], &twins.after[..]) {
            ([] | [_], after @ ([] | [_])) => node(items, first, after.first().copied(), &mut inside)?,
            // Duplicates are owned together, as if they were one leaf.
            ([_, _, ..], [_, _, ..]) => {
                let same = twins.before.len() == twins.after.len()
                    && twins.before.iter().zip(&twins.after).all(|(was, is)| equal(was, is));
                Itself { changed: !same, removed: false }
            }
            ([_, _, ..], only) => {
                if let [only] = only {
                    node(items, Before::Absent, Some(only), &mut inside)?;
                }
                // The element that is left has a new owner: as a duplicate it is gone, as itself it is new.
                Itself { changed: !only.is_empty(), removed: true }
            }
            (_, [_, _, ..]) => {
                if let Before::Present(_) = first {
                    node(items, first, None, &mut inside)?;
                }
                Itself { changed: true, removed: !twins.before.is_empty() }
            }
        };
        attach(out, || step, itself, inside);
    }
    Ok(())
}

fn attach(out: &mut Delta, step: impl FnOnce() -> String, itself: Itself, inside: Delta) {
    let changed = itself.changed || !inside.changed.is_empty();
    let removed = itself.removed || !inside.removed.is_empty();
    match (changed, removed) {
        (false, false) => {}
        (true, false) => out.changed.put(step(), itself.changed, inside.changed),
        (false, true) => out.removed.put(step(), itself.removed, inside.removed),
        (true, true) => {
            let step = step();
            out.changed.put(step.clone(), itself.changed, inside.changed);
            out.removed.put(step, itself.removed, inside.removed);
        }
    }
}
