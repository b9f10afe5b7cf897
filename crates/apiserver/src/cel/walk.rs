//! An object held against all rules of its schema.

use kube_cel::cel::Context;
use serde_json::{Map, Value};

use super::cost::{self, Widths};
use super::rule::Subject;
use super::{functions, value};
use crate::field::FieldError;
use crate::schema::path::Path;
use crate::schema::{ArrayShape, ListType, ObjectShape, Schema, Shape};

/// What the rules of a schema say about an object; what was wrong before, and is as it was, is only mentioned.
pub(crate) fn problems(object: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    if !has_rules(schema) {
        return Vec::new();
    }
    let functions = functions();
    let mut walk = Walk { functions, left: cost::BUDGET, errors: Vec::new() };
    walk.node(object, old, schema, &Path::Root);
    walk.errors
}

/// Whether any rule is anywhere.
fn has_rules(schema: &Schema) -> bool {
    let inside = match &schema.shape {
        Shape::Object(shape) => shape.properties.values().chain(&shape.additional).any(|inner| has_rules(inner)),
        Shape::Array(shape) => has_rules(&shape.items),
        Shape::Any | Shape::String | Shape::Integer | Shape::Number | Shape::Boolean | Shape::IntOrString => false,
    };
    inside || schema.rules.as_ref().is_some_and(|rules| !rules.compiled.is_empty())
}

struct Walk {
    functions: Context<'static>,
    /// What may still be spent.
    left: u64,
    errors: Vec<FieldError>,
}

impl Walk {
    fn node(&mut self, object: &Value, old: Option<&Value>, schema: &Schema, path: &Path<'_>) {
        if self.left == 0 || object.is_null() {
            return;
        }
        self.ask(object, old, schema, path);
        match (object, &schema.shape) {
            (Value::Object(fields), Shape::Object(shape)) => self.object(fields, old, shape, path),
            (Value::Array(elements), Shape::Array(shape)) => self.array(elements, old, shape, path),
            _ => {}
        }
    }

    fn ask(&mut self, object: &Value, old: Option<&Value>, schema: &Schema, path: &Path<'_>) {
        let Some(rules) = schema.rules.as_ref().map(|rules| &rules.compiled).filter(|rules| !rules.is_empty()) else {
            return;
        };
        let subject = Subject {
            place: &path.bracketed(),
            value: value::typed(object, schema),
            old: old.filter(|old| !old.is_null()).map(|old| value::typed(old, schema)),
            shown: Some(object).filter(|object| !object.is_object() && !object.is_array()),
            type_: type_name(&schema.shape),
            widths: Widths::of(object).max(old.map_or(Widths::default(), Widths::of)),
        };
        let is_unchanged = old == Some(object);
        let refusals = rules.refusals(subject, &self.functions, &mut self.left);
        self.errors.extend(refusals.into_iter().map(|refusal| {
            let is_old = is_unchanged && !refusal.is_transition;
            FieldError { is_old, ..refusal.error }
        }));
    }

    fn object(&mut self, fields: &Map<String, Value>, old: Option<&Value>, shape: &ObjectShape, path: &Path<'_>) {
        let old = old.and_then(Value::as_object);
        for (name, value) in fields {
            let before = old.and_then(|old| old.get(name));
            match (shape.properties.get(name), &shape.additional) {
                (Some(known), _) => self.node(value, before, known, &path.field(name)),
                (None, Some(additional)) => self.node(value, before, additional, &path.key(name)),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, elements: &[Value], old: Option<&Value>, shape: &ArrayShape, path: &Path<'_>) {
        let old = old.and_then(Value::as_array);
        for (index, element) in elements.iter().enumerate() {
            // Only elements with a key can be recognised again.
            let before = match (&shape.list, old) {
                (ListType::Map(keys), Some(old)) => {
                    old.iter().find(|old| keys.iter().all(|key| old.get(key) == element.get(key)))
                }
                _ => None,
            };
            self.node(element, before, &shape.items, &path.index(index));
        }
    }
}

/// As a schema spells it.
fn type_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any | Shape::IntOrString => "",
        Shape::String => "string",
        Shape::Integer => "integer",
        Shape::Number => "number",
        Shape::Boolean => "boolean",
        Shape::Object(_) => "object",
        Shape::Array(_) => "array",
    }
}
