//! The rules of an `openAPIV3Schema` that are not about being structural.

use serde_json::Value;

use crate::field::FieldError;
use crate::path::Path;
use crate::value::Fields;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What surrounds a place in the schema.
#[derive(Clone, Default)]
struct Around {
    root: bool,
    inside_metadata: bool,
    /// Why there may be no default here.
    no_default: Option<String>,
}

/// What is wrong with the schema, beyond its structure.
pub(super) fn validate(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    node(schema, path, &Around { root: true, ..Around::default() }, errors);
}

fn node(schema: &Value, path: &Path<'_>, around: &Around, errors: &mut Vec<FieldError>) {
    if !schema.is_object() {
        return;
    }
    keywords(schema, path, around, errors);
    if schema.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(path.field("uniqueItems"), detail));
    }
    inside(schema, path, around, errors);
    if schema.at("x-kubernetes-preserve-unknown-fields") == &Value::Bool(false) {
        let place = path.field("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(place, false, "must be true or undefined"));
    }
    topology(schema, path, errors);
    if schema.text("x-kubernetes-list-type") == "map" {
        map_list(schema, path, errors);
    }
    map_keys(schema, path, errors);
    expressions(schema, path, errors);
}

/// Keywords that are not for this place, or for no place at all.
fn keywords(schema: &Value, path: &Path<'_>, around: &Around, errors: &mut Vec<FieldError>) {
    let declared = schema.text("type");
    if !declared.is_empty() && !TYPES.contains(&declared) {
        errors.push(FieldError::not_supported(path.field("type"), declared, &TYPES));
    }
    if schema.has("default")
        && let Some(reason) = &around.no_default
    {
        errors.push(FieldError::forbidden(path.field("default"), format!("must not be set {reason}")));
    }
    let filled = |keyword: &str| match schema.at(keyword) {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty() || keyword == "dependencies",
        _ => true,
    };
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if filled(keyword) {
            errors.push(FieldError::forbidden(path.field(keyword), format!("{keyword} is not supported")));
        }
    }
    if declared == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(path.field("type"), detail));
    }
    if schema.at("items").is_array() {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(path.field("items"), detail));
    }
    if around.inside_metadata && schema.flag("x-kubernetes-embedded-resource") {
        let place = path.field("x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(place, "must not be used inside of resource meta"));
    }
}

/// The schemas inside, each with its surroundings.
fn inside(schema: &Value, path: &Path<'_>, around: &Around, errors: &mut Vec<FieldError>) {
    let below = Around { root: false, ..around.clone() };
    let additional = schema.at("additionalProperties");
    if !additional.is_null() {
        let place = path.field("additionalProperties");
        let properties = schema.map("properties").is_some_and(|properties| !properties.is_empty());
        if properties && additional != &Value::Bool(true) {
            errors.push(FieldError::forbidden(place, "additionalProperties and properties are mutual exclusive"));
        }
        let mut below = below.clone();
        if below.inside_metadata {
            below.no_default = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        node(additional, &place, &below, errors);
    }
    let resource = around.root || schema.flag("x-kubernetes-embedded-resource");
    let properties = path.field("properties");
    for (name, property) in schema.entries("properties") {
        let mut below = below.clone();
        if resource && RESOURCE_FIELDS.contains(&name) {
            below.inside_metadata = true;
            if around.root {
                below.no_default = Some(format!("in top-level {name}"));
            }
        }
        node(property, &properties.key(name), &below, errors);
    }
    node(schema.at("not"), &path.field("not"), &below, errors);
    for junctor in ["allOf", "oneOf", "anyOf"] {
        let place = path.field(junctor);
        for (index, nested) in schema.list(junctor).iter().enumerate() {
            node(nested, &place.index(index), &below, errors);
        }
    }
    node(schema.at("items"), &path.field("items"), &below, errors);
}

/// `x-kubernetes-map-type` and `x-kubernetes-list-type`.
fn topology(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let topologies: [(&str, &str, &[&str]); 2] = [
        ("x-kubernetes-map-type", "object", &["atomic", "granular"]),
        ("x-kubernetes-list-type", "array", &["atomic", "set", "map"]),
    ];
    for (keyword, wanted, allowed) in topologies {
        let Some(given) = schema.at(keyword).as_str() else { continue };
        let declared = schema.text("type");
        if declared != wanted {
            let detail = format!("must be {wanted} if {keyword} is specified");
            let place = path.field("type");
            errors.push(match declared {
                "" => FieldError::required(place, detail),
                other => FieldError::invalid(place, other, detail),
            });
        } else if given == "set" {
            set_items(schema.at("items"), &path.field("items"), errors);
        }
        if !allowed.contains(&given) {
            errors.push(FieldError::not_supported(path.field(keyword), given, allowed));
        }
    }
    if !schema.list("x-kubernetes-list-map-keys").is_empty() && schema.text("x-kubernetes-list-type") != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let place = path.field("x-kubernetes-list-type");
        errors.push(match schema.at("x-kubernetes-list-type").as_str() {
            None => FieldError::required(place, detail),
            Some(other) => FieldError::invalid(place, other, detail),
        });
    }
}

/// The elements of a set cannot be owned in part.
fn set_items(items: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = items.at("x-kubernetes-list-type");
    match items.text("type") {
        "array" if !list_type.is_null() && list_type != "atomic" => {
            errors.push(FieldError::invalid(path.field("x-kubernetes-list-type"), list_type.clone(), detail));
        }
        "object" if items.text("x-kubernetes-map-type") != "atomic" => {
            errors.push(FieldError::invalid(path.field("x-kubernetes-map-type"), list_type.clone(), detail));
        }
        _ => {}
    }
}

fn map_list(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let place = path.field("x-kubernetes-list-map-keys");
    let keys = schema.list("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(place, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_place = path.field("items");
    let items = schema.at("items");
    if items.is_null() {
        errors.push(FieldError::required(items_place, "must have a schema if x-kubernetes-list-type is map"));
        return;
    }
    if items.text("type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(items_place.field("type"), items.text("type"), detail));
        return;
    }
    let properties = items_place.field("properties");
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let property = items.at("properties").at(name);
        if property.is_null() {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(place, keys.to_vec(), detail));
        } else if matches!(property.text("type"), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            // The type shown is that of the element, as in a real server.
            errors.push(FieldError::invalid(properties.key(name).field("type"), "object", detail));
        }
        if keys.iter().take(index).any(|earlier| earlier == key) {
            errors.push(FieldError::invalid(place, keys.to_vec(), "must not contain duplicate entries"));
        }
    }
}

/// What tells elements apart must always be there.
fn map_keys(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (list_type, items) = (schema.text("x-kubernetes-list-type"), schema.at("items"));
    if !items.is_object() || !matches!(list_type, "set" | "map") {
        return;
    }
    let items_place = path.field("items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(items_place.field("nullable"), detail));
    }
    if list_type == "set" {
        return;
    }
    let properties = items_place.field("properties");
    for name in schema.texts("x-kubernetes-list-map-keys") {
        let property = items.at("properties").at(name);
        if property.is_null() {
            continue;
        }
        let place = properties.key(name);
        if !property.has("default") && !items.texts("required").any(|required| required == name) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(place.field("default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(place.field("nullable"), detail));
        }
    }
}

/// `x-kubernetes-validations`, as far as it can be judged without reading the expressions.
fn expressions(schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let list = path.field("x-kubernetes-validations");
    for (index, rule) in schema.list("x-kubernetes-validations").iter().enumerate() {
        let place = list.index(index);
        let (text, message) = (rule.text("rule").trim(), rule.text("message"));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        if text.is_empty() {
            errors.push(FieldError::required(place.field("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(place.field("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            errors.push(FieldError::invalid(place.field("message"), message, "must not contain line breaks"));
        } else if breaks(text) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(place.field("message"), detail));
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(place.field("messageExpression"), detail));
        }
        if let Some(reason) = rule.at("reason").as_str().filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(place.field("reason"), reason, &REASONS));
        }
        let field_path = rule.text("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            errors.push(FieldError::invalid(place.field("fieldPath"), field_path, "must be non-empty if specified"));
        }
        if breaks(field_path) {
            errors.push(FieldError::invalid(place.field("fieldPath"), field_path, "must not contain line breaks"));
        }
        if !field_path.is_empty() && super::field_path::find(schema, field_path, true).is_err() {
            errors.push(FieldError::invalid(place.field("fieldPath"), field_path, "must be a valid path"));
        }
    }
}
