//! Defaults must be what the schema allows.

use serde_json::Value;

use crate::field::FieldError;
use crate::path::Path;
use crate::schema::{Schema, Shape, prune, validate};

/// What is wrong with the defaults in a schema. The root is a resource, and a default of it would be one.
pub(super) fn validate(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let root = Schema { embedded_resource: true, ..schema.clone() };
    check(&root, path, errors);
}

fn check(schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
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
    let resources = validate::validate_resources(&place.to_string(), default, schema);
    if !resources.is_empty() {
        errors.extend(resources);
        return;
    }
    let place = place.to_string();
    if matches!(schema.shape, Shape::IntOrString) {
        // A real server forgets the type of these here, and sees only what else is said about them.
        let untyped = Schema { shape: Shape::Any, ..schema.clone() };
        errors.extend(validate::validate_default(&place, default, &untyped));
    } else {
        errors.extend(validate::validate_default(&place, default, schema));
    }
}
