//! Validation of custom resources against their schema, in the words of a Kubernetes API server.
//!
//! A real server prints fields in the order of a hash map; here they come sorted by name. Everything else is in its order:
//! for each value its type first, then `anyOf`, `oneOf`, `allOf` and `not`, then its own rules, then what is inside it.

mod scalar;

use serde_json::{Map, Value};

use super::path::Path;
use super::{ArrayShape, ListType, ObjectShape, Rules, Schema, Shape, embedded};
use crate::field::{FieldError, Problem};

pub use super::unmarshal::decode_errors;

/// What is wrong with a new object.
pub fn validate(value: &Value, schema: &Schema) -> Vec<FieldError> {
    check(value, None, schema)
}

/// What is wrong with an object that replaces `old`. What was wrong already, and did not change, is let through.
pub fn validate_update(value: &Value, old: &Value, schema: &Schema) -> Vec<FieldError> {
    check(value, Some(old), schema)
}

/// What is wrong with an object whose status replaces that of `old`: only the status is held against the rules.
pub fn validate_status(value: &Value, old: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Shape::Object(shape) = &schema.shape
        && let Some(status_schema) = shape.properties.get("status")
        && let Some(status) = value.get("status")
    {
        errors = check_below("status", status, old.get("status"), status_schema);
    }
    structure(value, Some(old), schema, &mut errors);
    expressions(value, Some(old), schema, &mut errors);
    errors
}

/// What is wrong with a default, which stands at `place` in a schema.
pub(crate) fn validate_default(place: &str, default: &Value, schema: &Schema) -> Vec<FieldError> {
    check_below(place, default, None, schema)
}

/// What is wrong with the resources in a default, which stands at `place` in a schema.
pub(crate) fn validate_resources(place: &str, default: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    embedded::resources(default, schema, &Path::Root.field(place), &mut errors);
    errors
}

/// Complaints about a part of an object: their paths start at `place`, their words at the part.
fn check_below(place: &str, value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let mut outcome = Outcome::default();
    outcome.ratcheted(value, old, schema, &Path::Root);
    let mut errors = outcome.into_errors();
    for error in &mut errors {
        error.path = match error.path.as_str() {
            NOWHERE => place.to_owned(),
            path => format!("{place}.{path}"),
        };
    }
    errors
}

/// Where a complaint is that names its place in words only.
pub(super) const NOWHERE: &str = "<nil>";

fn check(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let mut outcome = Outcome::default();
    outcome.ratcheted(value, old, schema, &Path::Root);
    let mut errors = outcome.into_errors();
    structure(value, old, schema, &mut errors);
    expressions(value, old, schema, &mut errors);
    errors
}

/// Embedded resources, and the promises of `x-kubernetes-list-type`.
fn structure(value: &Value, old: Option<&Value>, schema: &Schema, errors: &mut Vec<FieldError>) {
    embedded::resources(value, schema, &Path::Root, errors);
    let before = errors.len();
    embedded::list_types(value, schema, &Path::Root, errors);
    // Lists that were bad already may stay bad: one cannot repair an object that one cannot write.
    if errors.len() > before
        && let Some(old) = old
    {
        let mut old_errors = Vec::new();
        embedded::list_types(old, schema, &Path::Root, &mut old_errors);
        if !old_errors.is_empty() {
            errors.truncate(before);
        }
    }
}

/// What expressions say. They are not evaluated on an object of the wrong shape, and the server says so.
#[cfg_attr(not(feature = "cel"), expect(unused_variables, reason = "without CEL no expression is evaluated"))]
fn expressions(value: &Value, old: Option<&Value>, schema: &Schema, errors: &mut Vec<FieldError>) {
    let blocking = |error: &FieldError| match error.problem {
        Problem::NotSupported | Problem::Required | Problem::TooLong | Problem::TooMany | Problem::TypeInvalid => true,
        Problem::NotFound | Problem::Duplicate | Problem::Invalid | Problem::Forbidden => false,
    };
    if errors.iter().any(blocking) && has_expressions(schema) {
        let detail = "some validation rules were not checked because the object was invalid; \
                      correct the existing errors to complete validation";
        errors.push(FieldError::invalid(NOWHERE, Value::Null, detail));
        return;
    }
    #[cfg(feature = "cel")]
    if !errors.iter().any(blocking) {
        errors.extend(crate::cel::problems(value, old, schema));
    }
}

fn has_expressions(schema: &Schema) -> bool {
    let inside = match &schema.shape {
        Shape::Object(shape) => shape.properties.values().chain(&shape.additional).any(|inner| has_expressions(inner)),
        Shape::Array(shape) => has_expressions(&shape.items),
        Shape::Any | Shape::String | Shape::Integer | Shape::Number | Shape::Boolean | Shape::IntOrString => false,
    };
    inside || schema.rules.as_ref().is_some_and(|rules| !rules.expressions.is_empty())
}

/// What a value came to, against a schema.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How many checks were made and passed. Of several failing alternatives, the one that came closest is reported.
    matches: usize,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.matches += other.matches;
    }

    /// The complaints, each once: alternatives repeat each other.
    fn into_errors(self) -> Vec<FieldError> {
        let mut unique: Vec<FieldError> = Vec::with_capacity(self.errors.len());
        for error in self.errors {
            if !unique.contains(&error) {
                unique.push(error);
            }
        }
        unique
    }

    /// Something that only names its place in its text.
    fn complain(&mut self, detail: String) {
        self.errors.push(FieldError::invalid(NOWHERE, "", detail));
    }

    fn push(&mut self, problem: Problem, path: &Path<'_>, value: Value, detail: impl FnOnce(&str) -> String) {
        let name = path.dotted();
        let detail = detail(&name);
        let path = if name.is_empty() { NOWHERE.to_owned() } else { name };
        self.errors.push(FieldError::new(problem, path, value, detail));
    }

    /// A value whose errors are forgiven if it is what it was before.
    fn ratcheted(&mut self, value: &Value, old: Option<&Value>, schema: &Schema, path: &Path<'_>) {
        let before = self.errors.len();
        self.node(value, old, schema, path);
        if self.errors.len() > before && old == Some(value) {
            self.errors.truncate(before);
        }
    }

    fn node(&mut self, value: &Value, old: Option<&Value>, schema: &Schema, path: &Path<'_>) {
        // Metadata without rules of its own has been decoded already.
        if schema.definition.is_some() {
            return;
        }
        let rules = schema.rules.as_deref();
        if value.is_null() {
            self.null(schema, path);
            if let Some(rules) = rules {
                self.allowed(value, rules, path);
            }
            return;
        }
        self.matches += 4;
        self.declared_type(value, schema, path);
        if let Some(rules) = rules {
            self.junctors(value, old, rules, path);
            self.own_rules(value, &schema.shape, rules, path);
        } else if let Value::Number(number) = value {
            self.in_range(number, &schema.shape, None, "Checked", path);
        }
        if let (Value::Array(elements), Shape::Array(shape)) = (value, &schema.shape) {
            self.array(elements, old, shape, path);
        }
        if let Some(rules) = rules {
            self.sizes_of_list(value, rules, path);
            self.allowed(value, rules, path);
            self.sizes_of_object(value, rules, path);
        }
        if let (Value::Object(fields), Shape::Object(shape)) = (value, &schema.shape) {
            self.object(fields, old, shape, path);
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, old: Option<&Value>, shape: &ObjectShape, path: &Path<'_>) {
        let old = old.and_then(Value::as_object);
        if let Some(additional) = &shape.additional {
            for (name, value) in fields {
                if !shape.properties.contains_key(name) {
                    self.ratcheted(value, old.and_then(|old| old.get(name)), additional, &path.key(name));
                }
            }
        }
        if !shape.properties.is_empty() {
            for (name, value) in fields {
                if let Some(known) = shape.properties.get(name) {
                    self.ratcheted(value, old.and_then(|old| old.get(name)), known, &path.field(name));
                }
            }
        }
        for name in &shape.required {
            if !fields.contains_key(name) {
                self.errors.push(FieldError::required(path.field(name).dotted(), ""));
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
            self.ratcheted(element, before, &shape.items, &path.index(index));
        }
    }

    fn junctors(&mut self, value: &Value, old: Option<&Value>, rules: &Rules, path: &Path<'_>) {
        let branch = |schema: &Schema| {
            let mut outcome = Outcome::default();
            outcome.node(value, old, schema, path);
            outcome
        };
        if !rules.any_of.is_empty() {
            self.any_of(rules.any_of.iter().map(branch), path);
        }
        if !rules.one_of.is_empty() {
            self.one_of(rules.one_of.iter().map(branch), path);
        }
        if !rules.all_of.is_empty() {
            let mut passed = 0;
            for outcome in rules.all_of.iter().map(branch) {
                passed += usize::from(outcome.is_valid());
                self.merge(outcome);
            }
            if passed != rules.all_of.len() {
                let none = if passed == 0 { ". None validated" } else { "" };
                self.complain(format!("{:?} must validate all the schemas (allOf){none}", path.dotted()));
            }
        }
        if let Some(not) = &rules.not
            && branch(not).is_valid()
        {
            self.complain(format!("{:?} must not validate the schema (not)", path.dotted()));
        }
    }

    fn any_of(&mut self, branches: impl Iterator<Item = Outcome>, path: &Path<'_>) {
        let mut closest: Option<Outcome> = None;
        for outcome in branches {
            if outcome.is_valid() {
                return self.merge(outcome);
            }
            if closest.as_ref().is_none_or(|closest| outcome.matches > closest.matches) {
                closest = Some(outcome);
            }
        }
        self.complain(format!("{:?} must validate at least one schema (anyOf)", path.dotted()));
        if let Some(closest) = closest {
            self.merge(closest);
        }
    }

    fn one_of(&mut self, branches: impl Iterator<Item = Outcome>, path: &Path<'_>) {
        let mut closest: Option<Outcome> = None;
        let mut success: Option<Outcome> = None;
        let mut passed = 0;
        for outcome in branches {
            if outcome.is_valid() {
                passed += 1;
                closest = None;
                success.get_or_insert(outcome);
            } else if passed == 0 && closest.as_ref().is_none_or(|closest| outcome.matches > closest.matches) {
                closest = Some(outcome);
            }
        }
        if passed == 1 {
            if let Some(success) = success {
                self.merge(success);
            }
            return;
        }
        let found = if passed == 0 { "none valid".to_owned() } else { format!("{passed} valid alternatives") };
        let name = path.dotted();
        self.complain(format!("{name:?} must validate one and only one schema (oneOf). Found {found}"));
        if let Some(closest) = closest {
            self.merge(closest);
        }
    }
}

#[cfg(test)]
mod tests;
