//! The digest of a value: what is approved is named by it.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of a value as `sha256:<hex>`. The order of keys does not count.
pub(crate) fn of(value: &Value) -> String {
    let mut text = String::new();
    write_sorted(value, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let hex: String = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
    format!("sha256:{hex}")
}

/// JSON with sorted keys: whether a map keeps the order of insertion depends on how other crates were built.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (key, field) in sorted {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_sorted(field, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write_sorted(element, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
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
