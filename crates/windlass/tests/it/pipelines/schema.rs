//! The part of JSON Schema that the published schemas use.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Asserts that a document is as the schema of its kind says.
pub fn check(command: &str, document: &Value) {
    let kind = document["kind"].as_str().unwrap_or_else(|| panic!("{command}: {document}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{kind}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{command}: {}: {error}", path.display()));
    let root: Value = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    valid(&root, &root, document, kind, &mut wrong);
    assert!(wrong.is_empty(), "{command}: {wrong:#?}");
}

fn valid(root: &Value, schema: &Value, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let Some(fields) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            wrong.push(format!("{path}: nothing may be here"));
        }
        return;
    };
    for (keyword, says) in fields {
        match keyword.as_str() {
            "$ref" => {
                let pointer = says.as_str().unwrap().strip_prefix('#').unwrap();
                valid(root, root.pointer(pointer).unwrap(), value, path, wrong);
            }
            "type" => {
                let types: Vec<&str> = match says {
                    Value::String(one) => vec![one.as_str()],
                    many => many.as_array().unwrap().iter().filter_map(Value::as_str).collect(),
                };
                if !types.iter().any(|one| is_of(one, value)) {
                    wrong.push(format!("{path}: {value} is no {says}"));
                }
            }
            "const" if says != value => wrong.push(format!("{path}: {value} is not {says}")),
            "enum" if !says.as_array().unwrap().contains(value) => {
                wrong.push(format!("{path}: {value} is none of {says}"));
            }
            "required" => {
                let missing = says.as_array().unwrap().iter().filter_map(Value::as_str);
                let missing: Vec<&str> =
                    missing.filter(|name| value.is_object() && value.get(name).is_none()).collect();
                wrong.extend(missing.iter().map(|name| format!("{path}.{name} is missing")));
            }
            "properties" => {
                for (name, schema) in says.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        valid(root, schema, value, &format!("{path}.{name}"), wrong);
                    }
                }
            }
            "additionalProperties" => {
                let known = fields.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        valid(root, says, value, &format!("{path}.{name}"), wrong);
                    }
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    valid(root, says, item, &format!("{path}[{number}]"), wrong);
                }
            }
            "allOf" => says.as_array().unwrap().iter().for_each(|one| valid(root, one, value, path, wrong)),
            "anyOf" | "oneOf" => {
                let fits = |one: &&Value| {
                    let mut wrong = Vec::new();
                    valid(root, one, value, path, &mut wrong);
                    wrong.is_empty()
                };
                let fitting = says.as_array().unwrap().iter().filter(fits).count();
                if fitting == 0 || keyword == "oneOf" && fitting > 1 {
                    wrong.push(format!("{path}: {value} fits {fitting} of {says}"));
                }
            }
            "minimum" if value.as_f64() < says.as_f64() => wrong.push(format!("{path}: {value} is less than {says}")),
            "maximum" if value.as_f64() > says.as_f64() => wrong.push(format!("{path}: {value} is more than {says}")),
            "$schema" | "$defs" | "uniqueItems" | "title" | "description" | "format" | "default" | "const" | "enum"
            | "minimum" | "maximum" => {}
            other => panic!("{path}: {other} is not known here"),
        }
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

#[test]
fn what_is_not_as_the_schema_says_is_found() {
    let root: Value = serde_json::json!({
        "type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"enum": ["x"]}},
        "$defs": {"a": {"type": "array", "items": {"type": ["integer", "null"]}}},
    });
    let found = |value: Value| {
        let mut wrong = Vec::new();
        valid(&root, &root, &value, "it", &mut wrong);
        wrong
    };
    assert!(found(serde_json::json!({"a": [1, null], "b": "x"})).is_empty());
    assert_eq!(found(serde_json::json!({"b": "x"})), ["it.a is missing"]);
    assert_eq!(found(serde_json::json!({"a": [1, "2"]})).len(), 1);
    assert_eq!(found(serde_json::json!({"a": [], "b": "y"})), ["it.b: \"y\" is none of [\"x\"]"]);
}
