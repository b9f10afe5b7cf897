//! Selectors: which objects a list, a watch or a policy speaks about.
//!
//! [`label`] selects by labels, written in a query string or as a `LabelSelector` object; [`field`] by the few fields that
//! a kind offers for it.

pub mod field;
pub mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

use crate::status::ApiError;

/// Why a selector was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl From<SelectorError> for ApiError {
    fn from(error: SelectorError) -> Self {
        Self::bad_request(error.0)
    }
}
