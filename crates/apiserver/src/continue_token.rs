//! Continue tokens: where a list that is read in pages goes on.
//!
//! A token has the form of a real server's: base64 of a small JSON object with the resource version that every page is
//! read at, and the key that the next page starts behind. It comes back from clients, so nothing in it is trusted.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine, alphabet};
use serde_json::Value;

use crate::json_syntax;
use crate::status::ApiError;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

const VERSION: &str = "meta.k8s.io/v1";

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The version of the store that all pages show; 0 for "the newest", when a client accepted that the pages do not
    /// fit together (written as -1).
    pub resource_version: u64,
    /// The last object of the page before: its namespace, empty when the list is of one namespace or of none, and its name.
    pub start: (String, String),
}

impl ContinueToken {
    /// The token as clients get it.
    pub fn encode(&self) -> String {
        let (namespace, name) = &self.start;
        let separator = if namespace.is_empty() { "" } else { "/" };
        // The NUL makes the key the smallest one behind the object.
        let start = Value::from(format!("{namespace}{separator}{name}\0"));
        let version = match self.resource_version {
            0 => Value::from(-1),
            version => Value::from(version),
        };
        BASE64.encode(format!(r#"{{"v":"{VERSION}","rv":{version},"start":{start}}}"#))
    }

    /// Reads a token that a client sent.
    pub fn decode(token: &str) -> Result<Self, ApiError> {
        let why = |e: String| ApiError::bad_request(format!("invalid continue token: continue key is not valid{e}"));
        let bytes = BASE64.decode(token).map_err(|e| why(format!(": {}", base64_fault(&e, token.len()))))?;
        let fields: Value =
            serde_json::from_slice(&bytes).map_err(|_| why(format!(": {}", json_syntax::explain(&bytes))))?;
        Self::from_fields(&fields).map_err(why)
    }

    fn from_fields(fields: &Value) -> Result<Self, String> {
        if !fields.is_object() && !fields.is_null() {
            let found = json_syntax::type_name(fields);
            return Err(format!(": json: cannot unmarshal {found} into Go value of type storage.continueToken"));
        }
        let version = text(fields, "v")?;
        let resource_version = number(fields, "rv")?;
        let start = text(fields, "start")?;
        if version != VERSION {
            return Err(format!(": server does not recognize this encoded version {version}"));
        }
        if resource_version == 0 {
            return Err(format!(": incorrect encoded start resourceVersion (version {VERSION})"));
        }
        if start.is_empty() {
            return Err(format!(": encoded start key empty (version {VERSION})"));
        }
        if !is_clean(start) {
            return Err(format!(": {start}"));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        let key = key.strip_suffix('\0').unwrap_or(key);
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        Ok(Self {
            // Every negative version means the newest.
            resource_version: u64::try_from(resource_version).unwrap_or_default(),
            start: (namespace.to_owned(), name.to_owned()),
        })
    }
}

fn text<'a>(fields: &'a Value, name: &str) -> Result<&'a str, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(mismatch(json_syntax::type_name(other), name, "string")),
    }
}

fn number(fields: &Value, name: &str) -> Result<i64, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Number(n)) => n.as_i64().ok_or_else(|| mismatch(&format!("number {n}"), name, "int64")),
        Some(other) => Err(mismatch(json_syntax::type_name(other), name, "int64")),
    }
}

fn mismatch(found: &str, name: &str, wanted: &str) -> String {
    format!(": json: cannot unmarshal {found} into Go struct field continueToken.{name} of type {wanted}")
}

/// A key that climbs out of its place, or names it in a roundabout way, was not written by a server.
fn is_clean(key: &str) -> bool {
    let key = key.strip_prefix('/').unwrap_or(key);
    key.is_empty() || key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn base64_fault(fault: &DecodeError, length: usize) -> String {
    let at = match fault {
        DecodeError::InvalidByte(at, _) => *at,
        DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => length.saturating_sub(1),
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refuses(token: &str, why: &str) {
        let refusal = ContinueToken::decode(token).unwrap_err();
        assert_eq!(refusal.message, format!("invalid continue token: continue key is not valid{why}"), "{token}");
        assert_eq!(refusal.code, 400);
    }

    #[track_caller]
    fn refuses_fields(fields: &str, why: &str) {
        refuses(&BASE64.encode(fields), why);
    }

    #[test]
    fn a_token_is_the_one_that_a_real_server_writes() {
        let token = ContinueToken { resource_version: 185, start: ("default".into(), "a".into()) };
        assert_eq!(token.encode(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTg1LCJzdGFydCI6ImRlZmF1bHQvYVx1MDAwMCJ9");
        let token = ContinueToken { resource_version: 185, start: (String::new(), "a".into()) };
        assert_eq!(token.encode(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTg1LCJzdGFydCI6ImFcdTAwMDAifQ");
    }

    #[test]
    fn what_no_server_wrote_is_refused() {
        refuses("abc", ": invalid character 'i' looking for beginning of value");
        refuses("!!", ": illegal base64 data at input byte 0");
        refuses("e30", ": server does not recognize this encoded version ");
        refuses("YWJjZ", ": illegal base64 data at input byte 4");
        refuses_fields(
            r#"{"v":"meta.k8s.io/v1"}"#,
            ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        );
        refuses_fields(r#"{"v":"meta.k8s.io/v1","rv":5}"#, ": encoded start key empty (version meta.k8s.io/v1)");
        refuses_fields(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}"#, ": ../a");
        refuses_fields(r#"{"v":"v2","rv":5,"start":"a"}"#, ": server does not recognize this encoded version v2");
        refuses_fields(
            r#"{"v":"meta.k8s.io/v1","rv":"5"}"#,
            ": json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        );
        refuses_fields("[]", ": json: cannot unmarshal array into Go value of type storage.continueToken");
    }

    proptest! {
        #[test]
        fn a_token_reads_back(version in 0..u64::MAX / 2, namespace in "[a-z0-9-]{0,8}", name in "[a-z0-9:-]{1,8}") {
            let token = ContinueToken { resource_version: version, start: (namespace, name) };
            prop_assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        }

        #[test]
        fn any_text_is_read_or_refused(token in "[A-Za-z0-9_-]{0,64}|.{0,32}", fields in r#"\{"v":"meta.k8s.io/v1","rv":-?[0-9]{1,22},"start":"[a./]{0,6}"\}"#) {
            drop(ContinueToken::decode(&token).map(|t| t.encode()));
            drop(ContinueToken::decode(&BASE64.encode(fields)).map(|t| t.encode()));
        }
    }
}
