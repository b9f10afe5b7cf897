//! The numbers that a custom resource is scaled by, held against what a scale can show.

use serde_json::Value;

use super::Scale;
use crate::field::FieldError;
use crate::patch::strategic::words::{go_type, go_value};

const REPLICAS_MAX: i64 = 2_147_483_647;

impl Scale {
    /// What is wrong with the wanted number.
    pub(super) fn spec_problems(&self, object: &Value) -> Option<FieldError> {
        replicas(object, &self.spec)
    }

    /// What is wrong with the observed number and the selector.
    pub(super) fn status_problems(&self, object: &Value) -> impl Iterator<Item = FieldError> {
        let selector = self.selector.as_ref().and_then(|path| {
            let why = match find(object, path) {
                Ok(None | Some(Value::String(_))) => return None,
                Ok(Some(other)) => misfit(path, other, "string"),
                Err(why) => why,
            };
            Some(FieldError::invalid(dotted(path), "", why))
        });
        replicas(object, &self.status).into_iter().chain(selector)
    }
}

fn replicas(object: &Value, path: &[String]) -> Option<FieldError> {
    let refused = |number: i64, why: String| Some(FieldError::invalid(dotted(path), number, why));
    let number = match find(object, path) {
        Ok(None) => return None,
        Ok(Some(value)) => match value.as_i64() {
            Some(number) => number,
            None => return refused(0, misfit(path, value, "int64")),
        },
        Err(why) => return refused(0, why),
    };
    if number < 0 {
        refused(number, "should be a non-negative integer".to_owned())
    } else if number > REPLICAS_MAX {
        refused(number, format!("should be less than or equal to {REPLICAS_MAX}"))
    } else {
        None
    }
}

/// The value at a path. Null on the way is nothing, anything else that has no fields is refused.
fn find<'a>(object: &'a Value, path: &[String]) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for (depth, field) in path.iter().enumerate() {
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(field) {
                Some(value) => value,
                None => return Ok(None),
            },
            // The path in the words ends with the field that was looked for.
            other => return Err(misfit(&path[..=depth], other, "map[string]interface{}")),
        };
    }
    Ok(Some(value))
}

fn misfit(path: &[String], value: &Value, wanted: &str) -> String {
    let found = if value.is_null() { "<nil>" } else { go_type(value) };
    format!("{} accessor error: {} is of the type {found}, expected {wanted}", dotted(path), go_value(value))
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(object: &Value, wanted: &[&str]) {
        let path = |text: &str| text.split('.').map(str::to_owned).collect();
        let scale = Scale { spec: path("spec.n"), status: path("status.n"), selector: Some(path("status.s")) };
        let errors: Vec<String> = scale
            .spec_problems(object)
            .into_iter()
            .chain(scale.status_problems(object))
            .map(|e| e.to_string())
            .collect();
        assert_eq!(errors, wanted);
    }

    #[test]
    fn replicas_are_small_natural_numbers_and_selectors_are_strings() {
        check(&json!({}), &[]);
        check(&json!({"spec": null}), &[]);
        check(&json!({"spec": {"n": 2_147_483_647}, "status": {"n": 0, "s": "a=b"}}), &[]);
        check(
            &json!({"spec": {"n": "many"}, "status": {"n": -1, "s": 7}}),
            &[
                ".spec.n: Invalid value: 0: .spec.n accessor error: many is of the type string, expected int64",
                ".status.n: Invalid value: -1: should be a non-negative integer",
                r#".status.s: Invalid value: "": .status.s accessor error: 7 is of the type int64, expected string"#,
            ],
        );
        check(
            &json!({"spec": 1.5, "status": {"n": 2_147_483_648_i64}}),
            &[
                ".spec.n: Invalid value: 0: .spec.n accessor error: 1.5 is of the type float64, expected map[string]interface{}",
                ".status.n: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ],
        );
        check(
            &json!({"spec": {"n": null}}),
            &[".spec.n: Invalid value: 0: .spec.n accessor error: <nil> is of the type <nil>, expected int64"],
        );
    }
}
