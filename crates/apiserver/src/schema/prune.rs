//! Drops what the schema does not know.

use serde_json::{Map, Value};

use super::path::Path;
use super::{ObjectShape, Schema, Shape};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields that are not specified, except below `x-kubernetes-preserve-unknown-fields`.
///
/// `apiVersion`, `kind` and `metadata` stay at the root and in embedded resources. When `unknown` is given, the path of
/// each dropped field is added to it (`spec.containers[0].foo`): those of the metadata first, then the others, sorted.
pub fn prune(value: &mut Value, schema: &Schema, unknown: Option<&mut Vec<String>>) {
    let mut pruner = Pruner { unknown };
    let Value::Object(fields) = value else {
        pruner.node(value, schema, &Path::Root);
        return;
    };
    let known = match &schema.shape {
        Shape::Object(shape) => shape.properties.get("metadata"),
        _ => None,
    };
    // The metadata is decoded before the rest, so its complaints come first.
    if let (Some(metadata), Some(known)) = (fields.get_mut("metadata"), known) {
        pruner.node(metadata, known, &Path::Root.field("metadata"));
    }
    let sorted_from = pruner.unknown.as_ref().map_or(0, |unknown| unknown.len());
    pruner.object(fields, schema, &Path::Root);
    if let Some(unknown) = pruner.unknown
        && let Some(rest) = unknown.get_mut(sorted_from..)
    {
        rest.sort();
    }
}

/// Whether pruning would leave the value as it is. The value is a part of an object, not an object with metadata.
pub(crate) fn is_pruned(value: &Value, schema: &Schema) -> bool {
    let mut copy = value.clone();
    Pruner { unknown: None }.node(&mut copy, schema, &Path::Root.field(""));
    copy == *value
}

struct Pruner<'u> {
    unknown: Option<&'u mut Vec<String>>,
}

impl Pruner<'_> {
    fn node(&mut self, value: &mut Value, schema: &Schema, path: &Path<'_>) {
        match value {
            Value::Object(fields) => self.object(fields, schema, path),
            Value::Array(elements) => {
                let items = match &schema.shape {
                    Shape::Array(shape) => Some(shape.items.as_ref()),
                    _ => None,
                };
                for (index, element) in elements.iter_mut().enumerate() {
                    let path = path.index(index);
                    match items {
                        // What is preserved stays preserved in the elements, whatever they say about themselves.
                        Some(items) if schema.preserve_unknown_fields => self.preserved(element, items, &path),
                        Some(items) => self.node(element, items, &path),
                        None if schema.preserve_unknown_fields => {}
                        None => self.unspecified(element, &path),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>, schema: &Schema, path: &Path<'_>) {
        let root = matches!(path, Path::Root);
        let empty = ObjectShape::default();
        let shape = match &schema.shape {
            Shape::Object(shape) => shape,
            _ => &empty,
        };
        fields.retain(|name, value| {
            if (root || schema.embedded_resource) && META_FIELDS.contains(&name.as_str()) {
                // The root's metadata has been seen already.
                if !root && let Some(known) = shape.properties.get(name) {
                    self.node(value, known, &path.field(name));
                }
            } else if let Some(known) = shape.properties.get(name) {
                self.node(value, known, &path.field(name));
            } else if let Some(additional) = &shape.additional {
                self.node(value, additional, &path.key(name));
            } else if !schema.preserve_unknown_fields {
                self.record(&path.field(name));
                return false;
            }
            true
        });
    }

    /// Inside of a preserved list: only what is specified is pruned.
    fn preserved(&mut self, value: &mut Value, schema: &Schema, path: &Path<'_>) {
        match (value, &schema.shape) {
            (Value::Object(fields), Shape::Object(shape)) => {
                for (name, value) in fields {
                    if let Some(known) = shape.properties.get(name) {
                        self.node(value, known, &path.field(name));
                    } else if let Some(additional) = &shape.additional {
                        self.node(value, additional, &path.key(name));
                    }
                }
            }
            (Value::Array(elements), Shape::Array(shape)) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    self.preserved(element, &shape.items, &path.index(index));
                }
            }
            _ => {}
        }
    }

    /// Nothing is specified: objects lose all they have.
    fn unspecified(&mut self, value: &mut Value, path: &Path<'_>) {
        match value {
            Value::Object(fields) => {
                if self.unknown.is_some() {
                    for name in fields.keys() {
                        self.record(&path.field(name));
                    }
                }
                fields.clear();
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    self.unspecified(element, &path.index(index));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn record(&mut self, path: &Path<'_>) {
        if let Some(unknown) = &mut self.unknown {
            unknown.push(path.dotted());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::prune;
    use crate::schema::compile::structural;
    use crate::schema::{ObjectShape, Schema, Shape};

    fn object_meta() -> Arc<Schema> {
        let string = Arc::new(Schema { shape: Shape::String, ..Schema::default() });
        let properties = [("name".to_owned(), string)].into();
        let shape = Shape::Object(ObjectShape { properties, ..ObjectShape::default() });
        Arc::new(Schema { shape, definition: Some(Arc::from("ObjectMeta")), ..Schema::default() })
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table reads better without borrows")]
    fn check(spec: Value, mut object: Value, left: &Value, dropped: &[&str]) {
        let schema = structural(&json!({"type": "object", "properties": {"spec": spec}}), Some(&object_meta()));
        let mut silent = object.clone();
        let mut unknown = Vec::new();
        prune(&mut object, &schema, Some(&mut unknown));
        assert_eq!(&object, left);
        assert_eq!(unknown, dropped);
        prune(&mut silent, &schema, None);
        assert_eq!(&silent, left, "the same without recording");
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        check(
            json!({"type": "object", "properties": {
                "a": {"type": "string"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
                "loose": {"type": "object", "additionalProperties": true},
            }}),
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "zzz": 1}, "aaa": 1,
                   "spec": {"a": "1", "b": 2, "list": [{"x": 1, "y": 2}, 3], "map": {"k": {"z": 1}}, "loose": {"k": 1, "o": {"p": 1}}}}),
            &json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"},
                    "spec": {"a": "1", "list": [{"x": 1}, 3], "map": {"k": {}}, "loose": {"k": 1, "o": {}}}}),
            &["metadata.zzz", "aaa", "spec.b", "spec.list[0].y", "spec.loose.o.p", "spec.map.k.z"],
        );
    }

    #[test]
    fn preserving_stops_at_what_is_specified() {
        check(
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "string"}}},
            }}),
            json!({"spec": {"free": {"x": [{"y": 1}]}, "known": {"a": "1", "b": 2}}}),
            &json!({"spec": {"free": {"x": [{"y": 1}]}, "known": {"a": "1"}}}),
            &["spec.known.b"],
        );
    }

    #[test]
    fn embedded_resources_keep_their_identity() {
        check(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"a": {"type": "string"}}}),
            json!({"spec": {"apiVersion": "v1", "kind": "Y", "metadata": {"name": "n", "other": 1}, "a": "1", "b": 2}}),
            &json!({"spec": {"apiVersion": "v1", "kind": "Y", "metadata": {"name": "n"}, "a": "1"}}),
            &["spec.b", "spec.metadata.other"],
        );
    }

    #[test]
    fn a_value_of_another_type_has_nothing_specified_inside() {
        check(json!({"type": "string"}), json!({"spec": {"a": 1}}), &json!({"spec": {}}), &["spec.a"]);
        check(json!({"type": "string"}), json!({"spec": [{"a": 1}]}), &json!({"spec": [{}]}), &["spec[0].a"]);
    }
}
