//! Defaults must be what the schema allows.

use serde_json::Value;

use crate::field::FieldError;
use crate::path::Path;
use crate::schema::{Schema, Shape, prune, validate};

/// What is wrong with the defaults in a schema.
pub(super) fn check(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // The schema of metadata is not the author's.
    if schema.definition.is_some() {
        return;
    }
    if let Some(default) = &schema.default {
        one(default, schema, &path.field("default"), errors);
    }
    match &schema.shape {
        Shape::Object(shape) => {
            let properties = path.field("properties");
            for (name, property) in &shape.properties {
                check(property, &properties.key(name), errors);
            }
        }
        Shape::Array(shape) => check(&shape.items, &path.field("items"), errors),
        Shape::Any | Shape::String | Shape::Integer | Shape::Number | Shape::Boolean | Shape::IntOrString => {}
    }
}

fn one(default: &Value, schema: &Schema, place: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !prune::is_pruned(default, schema) {
        errors.push(FieldError::invalid(*place, default.clone(), "must not have unknown fields"));
    }
    errors.extend(validate::validate_default(&place.to_string(), default, schema));
}
