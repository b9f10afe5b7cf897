//! The digest of a value: what is approved is named by it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of a value as `sha256:<hex>`. The order of keys does not count.
pub(crate) fn of(value: &Value) -> String {
    let mut text = Vec::new();
    write_sorted(value, &mut text);
    let digest = Sha256::digest(&text);
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let hex: String = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
    format!("sha256:{hex}")
}

/// JSON with sorted keys: whether a map keeps the order of insertion depends on how other crates were built.
fn write_sorted(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            text.push(b'{');
            for (key, field) in sorted {
                write(key, text);
                text.push(b':');
                write_sorted(field, text);
                text.push(b',');
            }
            text.push(b'}');
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
}
