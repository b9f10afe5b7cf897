//! What a schema validator does not see: resources inside of resources, and the elements of sets and maps.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::Path;
use super::{ListType, Schema, Shape};
use crate::field::FieldError;
use crate::meta;

/// Checks the embedded resources: they must say what they are.
pub(super) fn resources(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (value, &schema.shape) {
        (Value::Object(fields), Shape::Object(shape)) => {
            if schema.embedded_resource {
                resource(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(known) = shape.properties.get(name) {
                    resources(value, known, &path.field(name), errors);
                } else if let Some(additional) = &shape.additional {
                    resources(value, additional, &path.key(name), errors);
                }
            }
        }
        (Value::Array(elements), Shape::Array(shape)) => {
            for (index, element) in elements.iter().enumerate() {
                resources(element, &shape.items, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let place = path.field(name);
        let invalid = |value: Value, detail: &str| FieldError::invalid(place.bracketed(), value, detail);
        match fields.get(name) {
            None => errors.push(FieldError::required(place.bracketed(), "")),
            Some(Value::String(text)) if text.is_empty() => errors.push(invalid("".into(), "must not be empty")),
            Some(Value::String(version)) if name == "apiVersion" => {
                if version.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {version}");
                    errors.push(invalid(version.as_str().into(), &detail));
                }
            }
            Some(Value::String(kind)) => {
                let wrong = meta::format::is_dns1035_label(&kind.to_lowercase());
                if !wrong.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                    errors.push(invalid(kind.as_str().into(), &detail));
                }
            }
            Some(other) => errors.push(invalid(other.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        resource_metadata(metadata, path, errors);
    }
}

/// The metadata of an embedded resource follows the rules of all metadata, except that it needs no name.
fn resource_metadata(metadata: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_set = |name: &str| metadata.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let below = path.bracketed();
    for mut error in meta::validate(metadata, is_set("namespace"), meta::NameRule::PathSegment) {
        if error.path == "metadata.name" && !is_set("name") {
            continue;
        }
        error.path = format!("{below}.{}", error.path);
        errors.push(error);
    }
}

/// Checks that sets have no element twice, and maps no key.
pub(super) fn list_types(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // Metadata has checks of its own, and other words for the same complaints.
    if schema.definition.is_some() {
        return;
    }
    match (value, &schema.shape) {
        (Value::Object(fields), Shape::Object(shape)) => {
            for (name, value) in fields {
                if let Some(known) = shape.properties.get(name) {
                    list_types(value, known, &path.field(name), errors);
                }
                if let Some(additional) = &shape.additional {
                    list_types(value, additional, &path.key(name), errors);
                }
            }
        }
        (Value::Array(elements), Shape::Array(shape)) => {
            match &shape.list {
                ListType::Atomic => {}
                ListType::Set => set(elements, path, errors),
                ListType::Map(keys) => map(elements, keys, path, errors),
            }
            for (index, element) in elements.iter().enumerate() {
                list_types(element, &shape.items, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn set(elements: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for index in repeated(elements, |left, right| left == right, ToString::to_string) {
        if let Some(element) = elements.get(index) {
            errors.push(FieldError::duplicate(path.index(index).bracketed(), element.clone()));
        }
    }
}

fn map(elements: &[Value], keys: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let stranger = |element: &Value| !element.is_object() && !element.is_null();
    if let Some(index) = elements.iter().position(stranger)
        && let Some(element) = elements.get(index)
    {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path.index(index).bracketed(), element.clone(), detail));
        return;
    }
    let same = |left: &Value, right: &Value| keys.iter().all(|key| left.get(key) == right.get(key));
    for index in repeated(elements, same, |element| key_of(element, keys).to_string()) {
        if let Some(element) = elements.get(index) {
            errors.push(FieldError::duplicate(path.index(index).bracketed(), key_of(element, keys)));
        }
    }
}

fn key_of(element: &Value, keys: &[String]) -> Value {
    let present = |key: &String| Some((key.clone(), element.get(key)?.clone()));
    Value::Object(keys.iter().filter_map(present).collect())
}

/// The indices at which an element stands for the second time; a third time is not reported.
fn repeated(
    elements: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
    identity: impl Fn(&Value) -> String,
) -> Vec<usize> {
    /// Up to here, comparing every pair is quicker than a search tree of identities.
    const FEW: usize = 16;
    let mut again = Vec::new();
    if elements.len() <= FEW {
        for (index, element) in elements.iter().enumerate() {
            if elements.iter().take(index).filter(|earlier| same(earlier, element)).count() == 1 {
                again.push(index);
            }
        }
        return again;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, element) in elements.iter().enumerate() {
        let times = seen.entry(identity(element)).or_default();
        *times += 1;
        if *times == 2 {
            again.push(index);
        }
    }
    again
}
