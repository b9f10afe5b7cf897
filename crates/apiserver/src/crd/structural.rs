//! Whether a schema is structural: every field has a type, and value validations stay apart from structure.

use serde_json::Value;

use crate::field::FieldError;
use crate::path::Path;
use crate::schema::regexp;
use crate::value::Fields;

/// Where in a schema a place is, which decides how a missing type reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What is not supported, and how it is called.
const UNSUPPORTED: [(&str, &str); 7] = [
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

/// A construct that no structural schema can have, anywhere in the schema.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    let set = |keyword: &&str| match schema.at(keyword) {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    };
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(keyword, _)| set(keyword)) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if schema.at("x-kubernetes-preserve-unknown-fields") == &Value::Bool(false) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    if schema.at("items").is_array() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    children(schema).find_map(unsupported)
}

/// The schemas directly inside a schema.
fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let junctors = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|junctor| schema.list(junctor));
    let single = ["not", "items", "additionalProperties"].into_iter().map(|name| schema.at(name));
    let properties = schema.map("properties").into_iter().flat_map(|properties| properties.values());
    junctors.chain(single).chain(properties).filter(|child| child.is_object())
}

/// What keeps the schema from being structural, sorted as it reads.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let declared = schema.text("type");
    let items = path.field("items");
    if schema.at("items").is_object() {
        invariants(schema.at("items"), Level::Item, &items, errors);
    } else if declared == "array" {
        errors.push(FieldError::required(items, "must be specified"));
    }
    let properties = path.field("properties");
    for (name, property) in schema.entries("properties") {
        invariants(property, Level::Field, &properties.key(name), errors);
    }
    let additional = path.field("additionalProperties");
    if schema.has("additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(additional, "must not be used at the root"));
        }
        if schema.at("additionalProperties").is_object() {
            invariants(schema.at("additionalProperties"), Level::Field, &additional, errors);
        }
    }
    extensions(schema, path, errors);
    let first_of_all = schema.list("allOf").first().is_some_and(|first| int_or_string(first.at("anyOf")));
    value_validation(schema, int_or_string(schema.at("anyOf")), first_of_all, path, errors);
    types(schema, level, path, errors);
    if schema.has("properties") {
        resource_fields(schema, level, path, errors);
    }
}

fn extensions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if schema.flag("x-kubernetes-int-or-string") {
        for other in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if schema.flag(other) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(path.field(other), true, detail));
            }
        }
    }
}

fn types(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let declared = schema.text("type");
    let place = path.field("type");
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    let free = schema.flag("x-kubernetes-int-or-string") || schema.flag("x-kubernetes-preserve-unknown-fields");
    if embedded && declared != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match declared {
            "" => FieldError::required(place, detail),
            other => FieldError::invalid(place, other, detail),
        });
    } else if declared.is_empty() && !free {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(place, detail));
    }
    if embedded && schema.has("additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(path.field("additionalProperties"), detail));
    }
    if level == Level::Root && !declared.is_empty() && declared != "object" {
        errors.push(FieldError::invalid(place, declared, "must be object at the root"));
    }
    let preserved = schema.flag("x-kubernetes-preserve-unknown-fields");
    if embedded && !preserved && schema.map("properties").is_none_or(serde_json::Map::is_empty) {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(path.field("properties"), detail));
    }
}

/// `apiVersion`, `kind` and `metadata` have the types that they have everywhere.
fn resource_fields(schema: &Value, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let properties = path.field("properties");
    if level == Level::Root || schema.flag("x-kubernetes-embedded-resource") {
        for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let written = schema.at("properties").at(name);
            if written.is_object() && written.text("type") != wanted {
                let place = properties.key(name);
                errors.push(FieldError::invalid(
                    place.field("type"),
                    written.text("type"),
                    format!("must be {wanted}"),
                ));
            }
        }
    }
    let metadata = schema.at("properties").at("metadata");
    if level == Level::Root && metadata.is_object() {
        let allowed = |name: &str| name == "name" || name == "generateName";
        let keyword = |(key, value): (&String, &Value)| match key.as_str() {
            "type" | "default" => true,
            "properties" => value.as_object().is_none_or(|fields| fields.keys().all(|name| allowed(name))),
            _ => false,
        };
        if !metadata.as_object().is_none_or(|keywords| keywords.iter().all(keyword)) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(properties.key("metadata"), detail));
        }
    }
}

/// The one way in which alternatives may have types: `[{"type": "integer"}, {"type": "string"}]`.
fn int_or_string(any_of: &Value) -> bool {
    let only = |schema: &Value, declared: &str| {
        schema.as_object().is_some_and(|keywords| keywords.len() == 1) && schema.text("type") == declared
    };
    matches!(any_of.as_array().map(Vec::as_slice), Some([integer, string]) if only(integer, "integer") && only(string, "string"))
}

fn value_validation(
    schema: &Value,
    skip_any_of: bool,
    skip_first_of_all: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for junctor in ["anyOf", "allOf", "oneOf"] {
        if junctor == "anyOf" && skip_any_of {
            continue;
        }
        let place = path.field(junctor);
        for (index, nested) in schema.list(junctor).iter().enumerate() {
            let skip = junctor == "allOf" && index == 0 && skip_first_of_all;
            nested_validation(nested, skip, &place.index(index), errors);
        }
    }
    if schema.at("not").is_object() {
        nested_validation(schema.at("not"), false, &path.field("not"), errors);
    }
    let pattern = schema.text("pattern");
    if let Err(error) = regexp::compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {}", regexp::go_words(pattern, &error));
        errors.push(FieldError::invalid(path.field("pattern"), pattern, detail));
    }
}

/// Below `allOf` and its kin nothing may be said about structure.
fn nested_validation(schema: &Value, skip_any_of: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    value_validation(schema, skip_any_of, false, path, errors);
    if schema.at("items").is_object() {
        nested_validation(schema.at("items"), false, &path.field("items"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in schema.entries("properties") {
        nested_validation(property, false, &properties.key(name), errors);
    }
    let additional = schema.at("additionalProperties");
    let rules = [
        ("type", !schema.text("type").is_empty(), "must be empty to be structural"),
        (
            "additionalProperties",
            additional.is_object() || additional == &Value::Bool(true),
            "must be undefined to be structural",
        ),
        ("default", schema.has("default"), "must be undefined to be structural"),
        ("title", !schema.text("title").is_empty(), "must be empty to be structural"),
        ("description", !schema.text("description").is_empty(), "must be empty to be structural"),
        ("nullable", schema.flag("nullable"), "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            schema.flag("x-kubernetes-preserve-unknown-fields"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            schema.flag("x-kubernetes-embedded-resource"),
            "must be false to be structural",
        ),
        ("x-kubernetes-int-or-string", schema.flag("x-kubernetes-int-or-string"), "must be false to be structural"),
        (
            "x-kubernetes-list-map-keys",
            !schema.list("x-kubernetes-list-map-keys").is_empty(),
            "must be empty to be structural",
        ),
        ("x-kubernetes-list-type", schema.has("x-kubernetes-list-type"), "must be undefined to be structural"),
        ("x-kubernetes-map-type", schema.has("x-kubernetes-map-type"), "must be undefined to be structural"),
        (
            "x-kubernetes-validations",
            !schema.list("x-kubernetes-validations").is_empty(),
            "must be empty to be structural",
        ),
    ];
    for (keyword, broken, detail) in rules {
        if broken {
            errors.push(FieldError::forbidden(path.field(keyword), detail));
        }
    }
    if schema.at("properties").has("metadata") {
        errors.push(FieldError::forbidden(properties.key("metadata"), "must not be specified in a nested context"));
    }
}

/// What the root's value validations speak of must be part of the structure.
fn complete(validation: &Value, structure: Option<&Value>, at: &Path<'_>, by: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(structure) = structure else {
        errors.push(FieldError::required(*at, format!("because it is defined in {by}")));
        return;
    };
    if validation.at("not").is_object() {
        complete_nested(validation.at("not"), Some(structure), at, &by.field("not"), errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let by = by.field(junctor);
        for (index, nested) in validation.list(junctor).iter().enumerate() {
            complete_nested(nested, Some(structure), at, &by.index(index), errors);
        }
    }
}

fn complete_nested(
    validation: &Value,
    structure: Option<&Value>,
    at: &Path<'_>,
    by: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    complete(validation, structure, at, by, errors);
    let Some(structure) = structure else { return };
    let inner = |value: &'_ Value| value.is_object();
    if validation.at("items").is_object() {
        let items = Some(structure.at("items")).filter(|items| inner(items));
        complete_nested(validation.at("items"), items, &at.field("items"), &by.field("items"), errors);
    }
    let (at_properties, by_properties) = (at.field("properties"), by.field("properties"));
    for (name, nested) in validation.entries("properties") {
        let property = Some(structure.at("properties").at(name)).filter(|property| inner(property));
        complete_nested(nested, property, &at_properties.key(name), &by_properties.key(name), errors);
    }
}
