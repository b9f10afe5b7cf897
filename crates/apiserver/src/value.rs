//! Reading an object without caring whether a field is there: absent, `null`, empty and of the wrong type all read as the
//! type's zero value, which is what the checks of built-in kinds are written against.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// Reading fields by name.
pub trait Fields {
    /// The field's value; `null` when it is absent.
    fn at(&self, field: &str) -> &Value;
    /// Whether the field is there and not `null`.
    fn has(&self, field: &str) -> bool;
    /// The field's string; empty when it has none.
    fn text(&self, field: &str) -> &str;
    /// The field's whole number.
    fn int(&self, field: &str) -> Option<i64>;
    /// Whether the field is `true`.
    fn flag(&self, field: &str) -> bool;
    /// The field's list; empty when it has none.
    fn list(&self, field: &str) -> &[Value];
    /// The field's map.
    fn map(&self, field: &str) -> Option<&Map<String, Value>>;
    /// The entries of the field's map, in the order of their keys.
    fn entries(&self, field: &str) -> impl Iterator<Item = (&str, &Value)>;
    /// The strings in the field's list; what is no string is skipped.
    fn texts(&self, field: &str) -> impl Iterator<Item = &str>;
}

impl Fields for Value {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(&NULL)
    }

    fn has(&self, field: &str) -> bool {
        !self.at(field).is_null()
    }

    fn text(&self, field: &str) -> &str {
        self.at(field).as_str().unwrap_or_default()
    }

    fn int(&self, field: &str) -> Option<i64> {
        self.at(field).as_i64()
    }

    fn flag(&self, field: &str) -> bool {
        self.at(field).as_bool().unwrap_or_default()
    }

    fn list(&self, field: &str) -> &[Value] {
        self.at(field).as_array().map_or(&[], Vec::as_slice)
    }

    fn map(&self, field: &str) -> Option<&Map<String, Value>> {
        self.at(field).as_object()
    }

    fn entries(&self, field: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.map(field).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    fn texts(&self, field: &str) -> impl Iterator<Item = &str> {
        self.list(field).iter().filter_map(Value::as_str)
    }
}

/// Whether two values mean the same, where absent, `null` and empty lists and maps are one.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(key, value)| same(value, b.get(key).unwrap_or(&NULL)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_empty(value))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b || (is_empty(a) && is_empty(b)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_null_and_empty_are_the_same() {
        for (a, b, expected) in [
            (json!({"a": null, "b": 1}), json!({"b": 1, "c": []}), true),
            (json!({"a": {"x": null}}), json!({}), true),
            (json!({"a": 1}), json!({}), false),
            (json!([1, 2]), json!([1]), false),
            (json!(null), json!({}), true),
            (json!(""), json!(null), false),
        ] {
            assert_eq!(same(&a, &b), expected, "{a} and {b}");
            assert_eq!(same(&b, &a), expected, "{b} and {a}");
        }
    }

    #[test]
    fn wrong_types_read_as_nothing() {
        let odd = json!({"name": 3, "list": {}, "map": [], "flag": "true", "int": "1"});
        assert_eq!(odd.text("name"), "");
        assert!(odd.list("list").is_empty());
        assert_eq!(odd.entries("map").count(), 0);
        assert!(!odd.flag("flag"));
        assert_eq!(odd.int("int"), None);
        assert!(json!(7).at("x").at("y").is_null());
    }
}
