//! Patches: [`json`] (RFC 6902), [`merge`] (RFC 7386) and [`strategic`]. Server-side apply is another matter.
//!
//! A patch changes a copy of the object; when it is refused, what became of the copy is of no interest.

pub mod json;
pub mod merge;
pub mod strategic;

use serde_json::Value;

use crate::decode;
use crate::field::FieldError;
use crate::json_syntax;
use crate::query::FieldValidation;
use crate::status::ApiError;

/// 422: the patch was applied, and the result is not an object of its kind any more.
pub fn undecodable(patched: &Value, why: &str) -> ApiError {
    ApiError::invalid("", "", "", &[FieldError::invalid("patch", patched.to_string(), why)])
}

/// Reads the text of a patch; the error is what Go would say.
fn parse(patch: &[u8]) -> Result<Value, String> {
    decode::json(patch).map(|(value, _)| value).map_err(|_| json_syntax::explain(patch))
}

/// A patch that cannot be read is refused by whoever reads it first, which depends on how strict the reading is.
fn decoding(validation: FieldValidation, why: &str) -> ApiError {
    match validation {
        FieldValidation::Ignore => ApiError::bad_request(why),
        FieldValidation::Warn | FieldValidation::Strict => {
            ApiError::bad_request(format!("error decoding patch: {why}"))
        }
    }
}
