//! Ownership, checked three ways: against what a real server answered, as tables, and as laws.

mod laws;
mod recorded;
mod tables;

use std::sync::Arc;

use serde_json::Value;

use crate::schema::{ArrayShape, ListType, ObjectShape, Rules, Schema, Shape};

/// Reads a schema from its OpenAPI form. References are resolved; `x-definition` keeps the name of what was referred to.
fn schema(source: &Value) -> Schema {
    let flag = |key: &str| source[key].as_bool().unwrap_or_default();
    let shape = match source["type"].as_str() {
        _ if flag("x-kubernetes-int-or-string") => Shape::IntOrString,
        Some("string") => Shape::String,
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("array") => {
            Shape::Array(ArrayShape { items: Arc::new(schema(&source["items"])), list: list_type(source) })
        }
        Some("object") => Shape::Object(object(source)),
        _ => Shape::Any,
    };
    let format = source["format"].as_str().map(ToOwned::to_owned);
    Schema {
        shape,
        nullable: flag("nullable"),
        default: source.get("default").cloned(),
        preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        rules: format.map(|format| Box::new(Rules { format: Some(format), ..Rules::default() })),
        definition: source["x-definition"].as_str().map(Into::into),
        ..Schema::default()
    }
}

fn list_type(source: &Value) -> ListType {
    let keys = || source["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match source["x-kubernetes-list-type"].as_str() {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(keys().map(ToOwned::to_owned).collect()),
        _ => ListType::Atomic,
    }
}

fn object(source: &Value) -> ObjectShape {
    let properties = source["properties"].as_object().into_iter().flatten();
    let required = source["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let structs = properties.clone().filter(|(_, source)| source["default"] == serde_json::json!({}));
    ObjectShape {
        properties: properties.clone().map(|(name, source)| (name.clone(), Arc::new(schema(source)))).collect(),
        additional: source.get("additionalProperties").map(|source| Arc::new(schema(source))),
        required: required.map(ToOwned::to_owned).collect(),
        structs: structs.map(|(name, _)| name.clone()).collect(),
        atomic: source["x-kubernetes-map-type"] == "atomic",
        ..ObjectShape::default()
    }
}
