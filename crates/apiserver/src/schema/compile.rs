//! From the `openAPIV3Schema` of a `CustomResourceDefinition` to a [`Schema`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use super::definitions::Definitions;
use super::{ArrayShape, ListType, ObjectShape, PatchStrategy, Rules, Schema, Shape, format, regexp};

/// Compiles the schema of a custom resource, which is taken to be structural.
///
/// What is odd in it (a keyword of the wrong type, a broken regular expression) is left out: complaining about it is the
/// business of [`crate::crd::validate`]. `object_meta` is the schema of `metadata`, at the root and in embedded resources.
pub fn structural(openapi: &Value, object_meta: Option<&Arc<Schema>>) -> Schema {
    let compiler = Compiler { object_meta };
    let mut schema = compiler.node(openapi);
    compiler.add_resource_fields(&mut schema);
    // The root is an object, even when its schema says nothing.
    if let Some(rules) = &mut schema.rules {
        rules.untyped = false;
    }
    schema
}

struct Compiler<'m> {
    object_meta: Option<&'m Arc<Schema>>,
}

impl Compiler<'_> {
    /// A place in the structural part of the schema.
    fn node(&self, openapi: &Value) -> Schema {
        let Value::Object(keywords) = openapi else { return Schema::default() };
        let mut schema = self.value_validation(keywords);
        schema.nullable = flag(keywords, "nullable");
        schema.default = keywords.get("default").filter(|default| !default.is_null()).cloned();
        schema.preserve_unknown_fields = flag(keywords, "x-kubernetes-preserve-unknown-fields");
        schema.embedded_resource = flag(keywords, "x-kubernetes-embedded-resource");
        if schema.embedded_resource {
            self.add_resource_fields(&mut schema);
        }
        schema
    }

    /// A place anywhere, also below `allOf` and its kin.
    fn value_validation(&self, keywords: &Map<String, Value>) -> Schema {
        let declared = text(keywords, "type").unwrap_or_default();
        let int_or_string = flag(keywords, "x-kubernetes-int-or-string");
        let shape = match declared {
            _ if int_or_string => Shape::IntOrString,
            "string" => Shape::String,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "object" => Shape::Object(self.object(keywords)),
            "array" => Shape::Array(self.array(keywords)),
            _ if keywords.contains_key("items") => Shape::Array(self.array(keywords)),
            _ if ["properties", "additionalProperties", "required"].iter().any(|k| keywords.contains_key(*k)) => {
                Shape::Object(self.object(keywords))
            }
            _ => Shape::Any,
        };
        let untyped = declared.is_empty() && matches!(shape, Shape::Object(_) | Shape::Array(_));
        let rules = self.rules(keywords, declared, untyped);
        Schema { shape, rules, patch: PatchStrategy::default(), ..Schema::default() }
    }

    fn object(&self, keywords: &Map<String, Value>) -> ObjectShape {
        let properties = match keywords.get("properties") {
            Some(Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), Arc::new(self.node(schema)))).collect()
            }
            _ => BTreeMap::new(),
        };
        let additional = match keywords.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => Some(Arc::new(self.node(schema))),
            Some(Value::Bool(true)) => Some(Arc::new(Schema::default())),
            _ => None,
        };
        let atomic = text(keywords, "x-kubernetes-map-type") == Some("atomic");
        ObjectShape {
            properties,
            additional,
            required: strings(keywords, "required"),
            atomic,
            ..ObjectShape::default()
        }
    }

    fn array(&self, keywords: &Map<String, Value>) -> ArrayShape {
        let items = keywords.get("items").map_or_else(Schema::default, |items| self.node(items));
        ArrayShape { items: Arc::new(items), list: list_type(keywords) }
    }

    fn rules(&self, keywords: &Map<String, Value>, declared: &str, untyped: bool) -> Option<Box<Rules>> {
        let number = |name: &str| keywords.get(name).and_then(Value::as_f64);
        let count = |name: &str| keywords.get(name).and_then(Value::as_u64);
        let junctor = |name: &str| match keywords.get(name) {
            Some(Value::Array(branches)) => branches.iter().map(|branch| self.node(branch)).collect(),
            _ => Vec::new(),
        };
        let pattern = text(keywords, "pattern").filter(|pattern| !pattern.is_empty());
        let expressions = match keywords.get("x-kubernetes-validations") {
            Some(Value::Array(rules)) => rules.as_slice(),
            _ => &[],
        };
        let rules = Rules {
            untyped,
            format: text(keywords, "format").filter(|name| format::supported(declared, name)).map(str::to_owned),
            allowed: match keywords.get("enum") {
                Some(Value::Array(values)) if !values.is_empty() => Some(values.clone()),
                _ => None,
            },
            pattern: pattern.and_then(|p| Some((p.to_owned(), regexp::compile(p).ok()?))),
            minimum: number("minimum").map(|bound| (bound, flag(keywords, "exclusiveMinimum"))),
            maximum: number("maximum").map(|bound| (bound, flag(keywords, "exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag(keywords, "uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: junctor("allOf"),
            any_of: junctor("anyOf"),
            one_of: junctor("oneOf"),
            not: keywords.get("not").filter(|not| not.is_object()).map(|not| Box::new(self.node(not))),
            #[cfg(feature = "cel")]
            compiled: Arc::new(crate::cel::Compiled::new(expressions)),
            expressions: expressions.to_vec(),
        };
        (!is_trivial(&rules)).then(|| Box::new(rules))
    }

    /// `apiVersion`, `kind` and `metadata`, which every resource has whether its schema says so or not.
    fn add_resource_fields(&self, schema: &mut Schema) {
        if !matches!(schema.shape, Shape::Object(_)) {
            schema.shape = Shape::Object(ObjectShape::default());
        }
        let Shape::Object(shape) = &mut schema.shape else { return };
        for name in ["apiVersion", "kind"] {
            let string = || Arc::new(Schema { shape: Shape::String, ..Schema::default() });
            shape.properties.entry(name.to_owned()).or_insert_with(string);
        }
        let written = shape.properties.remove("metadata");
        shape.properties.insert("metadata".to_owned(), self.metadata(written.as_deref()));
    }

    /// The schema of `metadata`, with the constraints that a definition may add: those of `name` and `generateName`.
    fn metadata(&self, written: Option<&Schema>) -> Arc<Schema> {
        let Some(known) = self.object_meta else {
            let shape = Shape::Object(ObjectShape::default());
            return Arc::new(Schema { shape, preserve_unknown_fields: true, ..Schema::default() });
        };
        let constrained = match written.map(|written| (written, &written.shape)) {
            Some((_, Shape::Object(shape))) if !shape.properties.is_empty() || !shape.required.is_empty() => shape,
            Some((written, _)) if written.rules.is_some() => &ObjectShape::default(),
            _ => return Arc::clone(known),
        };
        let mut merged = Schema::clone(known);
        // Without the name of a definition it is validated like everything else that the CustomResourceDefinition says.
        merged.definition = None;
        merged.rules = written.and_then(|written| written.rules.clone());
        if let Shape::Object(shape) = &mut merged.shape {
            for (name, schema) in &constrained.properties {
                shape.properties.insert(name.clone(), Arc::clone(schema));
            }
            shape.required.clone_from(&constrained.required);
        }
        Arc::new(merged)
    }
}

/// `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`.
pub(super) fn list_type(keywords: &Map<String, Value>) -> ListType {
    match text(keywords, "x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(keywords, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

pub(super) fn flag(keywords: &Map<String, Value>, name: &str) -> bool {
    keywords.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn text<'v>(keywords: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    keywords.get(name).and_then(Value::as_str)
}

fn strings(keywords: &Map<String, Value>, name: &str) -> Vec<String> {
    match keywords.get(name) {
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Most places have no rules, and validation is quickest where there are none.
fn is_trivial(rules: &Rules) -> bool {
    let Rules { untyped, format, allowed, pattern, minimum, maximum, multiple_of, min_length, max_length, .. } = rules;
    let Rules { min_items, max_items, unique_items, min_properties, max_properties, .. } = rules;
    let Rules { all_of, any_of, one_of, not, expressions, .. } = rules;
    let bounds = [min_length, max_length, min_items, max_items, min_properties, max_properties];
    !untyped
        && !unique_items
        && format.is_none()
        && allowed.is_none()
        && pattern.is_none()
        && minimum.is_none()
        && maximum.is_none()
        && multiple_of.is_none()
        && bounds.iter().all(|bound| bound.is_none())
        && [all_of, any_of, one_of].iter().all(|branches| branches.is_empty())
        && not.is_none()
        && expressions.is_empty()
}
