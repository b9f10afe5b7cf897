//! JSON merge patch, RFC 7386.

use serde_json::Value;

use super::{decoding, parse, undecodable};
use crate::json_syntax::type_name;
use crate::query::FieldValidation;
use crate::status::ApiError;

/// Applies a patch, as when nothing is said about validation.
pub fn apply(doc: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    merge(doc, read(patch, FieldValidation::default())?);
    Ok(())
}

/// Reads a patch: an object.
pub fn read(patch: &[u8], validation: FieldValidation) -> Result<Value, ApiError> {
    // The lax reader has one sentence for everything.
    let lax = || ApiError::bad_request("Invalid JSON Patch");
    match (parse(patch), validation) {
        (Ok(patch @ Value::Object(_)), _) => Ok(patch),
        // A list replaces the object, which then is none.
        (Ok(patch @ Value::Array(_)), FieldValidation::Ignore) => Err(undecodable(
            &patch,
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct \
             { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        )),
        (Ok(Value::Null), _) | (_, FieldValidation::Ignore) => Err(lax()),
        (Err(why), _) => Err(decoding(validation, &why)),
        (Ok(other), _) => {
            let found = type_name(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(decoding(validation, &why))
        }
    }
}

/// Merges a patch into a value: null removes, objects merge, anything else replaces.
pub fn merge(doc: &mut Value, patch: Value) {
    match (doc, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.remove(&name);
                } else {
                    merge(fields.entry(name).or_insert(Value::Null), change);
                }
            }
        }
        // What replaces an object is taken as it is, what replaces anything else loses its nulls: as the library of a
        // real server has it.
        (doc @ Value::Object(_), patch) => *doc = patch,
        (doc, mut patch) => {
            prune_nulls(&mut patch);
            *doc = patch;
        }
    }
}

/// Drops the null fields of all objects. Nulls in lists stay: they have a place.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, v| !v.is_null());
            fields.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::json::tests::document;
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
    fn check(doc: Value, patch: Value, expected: Value) {
        let mut patched = doc.clone();
        merge(&mut patched, patch.clone());
        assert_eq!(patched, expected, "{patch} on {doc}");
    }

    #[track_caller]
    fn refuses(patch: &str, validation: FieldValidation, code: u16, message: &str) {
        let refusal = read(patch.as_bytes(), validation).unwrap_err();
        assert_eq!((refusal.code.as_u16(), refusal.message.as_str()), (code, message), "{patch}");
    }

    #[test]
    fn objects_merge_nulls_remove_and_the_rest_replaces() {
        check(json!({"a": 1, "b": 2}), json!({"a": null, "c": 3}), json!({"b": 2, "c": 3}));
        check(json!({"a": {"b": 1}}), json!({"a": {"c": 2}}), json!({"a": {"b": 1, "c": 2}}));
        check(json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]}));
        check(json!({}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}}));
        check(json!({"a": 1}), json!({"a": {"b": null}}), json!({"a": {}}));
        check(json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]}));
        check(json!({"a": {"x": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]}));
    }

    #[test]
    fn patches_that_cannot_be_read_are_refused() {
        use FieldValidation::{Ignore, Warn};
        refuses("x", Ignore, 400, "Invalid JSON Patch");
        refuses("x", Warn, 400, "error decoding patch: invalid character 'x' looking for beginning of value");
        refuses("5", Ignore, 400, "Invalid JSON Patch");
        refuses(
            "5",
            Warn,
            400,
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
        );
        refuses("null", Ignore, 400, "Invalid JSON Patch");
        refuses("null", Warn, 400, "Invalid JSON Patch");
        refuses(
            "[]",
            Warn,
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        );
        refuses(
            "[1,2]",
            Ignore,
            422,
            " \"\" is invalid: patch: Invalid value: \"[1,2]\": couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        );
    }

    proptest! {
        #[test]
        fn a_patch_applied_twice_is_a_patch_applied_once(mut doc in document(), patch in document()) {
            merge(&mut doc, patch.clone());
            let mut once = doc.clone();
            merge(&mut doc, patch);
            // Nulls in a list that replaces an object are kept the first time only; no reader of objects sees them.
            prune_nulls(&mut once);
            prune_nulls(&mut doc);
            prop_assert_eq!(doc, once);
        }

        #[test]
        fn null_removes_and_a_value_stands(mut fields in proptest::collection::btree_map("[a-c]", document(), 0..3), value in 0..9) {
            fields.insert("x".into(), json!(1));
            let mut doc = json!(fields);
            merge(&mut doc, json!({"x": null, "y": value}));
            fields.remove("x");
            fields.insert("y".into(), json!(value));
            prop_assert_eq!(doc, json!(fields));
        }
    }
}
