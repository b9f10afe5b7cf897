//! Changing an object field by field, whatever is there: what has the wrong type is left alone, for others to refuse.

use serde_json::{Map, Value};

/// The fields of an object.
pub(super) type Fields = Map<String, Value>;

/// Whether a field is absent, which `null` is too.
pub(super) fn unset(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_none_or(Value::is_null)
}

/// Whether a field is absent or has the zero value of its type, which Kubernetes cannot tell apart.
pub(super) fn zero(fields: &Fields, name: &str) -> bool {
    match fields.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Bool(true)) => false,
    }
}

/// Sets a field that is absent.
pub(super) fn fill(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if unset(fields, name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets a field that is absent or zero.
pub(super) fn fill_zero(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if zero(fields, name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Shows fields that have no value and are never left out.
pub(super) fn fill_null(fields: &mut Fields, names: &[&str]) {
    for name in names {
        fill(fields, name, Value::Null);
    }
}

/// The object in a field, if there is one.
pub(super) fn child<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    fields.get_mut(name).and_then(Value::as_object_mut)
}

/// The object in a field, made if it is absent.
pub(super) fn child_or_new<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    fill(fields, name, Map::new());
    child(fields, name)
}

/// Changes every object in a list.
pub(super) fn each(fields: &mut Fields, name: &str, change: impl FnMut(&mut Fields)) {
    let list = fields.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

/// The string in a field; empty if there is none.
pub(super) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The list in a field; empty if there is none.
pub(super) fn list<'a>(fields: &'a Fields, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
