//! Fills in what the schema says and the user left out.

use serde_json::{Map, Value};

use super::{ObjectShape, Schema, Shape};

/// Applies the schema's defaults, at every depth, to what is there.
///
/// A null where null is no value counts as absent: it becomes the default, or goes away when there is none. (In a list it
/// stays, as there is nothing to take away without moving the others.)
pub fn fill(value: &mut Value, schema: &Schema) {
    node(value, schema, Nulls::Dropped);
}

/// The same for a configuration that was applied: a null without a default stays, and is refused later.
pub fn fill_applied(value: &mut Value, schema: &Schema) {
    node(value, schema, Nulls::Kept);
}

/// What becomes of a null where there is no default, and null is no value.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Dropped,
    Kept,
}

fn node(value: &mut Value, schema: &Schema, nulls: Nulls) {
    match (value, &schema.shape) {
        (Value::Object(fields), Shape::Object(shape)) => object(fields, shape, nulls),
        (Value::Array(elements), Shape::Array(shape)) => {
            for element in elements {
                if element.is_null()
                    && !shape.items.nullable
                    && let Some(default) = &shape.items.default
                {
                    element.clone_from(default);
                }
                node(element, &shape.items, nulls);
            }
        }
        _ => {}
    }
}

fn object(fields: &mut Map<String, Value>, shape: &ObjectShape, nulls: Nulls) {
    fields.retain(|name, value| {
        let known = shape.properties.get(name).or(shape.additional.as_ref());
        let Some(known) = known else { return true };
        if value.is_null() && !known.nullable {
            let Some(default) = &known.default else { return nulls == Nulls::Kept };
            value.clone_from(default);
        }
        node(value, known, nulls);
        true
    });
    for (name, known) in &shape.properties {
        if let Some(default) = &known.default
            && !fields.contains_key(name)
        {
            let mut value = default.clone();
            node(&mut value, known, nulls);
            fields.insert(name.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::fill;
    use crate::schema::compile::structural;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table reads better without borrows")]
    fn check(spec: Value, given: Value, expected: &Value) {
        let schema = structural(&json!({"type": "object", "properties": {"spec": spec}}), None);
        let mut object = json!({"spec": given});
        fill(&mut object, &schema);
        assert_eq!(&object["spec"], expected);
        fill(&mut object, &schema);
        assert_eq!(&object["spec"], expected, "filling again changes nothing");
    }

    #[test]
    fn defaults_are_filled_in_at_every_depth() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer", "default": 1},
            "b": {"type": "object", "default": {}, "properties": {"c": {"type": "string", "default": "x"}}},
            "d": {"type": "object", "properties": {"e": {"type": "string", "default": "y"}}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"f": {"type": "boolean", "default": true}}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"g": {"type": "integer", "default": 2}}}},
        }});
        check(schema.clone(), json!({}), &json!({"a": 1, "b": {"c": "x"}}));
        check(
            schema.clone(),
            json!({"a": 5, "d": {}, "l": [{}, {"f": false}], "m": {"k": {}}}),
            &json!({"a": 5, "b": {"c": "x"}, "d": {"e": "y"}, "l": [{"f": true}, {"f": false}], "m": {"k": {"g": 2}}}),
        );
        check(schema, json!("text"), &json!("text"));
    }

    #[test]
    fn a_null_counts_as_absent_unless_null_is_a_value() {
        let schema = json!({"type": "object", "properties": {
            "defaulted": {"type": "integer", "default": 1},
            "nullable": {"type": "integer", "default": 1, "nullable": true},
            "plain": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "integer", "default": 7}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        }});
        check(
            schema,
            json!({"defaulted": null, "nullable": null, "plain": null, "unknown": null, "list": [null, 1], "map": {"a": null, "b": 1}}),
            &json!({"defaulted": 1, "nullable": null, "unknown": null, "list": [7, 1], "map": {"b": 1}}),
        );
    }
}
