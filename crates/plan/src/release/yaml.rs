//! YAML that others wrote, within limits.
//!
//! An object has at most 1.5 MiB on an API server, so nothing honest comes near the limits; a text that is small and unfolds to
//! gigabytes through its aliases ends at them.

use serde::de::DeserializeOwned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Options, UserMessageFormatter, alias_limits, budget, options};

use super::error::Cause;

/// What one text may have: as much as the data of a `ConfigMap`, and four times as much as all annotations of an object.
pub(crate) const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// How deep a text may be nested. Manifests are about fifteen deep.
const DEPTH_MAX: usize = 64;

/// How many values a text may have, once its aliases are unfolded: a text of the greatest length has fewer.
const VALUES_MAX: usize = 250_000;

/// How many bytes of values a text may have, once its aliases are unfolded.
const VALUE_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;

/// How many documents a text may have.
const DOCUMENTS_MAX: usize = 1_024;

/// Snippets are left out of errors: what is around an error may be a Secret.
fn limits() -> Options {
    options! {
        budget: budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: VALUES_MAX,
            max_events: 4 * VALUES_MAX,
            max_total_scalar_bytes: VALUE_BYTES_MAX,
            max_recorded_anchor_bytes: VALUE_BYTES_MAX,
            max_documents: DOCUMENTS_MAX,
        },
        alias_limits: alias_limits! { max_total_replayed_events: VALUES_MAX },
        with_snippet: false,
    }
}

/// Reads the documents of a text.
pub(crate) fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Cause> {
    serde_saphyr::from_multiple_with_options(text, limits()).map_err(|error| cause(&error))
}

/// Reads a text that is one document.
pub(crate) fn document<T: DeserializeOwned>(text: &str) -> Result<T, Cause> {
    serde_saphyr::from_str_with_options(text, limits()).map_err(|error| cause(&error))
}

fn cause(error: &Error) -> Cause {
    let place = || error.location().map(|place| format!(" at line {}, column {}", place.line(), place.column()));
    match limit(error) {
        Some(limit) => Cause::of(&format!("{limit}{}", place().unwrap_or_default())),
        None => Cause::of(&error.render_with_formatter(&UserMessageFormatter)),
    }
}

/// What is said of a text that goes past a limit; `None` if that is not what is wrong with it. The library would name its own
/// settings.
fn limit(error: &Error) -> Option<String> {
    match error {
        Error::AliasError { error, .. } => limit(error),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            Some(format!("it is nested more than {DEPTH_MAX} deep"))
        }
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            Some(format!("it has more than {DOCUMENTS_MAX} documents"))
        }
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            Some(format!("it unfolds to more than {VALUES_MAX} values, or {VALUE_BYTES_MAX} bytes of them"))
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => Some("an alias is within what it stands for".to_owned()),
        _ => None,
    }
}
