//! Refusals: every one is a `Status` with a code, a reason, details and causes, worded as kubectl's users know them.

use std::borrow::Cow;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::field::FieldError;

/// The answer to a request that was not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status code.
    pub code: StatusCode,
    /// The machine-readable reason: `NotFound`, `Conflict`, ….
    pub reason: Cow<'static, str>,
    /// One sentence for people.
    pub message: String,
    /// The object or resource that it is about, and the causes. Boxed: every result carries the size of its error.
    pub details: Box<Details>,
}

/// The `details` of a `Status`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource, or the kind when fields are to blame.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// What exactly is wrong.
    pub causes: Vec<Cause>,
    /// Where a list that lost its version can go on; it stands in the Status' metadata.
    pub continue_token: String,
    /// Answered as text, not as a Status: the path is not even one of an API.
    pub plain: bool,
    /// When to try again.
    pub retry_after_seconds: u32,
    /// What the client is told besides, in headers.
    pub warnings: Vec<String>,
    /// Written even when nothing is known: some answers of a real server have empty details, others have none.
    pub even_if_empty: bool,
}

/// One cause in a `Status`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldManagerConflict`, ….
    pub reason: String,
    /// In words.
    pub message: String,
    /// The field that is to blame.
    pub field: String,
}

/// A resource in messages: `deployments.apps "web"`, or `pods "web"` in the core group.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl ApiError {
    /// An error without details.
    pub fn new(code: StatusCode, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: Box::default() }
    }

    /// The same error, said of an object.
    #[must_use]
    pub fn about(mut self, resource: &str, group: &str, name: &str) -> Self {
        self.details.kind = resource.into();
        self.details.group = group.into();
        self.details.name = name.into();
        self
    }

    /// The same error with causes.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.causes = causes;
        self
    }

    /// The same error, and something else to be told.
    #[must_use]
    pub fn with_warnings(mut self, warnings: &[String]) -> Self {
        self.details.warnings = warnings.to_vec();
        self
    }

    /// The same error with details that are there although nothing is known.
    #[must_use]
    pub fn with_empty_details(mut self) -> Self {
        self.details.even_if_empty = true;
        self
    }

    /// 500, or 507 for a full disk: what was asked for is not kept, or perhaps not.
    pub fn not_durable(why: &std::io::Error) -> Self {
        let full = matches!(
            why.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded | std::io::ErrorKind::FileTooLarge
        );
        if full {
            let message = format!("the write is not kept until there is room on the server's disk: {why}");
            return Self::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message);
        }
        Self::internal(&format!("the write could not be made durable: {why}"))
    }

    /// 404: no such object.
    pub fn not_found(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(resource, group));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, group, name)
    }

    /// 404: no such path.
    pub fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 404: no such API at all, in plain text.
    pub fn no_such_page() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
        error.details.plain = true;
        error
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(resource, group));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, group, name)
    }

    /// 409: the write is based on something that is no longer so.
    pub fn conflict(resource: &str, group: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(resource, group));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, group, name)
    }

    /// 409: the object was changed by somebody else since it was read.
    pub fn stale(resource: &str, group: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, group, name, why)
    }

    /// 422: the object is malformed. `kind` is the kind's name, not the resource's.
    pub fn invalid(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut said: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !said.contains(&text) {
                said.push(text);
            }
        }
        let listed = match said.as_slice() {
            [] => "the object is invalid".to_owned(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors.iter().map(|e| Cause {
            reason: e.problem.reason().into(),
            message: e.body(),
            field: e.path.clone(),
        });
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{} {name:?} is invalid: {listed}", qualified(kind, group)),
        )
        .about(kind, group, name)
        .with_causes(causes.collect())
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401: nobody we know.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403: understood, and refused.
    pub fn forbidden(resource: &str, group: &str, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", qualified(resource, group));
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, group, name)
    }

    /// 405: the resource exists, but not this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with_empty_details()
    }

    /// 405, in the words of custom resources.
    pub fn not_supported(verb: &str, resource: &str, group: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", qualified(resource, group));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(resource, group, "")
    }

    /// 406: no representation that the client would take.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", offered.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 410: the version asked for is no longer known.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 413: more than anybody should send.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 415: a body of a type that is not understood here.
    pub fn unsupported_media_type(offered: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            offered.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 429: not now.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        error.details.retry_after_seconds = retry_after_seconds;
        error
    }

    /// 429: too much is in hand already. A real server says so before it looks at the request, in plain text.
    pub fn too_busy() -> Self {
        let mut error = Self::too_many_requests("Too many requests, please try again later.", 1);
        error.details.plain = true;
        error
    }

    /// 504: it took too long.
    pub fn timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with_empty_details()
    }

    /// 500: our fault.
    pub fn internal(what: &str) -> Self {
        let message = format!("Internal error occurred: {what}");
        let cause = Cause { message: what.to_owned(), ..Cause::default() };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message).with_causes(vec![cause])
    }

    /// 500: an error that a real server does not foresee either, with the bare words and no reason.
    pub fn unforeseen(what: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", what)
    }

    /// 501: a real server would, this one does not.
    pub fn not_implemented(what: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", format!("{what} is not implemented by this server"))
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut details = Map::new();
        let mut put = |key: &str, text: &str| {
            if !text.is_empty() {
                details.insert(key.into(), text.into());
            }
        };
        put("name", &self.details.name);
        put("group", &self.details.group);
        put("kind", &self.details.kind);
        put("uid", &self.details.uid);
        if !self.details.causes.is_empty() {
            details.insert("causes".into(), self.details.causes.iter().map(Cause::to_value).collect());
        }
        if self.details.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), self.details.retry_after_seconds.into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.details.continue_token.is_empty() {
            status["metadata"]["continue"] = self.details.continue_token.as_str().into();
        }
        // An unforeseen error of a real server has no reason.
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_ref().into();
        }
        if !details.is_empty() || self.details.even_if_empty || self.reason == "NotFound" {
            status["details"] = Value::Object(details);
        }
        status
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = Map::new();
        for (key, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                cause.insert(key.into(), text.as_str().into());
            }
        }
        Value::Object(cause)
    }
}
