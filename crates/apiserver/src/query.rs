//! The parameters of a request: read from the query string, or from a body where a real server reads them there, and
//! refused in its words.

use std::borrow::Cow;

use crate::field::{FieldError, Problem};
use crate::status::ApiError;

mod delete;
mod list;
mod write;

pub use delete::{DeleteOptions, Preconditions, Propagation};
pub use list::{GetOptions, IncludeObject, ListOptions, VersionMatch};
pub use write::{FieldValidation, WriteOptions, manager_or_user_agent};

/// A query string, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Decodes a query string. A parameter that cannot be decoded is ignored, as a real server does.
    pub fn parse(text: &'a str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Self(
            pairs
                .filter_map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((unescape(key)?, unescape(value)?))
                })
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_ref())
    }

    /// All values of a parameter.
    pub fn all<'b>(&'b self, key: &'b str) -> impl Iterator<Item = &'b str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_ref())
    }

    /// A flag: anything but `0` and `false` sets it, even nothing.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.first(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {}", crate::field::quote(text), fault(text)))
        })
    }

    /// `dryRun`: absent, or `All` as often as one likes.
    fn dry_run(&self, errors: &mut Vec<FieldError>) -> bool {
        let values: Vec<&str> = self.all("dryRun").collect();
        check_dry_run(&values, errors);
        !values.is_empty()
    }
}

fn check_dry_run(values: &[&str], errors: &mut Vec<FieldError>) {
    if values.iter().any(|v| *v != "All") {
        errors.push(FieldError::not_supported("dryRun", values.to_vec(), &["All"]));
    }
}

/// What Go says of a text that is not a number that fits.
fn fault(text: &str) -> &'static str {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    }
}

/// A resource version as clients send it. The error is the part of a message that says what is wrong.
fn resource_version(text: &str) -> Result<u64, String> {
    // A sign is no part of a version, though the parser of this language would take it.
    match text.parse() {
        Ok(version) if !text.starts_with('+') => Ok(version),
        _ => {
            let signed = text.starts_with(['+', '-']);
            let fault = if signed { "invalid syntax" } else { fault(text) };
            let why = format!("strconv.ParseUint: parsing {}: {fault}", crate::field::quote(text));
            Err(FieldError::new(Problem::Invalid, "resourceVersion", text.into(), why).to_string())
        }
    }
}

/// Refuses options: a `Status` about a kind of `meta.k8s.io`.
fn refuse_options(kind: &str, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(kind, "meta.k8s.io", "", errors)) }
}

/// Decodes `%20` and `+`; `None` when an escape is malformed. Bytes that are no text become replacement characters.
fn unescape(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|b| matches!(b, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            other => other,
        });
    }
    Some(Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, key: &str, values: &[&str]) {
        assert_eq!(Query::parse(text).all(key).collect::<Vec<_>>(), values, "{text}");
    }

    #[test]
    fn parameters_are_decoded_and_malformed_ones_ignored() {
        check("a=1&b=2&a=3", "a", &["1", "3"]);
        check("a=x%20y+z%2C", "a", &["x y z,"]);
        check("a", "a", &[""]);
        check("a=%zz&a=%4&a=%", "a", &[]);
        check("a=1;b=2", "a", &[]);
        check("%61=1", "a", &["1"]);
        check("a=%ff", "a", &["\u{fffd}"]);
        check("a=b=c", "a", &["b=c"]);
        check("", "", &[]);
    }

    #[test]
    fn a_resource_version_is_a_number_without_a_sign() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let said = expected.map_err(|why| {
                format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
            });
            assert_eq!(resource_version(text), said);
        };
        check("5", Ok(5));
        check("x", Err("invalid syntax"));
        check("-1", Err("invalid syntax"));
        check("+1", Err("invalid syntax"));
        check("99999999999999999999", Err("value out of range"));
    }
}
