//! The way from `kubectl apply` to `kubectl apply --server-side`.
//!
//! The older apply keeps the configuration in an annotation. When kubectl applies on the server, fields that still are as
//! that annotation says do not conflict, and the annotation is kept up to date so that one can go back.

use serde_json::{Map, Value};

use super::compare::Before;
use super::owned;
use super::set::FieldSet;
use super::shape::Place;
use super::{Request, compare};

/// The manager that this is for. Who does not want it names another.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotations of an object may not be larger, keys included.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The text of the annotation for a configuration.
pub(super) fn configuration(applied: &Value) -> String {
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let mut out = String::new();
    // In JSON these stand only inside strings, where the escaped form means the same.
    for c in applied.to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out.push('\n');
    out
}

/// Sets the annotation anew on an object that has it. One that would be too large is dropped.
pub(super) fn refresh(object: &mut Value, configuration: String) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    annotations.insert(ANNOTATION.to_owned(), Value::String(configuration));
    let size = |map: &Map<String, Value>| -> usize {
        map.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
    };
    if size(annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

/// The fields that still are as the annotation says, or `None` when there is no annotation that can be understood.
pub(super) fn fields(req: &Request<'_>, live: &Value) -> Option<FieldSet> {
    let place = Place::root(req.schema);
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied.get("apiVersion").and_then(Value::as_str) != Some(req.api_version) {
        return None;
    }
    super::check::check(place, &applied).ok()?;
    let delta = compare::objects(place, Before::Present(&applied), live).ok()?;
    let mut fields = owned::fields(place, &applied);
    fields.subtract(&delta.changed);
    fields.subtract(&delta.removed);
    Some(fields)
}
