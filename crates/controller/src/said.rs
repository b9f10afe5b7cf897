//! What an API said, for people.

use std::error::Error;

/// The words of an error of the client, without the shapes that they were wrapped in.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        // The outer error only says which layer it came through.
        other => other.source().map_or_else(|| other.to_string(), innermost),
    }
}

/// The cause at the end of the chain.
fn innermost(error: &(dyn Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Whether what was asked for is not there.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    // By its code: a path that the server does not know at all, as that of an unknown group, is answered without a reason.
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether whoever asked has no right to.
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Whether an object of that name is there already.
pub(crate) fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_already_exists())
}

/// Whether an expectation did not hold: the object is another one, or in another state.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict())
}

/// Whether the object has another uid than the one that was sent along: the API takes that for an attempt to change it.
pub(crate) fn is_other_object(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    status.is_invalid() && causes.iter().any(|cause| cause.field == "metadata.uid")
}

/// The error and its causes on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_causes(cause)),
        None => error.to_string(),
    }
}
