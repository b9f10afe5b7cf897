//! Lists: merged by a key, or as sets of scalars, and sorted so that a reader sees what the patch says and what the
//! object had, each in its order.

use serde_json::{Map, Value};

use super::{
    BAD_ELEMENT_ORDER, DIRECTIVE, ELEMENT_ORDER, Fault, Nulls, cleaned, directed, field_of, items_of, merge_object,
    words,
};
use crate::schema::{PatchStrategy, Schema};

/// How elements are told apart.
#[derive(Clone, Copy)]
enum Identity<'a> {
    Value,
    Key(&'a str),
}

impl<'a> Identity<'a> {
    /// By the merge key, when the field has one.
    fn declared(strategy: &'a PatchStrategy) -> Self {
        strategy.merge_key.as_deref().map_or(Self::Value, Self::Key)
    }

    /// What tells an element apart.
    fn of(self, element: &Value) -> Result<&Value, Fault> {
        match self {
            Self::Value => Ok(element),
            Self::Key(key) => {
                let Value::Object(fields) = element else {
                    return Err(Fault::bad_type("map[string]interface {}", element));
                };
                fields.get(key).ok_or_else(|| Fault::no_merge_key(fields, key))
            }
        }
    }

    /// What tells each element apart.
    fn of_all(self, elements: &[Value]) -> Result<Vec<Value>, Fault> {
        elements.iter().map(|element| self.of(element).cloned()).collect()
    }
}

/// A merged list.
pub(super) struct Merged {
    /// The elements.
    pub(super) elements: Vec<Value>,
    /// What told apart the elements of the list before, as the memory of a real server looks after the merge: it merges
    /// in place, so an added element takes the slot of a deleted one, and with it the place in the old order. Renaming a
    /// container shows it.
    slots: Vec<Value>,
}

/// Merges a list into a list, or takes its scalars out.
pub(super) fn merge(
    original: Vec<Value>,
    patch: &[Value],
    items: &Schema,
    strategy: &PatchStrategy,
    deletion: bool,
) -> Result<Merged, Fault> {
    if original.is_empty() && patch.is_empty() {
        return Ok(Merged { elements: original, slots: Vec::new() });
    }
    let identity = Identity::declared(strategy);
    if !element_type(&original, patch)?.is_object() {
        return merge_scalars(original, patch, identity, deletion);
    }
    let Identity::Key(key) = identity else {
        return Err(Fault::Unforeseen("cannot merge lists without merge key for struct".to_owned()));
    };
    let mut slots = identity.of_all(&original)?;
    let (original, patch) = obey_directives(original, patch, key, &mut slots)?;
    let before = identity.of_all(&original)?;
    let wanted: Vec<Value> = patch.iter().map(|e| identity.of(e).cloned()).collect::<Result<_, _>>()?;
    let merged = merge_elements(original, &patch, key, items, &mut slots)?;
    Ok(Merged { elements: arrange(merged, &wanted, &before, identity)?, slots })
}

fn merge_scalars(
    mut original: Vec<Value>,
    patch: &[Value],
    identity: Identity<'_>,
    deletion: bool,
) -> Result<Merged, Fault> {
    if deletion {
        original.retain(|v| !patch.contains(v));
        return Ok(Merged { elements: original, slots: Vec::new() });
    }
    if patch.is_empty() {
        // In place again: the last value fills the gap of each duplicate.
        let slots = fill_duplicates(&mut original);
        return Ok(Merged { elements: original, slots });
    }
    let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
    for value in original.iter().chain(patch) {
        if !merged.contains(value) {
            merged.push(value.clone());
        }
    }
    Ok(Merged { elements: arrange(merged, patch, &original, identity)?, slots: original })
}

fn fill_duplicates(values: &mut Vec<Value>) -> Vec<Value> {
    let mut slots = values.clone();
    let mut i = 0;
    while i < values.len() {
        while let Some(offset) = values[i + 1..].iter().position(|v| *v == values[i]) {
            let duplicate = i + 1 + offset;
            values.swap_remove(duplicate);
            if let Some(filled) = values.get(duplicate) {
                slots[duplicate] = filled.clone();
            }
        }
        i += 1;
    }
    slots
}

/// Deletes the elements that the patch deletes, or all when it replaces the list; what is left of the patch is merged.
fn obey_directives<'a>(
    mut original: Vec<Value>,
    patch: &'a [Value],
    key: &str,
    slots: &mut Vec<Value>,
) -> Result<(Vec<Value>, Vec<&'a Value>), Fault> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for element in patch {
        let Value::Object(fields) = element else { continue };
        let Some(directive) = fields.get(DIRECTIVE) else {
            plain.push(element);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let deleted = fields.get(key).ok_or_else(|| Fault::no_merge_key(fields, key))?;
                while let Some(i) = original.iter().position(|e| e.get(key) == Some(deleted)) {
                    // What is behind moves up; the last slot keeps what it had.
                    let last = original.len() - 1;
                    slots.insert(last + 1, slots[last].clone());
                    slots.remove(i);
                    original.remove(i);
                }
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(Fault::Unforeseen("merging lists cannot yet be specified in the patch".to_owned()));
            }
            _ => return Err(Fault::bad_directive(directive, fields)),
        }
    }
    if replace {
        return Ok((plain.into_iter().cloned().collect(), Vec::new()));
    }
    Ok((original, plain))
}

/// Merges each element into the one with the same key, or adds it.
fn merge_elements(
    mut original: Vec<Value>,
    patch: &[&Value],
    key: &str,
    items: &Schema,
    slots: &mut [Value],
) -> Result<Vec<Value>, Fault> {
    for element in patch {
        let Value::Object(changes) = element else { continue };
        let wanted = changes.get(key).ok_or_else(|| Fault::no_merge_key(changes, key))?;
        if let Some(Value::Object(fields)) = original.iter_mut().find(|e| e.get(key) == Some(wanted)) {
            merge_object(fields, changes, items)?;
            continue;
        }
        if let Some(free) = slots.get_mut(original.len()) {
            free.clone_from(wanted);
        }
        original.push((*element).clone());
    }
    Ok(original)
}

/// The first element, when all have the same type.
fn element_type<'a>(original: &'a [Value], patch: &'a [Value]) -> Result<&'a Value, Fault> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else {
        return Err(Fault::Unforeseen("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(Fault::ListOfLists);
    }
    if all.any(|other| words::go_type(other) != words::go_type(first)) {
        let both = format!("[{} {}]", words::go_list(original), words::go_list(patch));
        return Err(Fault::Unforeseen(format!("list element types are not identical: {both}")));
    }
    Ok(first)
}

/// Sorts a merged list. What the patch names comes in the order of the patch; what only the object has keeps its order,
/// and its place before the elements that it stood before.
fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    identity: Identity<'_>,
) -> Result<Vec<Value>, Fault> {
    let place = |order: &[Value], key: &Value| order.iter().position(|k| k == key);
    let mut named = Vec::new();
    let mut kept = Vec::new();
    for element in merged {
        let key = identity.of(&element)?;
        let (wanted, before) = (place(wanted, key), place(before, key));
        match wanted {
            Some(wanted) => named.push((wanted, before, element)),
            None => kept.push((before, element)),
        }
    }
    named.sort_by_key(|(wanted, ..)| *wanted);
    kept.sort_by_key(|(before, _)| before.unwrap_or(usize::MAX));

    let mut sorted = Vec::with_capacity(named.len() + kept.len());
    let mut kept = kept.into_iter().peekable();
    for (_, theirs, element) in named {
        while let Some((_, left)) =
            kept.next_if(|(ours, _)| matches!((ours, theirs), (Some(ours), Some(theirs)) if *ours < theirs))
        {
            sorted.push(left);
        }
        sorted.push(element);
    }
    sorted.extend(kept.map(|(_, element)| element));
    Ok(sorted)
}

/// Merges the lists whose order the patch sets, and says which they are.
pub(super) fn merge_ordered<'a>(
    doc: &mut Map<String, Value>,
    patch: &'a Map<String, Value>,
    schema: &Schema,
) -> Result<Vec<&'a str>, Fault> {
    let mut done = Vec::new();
    for (directive, order) in patch.iter().filter(|(name, _)| name.starts_with(ELEMENT_ORDER)) {
        let order = list_of(order)?;
        let name = directed(directive, ELEMENT_ORDER).ok_or(BAD_ELEMENT_ORDER)?;
        let original = doc.get(name).map(list_of).transpose()?;
        let changes = patch.get(name).map(list_of).transpose()?;
        let field = field_of(schema, name)?;
        let identity = Identity::declared(&field.patch);
        check_order(changes.unwrap_or_default(), order, identity)?;
        if original.is_none() && changes.is_none() {
            continue;
        }
        element_type(original.unwrap_or_default(), changes.unwrap_or_default())?;
        let mut before = identity.of_all(original.unwrap_or_default())?;
        let wanted = identity.of_all(order)?;
        let elements = match (original, changes) {
            (Some(_), Some(changes)) if field.patch.merge => {
                let original = doc.get_mut(name).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
                let merged = merge(original, changes, items_of(field), &field.patch, false)?;
                before = merged.slots;
                merged.elements
            }
            (Some(_), Some(changes)) => changes.to_vec(),
            (Some(original), None) => original.to_vec(),
            (None, _) => changes.unwrap_or_default().iter().filter_map(|v| cleaned(v, Nulls::Kept)).collect(),
        };
        doc.insert(name.to_owned(), Value::Array(arrange(elements, &wanted, &before, identity)?));
        done.push(name);
    }
    Ok(done)
}

fn list_of(value: &Value) -> Result<&[Value], Fault> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(Fault::bad_type("[]interface {}", other)),
    }
}

/// Refuses a patch whose list is in another order than the one it sets, or has elements that the order does not have.
fn check_order(changes: &[Value], order: &[Value], identity: Identity<'_>) -> Result<(), Fault> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for change in changes {
        if matches!(identity, Identity::Key(_)) && !change.is_object() {
            return Err(Fault::bad_type("map[string]interface {}", change));
        }
        match change.get(DIRECTIVE) {
            Some(directive) if directive == "delete" || places.len() > 0 => continue,
            _ => {}
        }
        let mut found = false;
        for place in places.by_ref() {
            if identity.of(change)? == identity.of(place)? {
                found = true;
                break;
            }
        }
        if !found {
            let (changes, order) = (words::go_list(changes), words::go_list(order));
            return Err(Fault::Unforeseen(format!(
                "The order in patch list:\n{changes}\n doesn't match {ELEMENT_ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}
