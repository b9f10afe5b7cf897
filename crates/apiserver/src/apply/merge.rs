//! The merge of an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::equal;
use super::shape::{Kind, Place};

/// Merges `applied` into `live`, field by field; where both have a leaf, the applied one wins. Nothing is removed, and what
/// has an equal value stays as it was written: `1` does not become `1.0`.
pub(super) fn merge(place: Place<'_>, live: &mut Value, applied: Value) -> Result<(), String> {
    match place.kind(Some(&applied)) {
        Kind::Scalar => replace(live, applied),
        Kind::Map | Kind::Unknown => {
            let both_empty =
                live.as_object().is_none_or(Map::is_empty) && applied.as_object().is_none_or(Map::is_empty);
            if both_empty || place.is_atomic_map() {
                replace(live, applied);
                return Ok(());
            }
            match (&mut *live, applied) {
                (Value::Object(live), Value::Object(applied)) => return merge_fields(place, live, applied),
                // A map that is there is not merged away by a null.
                (Value::Object(_), _) => {}
                (live, applied) => *live = applied,
            }
        }
        Kind::List => {
            let both_empty = live.as_array().is_none_or(Vec::is_empty) && applied.as_array().is_none_or(Vec::is_empty);
            if both_empty || place.is_atomic_list() {
                replace(live, applied);
                return Ok(());
            }
            match (&mut *live, applied) {
                (Value::Array(live), Value::Array(applied)) => {
                    *live = merge_lists(place, std::mem::take(live), applied)?;
                }
                (Value::Array(_), _) => {}
                (live, applied) => *live = applied,
            }
        }
    }
    Ok(())
}

fn replace(live: &mut Value, applied: Value) {
    if !equal(live, &applied) {
        *live = applied;
    }
}

fn merge_fields(place: Place<'_>, live: &mut Map<String, Value>, applied: Map<String, Value>) -> Result<(), String> {
    for (name, value) in applied {
        match live.get_mut(&name) {
            Some(present) => merge(place.inside(&name).place, present, value)?,
            None => {
                live.insert(name, value);
            }
        }
    }
    Ok(())
}

/// A list on its way into the merged one: its elements, and where each step leads.
struct Source {
    elements: Vec<(String, Option<Value>)>,
    /// The index of the only element with this step, or `None` for duplicates.
    by_step: BTreeMap<String, Option<usize>>,
}

impl Source {
    fn new(place: Place<'_>, list: Vec<Value>) -> Result<Self, String> {
        let mut source = Self { elements: Vec::with_capacity(list.len()), by_step: BTreeMap::new() };
        for (i, value) in list.into_iter().enumerate() {
            let step = place.step(&value).map_err(|why| format!("element {i}: {why}"))?;
            source.by_step.entry(step.clone()).and_modify(|index| *index = None).or_insert(Some(i));
            source.elements.push((step, Some(value)));
        }
        Ok(source)
    }

    fn step(&self, index: usize) -> Option<&str> {
        self.elements.get(index).map(|(step, _)| step.as_str())
    }

    fn has(&self, step: &str) -> bool {
        self.by_step.contains_key(step)
    }

    fn take(&mut self, index: usize) -> Option<Value> {
        self.elements.get_mut(index).and_then(|(_, value)| value.take())
    }

    /// The element with this step. Duplicates have none: they are replaced, not merged with.
    fn take_step(&mut self, step: &str) -> Option<Value> {
        let index = self.by_step.get(step).copied().flatten()?;
        self.take(index)
    }
}

/// Merges two lists whose elements can be told apart. The order is the live one where the configuration does not
/// contradict it, and the configuration's where it does.
fn merge_lists(place: Place<'_>, live: Vec<Value>, applied: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let mut live = Source::new(place, live)?;
    let mut applied = Source::new(place, applied)?;
    let in_both: Vec<String> =
        applied.elements.iter().filter(|(step, _)| live.has(step)).map(|(step, _)| step.clone()).collect();
    // The shared elements in the order of the configuration; `next` is the one that must come first of those left.
    let mut shared = in_both.iter().map(String::as_str);
    let mut next = shared.next();
    let mut merged: BTreeSet<String> = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    while l < live.elements.len() || r < applied.elements.len() {
        if let (Some(ours), Some(theirs)) = (live.step(l), applied.step(r)) {
            if ours == theirs {
                let step = ours.to_owned();
                out.push(merged_element(place, &mut live, &mut applied, &step)?);
                merged.insert(step);
                (l, r) = (l + 1, r + 1);
                next = shared.next();
                continue;
            }
            if applied.has(ours) && next.is_some_and(|next| next != ours) {
                l += 1;
                continue;
            }
        }
        if let Some(ours) = live.step(l) {
            if !applied.has(ours) {
                out.extend(live.take(l));
                l += 1;
                continue;
            } else if merged.contains(ours) {
                l += 1;
            }
        }
        if let Some(step) = applied.step(r).map(str::to_owned) {
            out.push(merged_element(place, &mut live, &mut applied, &step)?);
            if next == Some(step.as_str()) {
                next = shared.next();
            }
            merged.insert(step);
            r += 1;
        }
    }
    Ok(out)
}

fn merged_element(place: Place<'_>, live: &mut Source, applied: &mut Source, step: &str) -> Result<Value, String> {
    let theirs = applied.take_step(step).unwrap_or_default();
    match live.take_step(step) {
        None => Ok(theirs),
        Some(mut ours) => {
            merge(place.items(), &mut ours, theirs)?;
            Ok(ours)
        }
    }
}
