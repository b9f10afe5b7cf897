//! The digest of a value: what is approved is named by it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A field of an object that is not there as one value.
pub(crate) enum Field<'v> {
    /// Any value.
    Value(&'v Value),
    /// An object with these fields.
    Object(&'v BTreeMap<String, Value>),
}

/// The SHA-256 of a value as `sha256:<hex>`. The order of keys does not count.
pub(crate) fn of(value: &Value) -> String {
    let mut text = Vec::new();
    write_sorted(value, &mut text);
    named(&text)
}

/// The same of an object with these fields: large ones need not be copied into one value.
pub(crate) fn of_fields(fields: &BTreeMap<&str, Field<'_>>) -> String {
    let mut text = Vec::new();
    write_object(fields.iter().map(|(key, field)| (*key, field)), &mut text, |field, text| match field {
        Field::Value(value) => write_sorted(value, text),
        Field::Object(fields) => write_object(sorted(*fields), text, write_sorted),
    });
    named(&text)
}

fn named(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let hex: String = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
    format!("sha256:{hex}")
}

/// JSON with sorted keys: whether a map keeps the order of insertion depends on how other crates were built.
fn write_sorted(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) if fields.keys().is_sorted() => write_object(sorted(fields), text, write_sorted),
        Value::Object(fields) => {
            let fields: BTreeMap<&str, &Value> = sorted(fields).collect();
            write_object(fields.into_iter(), text, write_sorted);
        }
        Value::Array(elements) => {
            text.push(b'[');
            for element in elements {
                write_sorted(element, text);
                text.push(b',');
            }
            text.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write(value, text),
    }
}

/// The fields of a map that has them in their order.
fn sorted<'v>(fields: impl IntoIterator<Item = (&'v String, &'v Value)>) -> impl Iterator<Item = (&'v str, &'v Value)> {
    fields.into_iter().map(|(key, field)| (key.as_str(), field))
}

fn write_object<'v, T>(
    sorted: impl Iterator<Item = (&'v str, T)>,
    text: &mut Vec<u8>,
    write_field: impl Fn(T, &mut Vec<u8>),
) {
    text.push(b'{');
    for (key, field) in sorted {
        write(key, text);
        text.push(b':');
        write_field(field, text);
        text.push(b',');
    }
    text.push(b'}');
}

/// Appends a value as JSON.
fn write(value: &(impl Serialize + ?Sized), text: &mut Vec<u8>) {
    let before = text.len();
    if serde_json::to_writer(&mut *text, value).is_err() {
        // Text and numbers have no way to fail in memory.
        text.truncate(before);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_of_a_value_never_changes() {
        assert_eq!(of(&json!({})), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(of(&value(r#"{"a":1,"b":[2,"x"]}"#)), of(&value(r#"{"b":[2,"x"],"a":1}"#)));
        assert_ne!(of(&json!({"a": ["b", "c"]})), of(&json!({"a": ["b,c"]})));
    }

    #[test]
    fn an_object_has_the_same_digest_as_one_value_and_in_its_fields() {
        let (b, inside) = (json!([1, {"y": 2, "x": "\""}]), json!({"z": {}, "": null}));
        let objects: BTreeMap<String, Value> = serde_json::from_value(inside.clone()).unwrap();
        let fields = [("b", Field::Value(&b)), ("a", Field::Object(&objects))].into();
        assert_eq!(of_fields(&fields), of(&json!({"a": inside, "b": b})));
    }
}
