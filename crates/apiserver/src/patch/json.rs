//! JSON patch, RFC 6902, as a real server applies it.
//!
//! Its library is more forgiving than the RFC: an index may count from the end, `replace` and `copy` do not mind an absent
//! field, and `test` takes an absent field for null. Clients rely on it, so it is the same here.

use http::StatusCode;
use serde_json::Value;

use super::{decoding, parse};
use crate::json_syntax::type_name;
use crate::query::FieldValidation;
use crate::status::ApiError;

/// The most operations that one patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// A patch that was read.
#[derive(Debug, Clone, Default)]
pub struct JsonPatch {
    operations: Vec<Value>,
    /// Fields of operations that do not exist: `json patch unknown field "[0].foo"`. A warning or a refusal, once the
    /// patch is applied.
    pub complaints: Vec<String>,
}

/// Applies a patch, as when nothing is said about validation.
pub fn apply(doc: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    JsonPatch::parse(patch, FieldValidation::default())?.apply(doc)
}

impl JsonPatch {
    /// Reads a patch.
    pub fn parse(patch: &[u8], validation: FieldValidation) -> Result<Self, ApiError> {
        let refuse = |why: &str| decoding(validation, why);
        let operations = match parse(patch).map_err(|why| refuse(&why))? {
            Value::Array(operations) => operations,
            // Go takes null for an empty list.
            Value::Null => Vec::new(),
            other => return Err(refuse(&mismatch(&other, validation, "jsonpatch.Patch", "[]handlers.jsonPatchOp"))),
        };
        for operation in &operations {
            if !operation.is_object() && !operation.is_null() {
                let why = mismatch(operation, validation, "jsonpatch.Operation", "handlers.jsonPatchOp");
                return Err(refuse(&why));
            }
        }
        let mut complaints = Vec::new();
        if validation != FieldValidation::Ignore {
            for (i, operation) in operations.iter().enumerate() {
                strict(i, operation, &mut complaints).map_err(|why| refuse(&why))?;
            }
        }
        if operations.len() > OPERATIONS_MAX {
            return Err(ApiError::too_large(format!(
                "Request entity is too large: The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                operations.len()
            )));
        }
        Ok(Self { operations, complaints })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the patch. Whatever goes wrong, a real server says no more than that.
    pub fn apply(&self, doc: &mut Value) -> Result<(), ApiError> {
        for operation in &self.operations {
            step(doc, operation).ok_or_else(|| {
                let message = "the server rejected our request due to an error in our request";
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_empty_details()
            })?;
        }
        Ok(())
    }
}

/// Checks what a strict reader checks: the types of the fields, and that there are no others.
fn strict(i: usize, operation: &Value, complaints: &mut Vec<String>) -> Result<(), String> {
    for (field, value) in operation.as_object().into_iter().flatten() {
        match field.as_str() {
            "op" | "path" | "from" if !value.is_string() && !value.is_null() => {
                let found = type_name(value);
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{field} of type string"
                ));
            }
            "op" | "path" | "from" | "value" => {}
            other => complaints.push(format!("json patch unknown field \"[{i}].{other}\"")),
        }
    }
    Ok(())
}

fn mismatch(found: &Value, validation: FieldValidation, loose: &str, strict: &str) -> String {
    let wanted = if validation == FieldValidation::Ignore { loose } else { strict };
    format!("json: cannot unmarshal {} into Go value of type {wanted}", type_name(found))
}

/// Applies one operation; `None` when it does not apply.
fn step(doc: &mut Value, operation: &Value) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path");
    match text("op")? {
        "add" => Place::find(doc, path?)?.add(value()),
        "remove" => Place::find(doc, path?)?.remove().map(drop),
        "replace" if path?.is_empty() => {
            let value = value();
            (value.is_object() || value.is_array()).then(|| *doc = value)
        }
        "replace" => Place::find(doc, path?)?.replace(value()),
        "move" => {
            let moved = Place::find(doc, text("from")?)?.remove()?;
            Place::find(doc, path?)?.add(moved)
        }
        "copy" => {
            let copied = Place::find(doc, text("from")?)?.get()?.clone();
            Place::find(doc, path?)?.add(copied)
        }
        "test" if path?.is_empty() => (*doc == value()).then_some(()),
        "test" => (*Place::find(doc, path?)?.get()? == value()).then_some(()),
        _ => None,
    }
}

/// A place in a document: the object or list that has it, and its key there.
struct Place<'a> {
    container: &'a mut Value,
    key: String,
}

impl<'a> Place<'a> {
    /// Finds the container; the place itself need not exist.
    fn find(doc: &'a mut Value, path: &str) -> Option<Self> {
        // What stands before the first slash is ignored, but there must be one.
        let (_, path) = path.split_once('/')?;
        let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
        let mut container = doc;
        for part in parents.into_iter().flat_map(|p| p.split('/')) {
            container = match container {
                Value::Object(fields) => fields.get_mut(&unescape(part))?,
                Value::Array(items) => {
                    let i = index(&unescape(part), items.len())?;
                    items.get_mut(i)?
                }
                _ => return None,
            };
        }
        Some(Self { container, key: unescape(key) })
    }

    /// The value. An absent field of an object is null.
    fn get(&self) -> Option<&Value> {
        match &*self.container {
            Value::Object(fields) => Some(fields.get(&self.key).unwrap_or(&Value::Null)),
            Value::Array(items) => items.get(index(&self.key, items.len())?),
            _ => None,
        }
    }

    fn add(self, value: Value) -> Option<()> {
        match self.container {
            Value::Object(fields) => {
                fields.insert(self.key, value);
            }
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                // One more place than there are items, also when counted from the end.
                let i = index(&self.key, items.len() + 1)?;
                items.insert(i, value);
            }
            _ => return None,
        }
        Some(())
    }

    fn replace(self, value: Value) -> Option<()> {
        match self.container {
            Value::Object(fields) => {
                fields.insert(self.key, value);
            }
            Value::Array(items) => {
                let i = index(&self.key, items.len())?;
                *items.get_mut(i)? = value;
            }
            _ => return None,
        }
        Some(())
    }

    fn remove(self) -> Option<Value> {
        match self.container {
            Value::Object(fields) => fields.remove(&self.key),
            Value::Array(items) => {
                let i = index(&self.key, items.len())?;
                Some(items.remove(i))
            }
            _ => None,
        }
    }
}

/// An index into `length` places. Below zero it counts from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let i: isize = key.parse().ok()?;
    let i = if i < 0 { i.checked_add_unsigned(length)? } else { i };
    usize::try_from(i).ok().filter(|i| *i < length)
}

fn unescape(part: &str) -> String {
    if !part.contains('~') {
        return part.to_owned();
    }
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (decoded, length) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ('/', 2),
            Some(b'0') => ('~', 2),
            _ => ('~', 1),
        };
        out.push(decoded);
        rest = &rest[at + length..];
    }
    out + rest
}

#[cfg(test)]
pub(in crate::patch) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
    fn check(doc: Value, patch: Value, expected: Value) {
        let mut patched = doc.clone();
        apply(&mut patched, patch.to_string().as_bytes()).unwrap();
        assert_eq!(patched, expected, "{patch} on {doc}");
    }

    #[track_caller]
    fn rejects(doc: &Value, patch: &Value) {
        let refusal = apply(&mut doc.clone(), patch.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            refusal.to_value(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid",
                "message": "the server rejected our request due to an error in our request", "details": {}, "code": 422}),
            "{patch} on {doc}"
        );
    }

    #[track_caller]
    fn refuses(patch: &str, validation: FieldValidation, message: &str) {
        let refusal = JsonPatch::parse(patch.as_bytes(), validation).unwrap_err();
        assert_eq!((refusal.message.as_str(), refusal.code.as_u16()), (message, 400), "{patch}");
    }

    #[test]
    fn operations_change_the_document() {
        check(json!({"a": 1}), json!([{"op": "add", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2}));
        check(json!({"a": [1, 3]}), json!([{"op": "add", "path": "/a/1", "value": 2}]), json!({"a": [1, 2, 3]}));
        check(json!({"a": [1]}), json!([{"op": "add", "path": "/a/-", "value": 2}]), json!({"a": [1, 2]}));
        check(json!({"a": [1]}), json!([{"op": "add", "path": "/a/-1", "value": 2}]), json!({"a": [1, 2]}));
        check(json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]}));
        check(json!({"a": 1}), json!([{"op": "remove", "path": "/a"}]), json!({}));
        check(json!({"a": 1}), json!([{"op": "replace", "path": "/b", "value": 2}]), json!({"a": 1, "b": 2}));
        check(json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 2}}]), json!({"b": 2}));
        check(json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1}));
        check(json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"a": 1, "b": 1}));
        check(json!({}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"b": null}));
        check(json!({"a/b": {"c~d": 1}}), json!([{"op": "remove", "path": "/a~1b/c~0d"}]), json!({"a/b": {}}));
        check(json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1}]), json!({"a": 1}));
        check(json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({}));
        check(json!({}), json!([{"op": "test", "path": "/a"}]), json!({}));
        check(json!({}), json!([{"op": "add", "path": "/a"}]), json!({"a": null}));
        check(json!({}), Value::Null, json!({}));
    }

    #[test]
    fn operations_that_do_not_apply_are_rejected_without_an_explanation() {
        let doc = json!({"a": [1, 2], "s": "x"});
        for operation in [
            json!({}),
            json!(null),
            json!({"op": "foo", "path": "/a"}),
            json!({"op": "add"}),
            json!({"op": "add", "path": "/x/y/z", "value": 1}),
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "add", "path": "/a/9", "value": 1}),
            json!({"op": "add", "path": "/a/-4", "value": 1}),
            json!({"op": "add", "path": "/a/x", "value": 1}),
            json!({"op": "add", "path": "/s/x", "value": 1}),
            json!({"op": "remove", "path": "/zz"}),
            json!({"op": "remove", "path": "/a/5"}),
            json!({"op": "remove", "path": "/a/-9223372036854775808"}),
            json!({"op": "replace", "path": "/zz/zz", "value": 1}),
            json!({"op": "replace", "path": "", "value": 5}),
            json!({"op": "test", "path": "/a/5", "value": 1}),
            json!({"op": "test", "path": "/s", "value": "y"}),
            json!({"op": "test", "path": "/q/zz", "value": null}),
            json!({"op": "move", "from": "/zz", "path": "/y"}),
            json!({"op": "move", "path": "/y"}),
            json!({"op": "copy", "from": "/a", "path": "/zz/y"}),
        ] {
            rejects(&doc, &json!([operation]));
        }
    }

    #[test]
    fn patches_that_cannot_be_read_are_bad_requests() {
        use FieldValidation::{Ignore, Strict};
        refuses("x", Ignore, "invalid character 'x' looking for beginning of value");
        refuses("x", Strict, "error decoding patch: invalid character 'x' looking for beginning of value");
        refuses("", Ignore, "unexpected end of JSON input");
        refuses("{}", Ignore, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
        refuses(
            "{}",
            Strict,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        );
        refuses("[1]", Ignore, "json: cannot unmarshal number into Go value of type jsonpatch.Operation");
        refuses(
            "[\"a\"]",
            Strict,
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
        );
        refuses(
            "[{\"op\":1}]",
            Strict,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        );
        let patch = br#"[{"op":"test","path":"/a","foo":1}]"#;
        assert_eq!(JsonPatch::parse(patch, Strict).unwrap().complaints, [r#"json patch unknown field "[0].foo""#]);
        assert!(JsonPatch::parse(patch, Ignore).unwrap().complaints.is_empty());
    }

    #[test]
    fn a_patch_has_an_end() {
        let patch = Value::Array(vec![json!({"op": "test", "path": "/a"}); OPERATIONS_MAX + 1]);
        let refusal = apply(&mut json!({}), patch.to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal.code, 413);
        assert_eq!(
            refusal.message,
            "Request entity is too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    pub(in crate::patch) fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3..3_i64).prop_map(Value::from),
            "[a-c/~]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::btree_map("[a-c/~]{1,2}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn the_difference_of_two_documents_makes_one_from_the_other(from in document(), to in document()) {
            // The root of an object is an object.
            let (mut from, to) = (json!({"root": from}), json!({"root": to}));
            let patch = serde_json::to_vec(&json_patch::diff(&from, &to)).unwrap();
            apply(&mut from, &patch).unwrap();
            prop_assert_eq!(from, to);
        }

        #[test]
        fn any_patch_applies_or_is_refused(
            mut doc in document(),
            op in "add|remove|replace|move|copy|test",
            path in "(/([a-c]|-?[0-3]|-|~[0-2]?)){0,3}",
            from in "(/([a-c]|-?[0-3]|-)){0,3}",
            value in document(),
        ) {
            let patch = json!([{"op": op, "path": path, "from": from, "value": value}]);
            drop(apply(&mut doc, patch.to_string().as_bytes()));
        }
    }
}
