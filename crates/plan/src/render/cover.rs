//! Whether an object is as it should be.

use serde_json::Value;

use super::elements;
use crate::diff;

/// Whether every field of `desired` is in `live` with the same value. What others put beside our fields does not count, nor
/// do elements that they put into a list whose elements have keys; other lists are the same element by element. A field that
/// we want empty may also be absent: API servers leave such fields out.
pub fn covers(desired: &Value, live: &Value) -> bool {
    diff::agrees(desired, live)
}

/// Where `live` does not cover `desired`, for people: `spec.replicas: 1 -> 2`. As many lines as there are differences; what
/// is secret is not shown.
pub fn differences(desired: &Value, live: &Value) -> Vec<String> {
    let different = diff::differences(desired, live);
    if different.is_empty() {
        return Vec::new();
    }
    let [desired, live] = [desired, live].map(diff::redacted);
    let told = |difference: &diff::Difference| {
        let path = &difference.path;
        match (path.get(&live), path.get(&desired)) {
            (Some(Value::Array(live)), Some(Value::Array(desired))) => {
                format!("{path}: {}", elements::differences(live, desired))
            }
            (live, desired) => format!("{path}: {} -> {}", shown(live), shown(desired)),
        }
    };
    different.iter().map(told).collect()
}

/// A value in few words.
fn shown(value: Option<&Value>) -> String {
    match value.unwrap_or(&Value::Null) {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        Value::Array(elements) => elements::listed(elements),
        Value::Object(fields) => format!("{} {}", fields.len(), if fields.len() == 1 { "field" } else { "fields" }),
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
        check(&json!({"a": {"b": "x"}}), &json!({}), &["a.b: nothing -> x"]);
    }

    #[test]
    fn lists_are_the_same_element_by_element_unless_their_elements_have_keys() {
        let two = json!({"args": [{"a": "A"}, {"a": "B"}]});
        check(&two, &json!({"args": [{"a": "A", "b": ""}, {"a": "B"}]}), &[]);
        check(&two, &json!({"args": [{"a": "B"}, {"a": "A"}]}), &["args: the same 2 elements in another order"]);
        check(&two, &json!({"args": [{"a": "A"}]}), &[r#"args: nothing -> [{"a":"B"}], beside 1 that stays"#]);
        check(&two, &json!({}), &[r#"args: nothing -> [{"a":"A"}, {"a":"B"}]"#]);
        let named = json!({"env": [{"name": "A", "value": "1"}]});
        check(&named, &json!({"env": [{"name": "theirs"}, {"name": "A", "value": "1"}]}), &[]);
        check(&named, &json!({"env": [{"name": "A", "value": "2"}]}), &["env[name=A].value: 2 -> 1"]);
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        let secret = |value: &str| json!({"kind": "Secret", "data": {"key": value}});
        let lines = differences(&secret("bmV3"), &secret("b2xk"));
        assert!(matches!(lines.as_slice(), [line] if line.starts_with("data.key: sha256:")), "{lines:?}");
        assert!(!lines[0].contains("bmV3") && !lines[0].contains("b2xk"));
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
