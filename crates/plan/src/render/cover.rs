//! Whether an object is as it should be.

use serde_json::{Map, Value};

/// Whether every field of `desired` is in `live` with the same value. Lists are the same element by element; what others put
/// beside our fields does not count. A field that we want empty may also be absent: API servers leave such fields out.
pub fn covers(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().all(|(key, desired)| covers(desired, live.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len() && desired.iter().zip(live).all(|(desired, live)| covers(desired, live))
        }
        (desired, Value::Null) => is_empty(desired),
        (desired, live) => desired == live,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Where `live` does not cover `desired`, for people: `spec.replicas: 1 -> 2`. As many lines as there are differences.
pub fn differences(desired: &Value, live: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    collect(desired, live, "", &mut lines);
    lines
}

fn collect(desired: &Value, live: &Value, path: &str, lines: &mut Vec<String>) {
    if covers(desired, live) {
        return;
    }
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => collect_fields(desired, live, path, lines),
        (Value::Array(desired), Value::Array(live)) if desired.len() == live.len() => {
            for (index, (desired, live)) in desired.iter().zip(live).enumerate() {
                collect(desired, live, &format!("{path}[{index}]"), lines);
            }
        }
        _ => lines.push(format!("{path}: {} -> {}", shown(live), shown(desired))),
    }
}

fn collect_fields(desired: &Map<String, Value>, live: &Map<String, Value>, path: &str, lines: &mut Vec<String>) {
    for (key, desired) in desired {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect(desired, live.get(key).unwrap_or(&Value::Null), &path, lines);
    }
}

/// A value in few words.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(elements) => format!("{} elements", elements.len()),
        Value::Object(fields) => format!("{} fields", fields.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(desired: &Value, live: &Value, lines: &[&str]) {
        assert_eq!(differences(desired, live), lines);
        assert_eq!(covers(desired, live), lines.is_empty(), "{desired} {live}");
    }

    #[test]
    fn what_others_added_does_not_count() {
        check(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1, "c": 2}, "status": {}}), &[]);
        check(&json!({"a": {"b": 1}}), &json!({"a": {"b": 2, "c": 2}}), &["a.b: 2 -> 1"]);
        check(&json!({"a": {"b": "x"}}), &json!({}), &["a: nothing -> 1 fields"]);
    }

    #[test]
    fn lists_are_the_same_element_by_element() {
        let two = json!({"env": [{"name": "A"}, {"name": "B"}]});
        check(&two, &json!({"env": [{"name": "A", "value": ""}, {"name": "B"}]}), &[]);
        check(&two, &json!({"env": [{"name": "B"}, {"name": "A"}]}), &["env[0].name: B -> A", "env[1].name: A -> B"]);
        check(&two, &json!({"env": [{"name": "A"}]}), &["env: 1 elements -> 2 elements"]);
    }

    #[test]
    fn numbers_are_not_texts() {
        check(&json!({"replicas": 1}), &json!({"replicas": "1"}), &["replicas: 1 -> 1"]);
        check(&json!({"cpu": "1"}), &json!({"cpu": "1000m"}), &["cpu: 1000m -> 1"]);
    }

    #[test]
    fn what_should_be_empty_may_be_absent() {
        check(&json!({"a": {}, "b": [], "c": null}), &json!({}), &[]);
        check(&json!({"a": false}), &json!({}), &["a: nothing -> false"]);
    }
}
