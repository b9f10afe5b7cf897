//! One request about objects, as far as all verbs need it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::Value;

use crate::auth::User;
use crate::body::{self, Body};
use crate::kind::Kind;
use crate::negotiate::{self, Accepted, Endpoint, Reading};
use crate::query::manager_or_user_agent;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Key};
use crate::verb::write::Intent;

/// One request about objects.
#[derive(Clone)]
pub(crate) struct Call {
    /// The kind that the path names.
    pub(crate) kind: Arc<Kind>,
    /// The namespace in the path; empty when it has none.
    pub(crate) namespace: String,
    /// The name in the path; empty when it has none.
    pub(crate) name: String,
    /// The subresource in the path; empty when it has none.
    pub(crate) subresource: String,
    /// The query string, as sent.
    pub(crate) query: String,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// Who asks.
    pub(crate) user: User,
    /// The body.
    pub(crate) body: Bytes,
}

/// An object on its way out: stored, or only imagined (a dry run).
pub(crate) enum Shown {
    /// As it is in the store.
    Stored(Arc<Entry>),
    /// As it would be.
    Imagined(Value),
}

impl Call {
    /// The key of the object that the path names.
    pub(crate) fn key(&self) -> Key {
        let namespace = if self.kind.namespaced { self.namespace.as_str() } else { "" };
        Key::new(namespace, &self.name)
    }

    /// 400: the object has another name than the path.
    pub(crate) fn misnamed(&self, name: &str) -> ApiError {
        let own = &self.name;
        ApiError::bad_request(if name.is_empty() {
            format!("the name of the object ({own} based on URL) was undeterminable: name must be provided")
        } else {
            format!("the name of the object ({name}) does not match the name on the URL ({own})")
        })
    }

    /// The value of a header, if it is text.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Who is said to own the fields that this request writes.
    pub(crate) fn manager(&self, given: Option<&str>) -> String {
        manager_or_user_agent(given, self.header(header::USER_AGENT).unwrap_or_default())
    }

    /// The write that this request asks for.
    pub(crate) fn intent<'a>(&'a self, manager: &'a str, dry_run: bool) -> Intent<'a> {
        Intent {
            kind: &self.kind,
            namespace: &self.namespace,
            subresource: &self.subresource,
            manager,
            user: &self.user,
            dry_run,
            query: &self.query,
        }
    }

    /// How negotiation sees the resource, when one object is written.
    pub(crate) fn endpoint(&self) -> Endpoint {
        self.reading(Reading::Object)
    }

    fn reading(&self, reading: Reading) -> Endpoint {
        if self.kind.is_custom() { Endpoint::Custom(reading) } else { Endpoint::Builtin(reading) }
    }

    /// The representation that the client wants.
    pub(crate) fn accepted(&self, reading: Reading) -> Result<Accepted, ApiError> {
        let endpoint = self.reading(reading);
        let header = self.headers.get(header::ACCEPT);
        match header.map(header::HeaderValue::to_str) {
            None => negotiate::accept(None, endpoint),
            Some(Ok(text)) => negotiate::accept(Some(text), endpoint),
            Some(Err(_)) => negotiate::accept(Some("not text"), endpoint),
        }
    }

    /// "No such object", said of the object that the path names.
    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.kind.plural, &self.kind.group, &self.name)
    }

    /// "Somebody else was faster", said of the object that the path names.
    pub(crate) fn stale(&self) -> ApiError {
        ApiError::stale(&self.kind.plural, &self.kind.group, &self.name)
    }
}

impl ApiServer {
    /// Answers with one object in the representation that the client wants.
    pub(crate) fn show(&self, call: &Call, code: StatusCode, shown: &Shown) -> Result<Response<Body>, ApiError> {
        let accepted = call.accepted(Reading::Object)?;
        let document = self.present(&call.kind, accepted.want, shown, &call.query)?;
        Ok(encoded(code, accepted, document))
    }
}

/// A response in the encoding that the client wants.
pub(crate) fn encoded(code: StatusCode, accepted: Accepted, json: Vec<u8>) -> Response<Body> {
    match accepted.encoding {
        negotiate::Encoding::Json => body::json_bytes(code, json),
        negotiate::Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            let yaml = serde_saphyr::to_string(&value).unwrap_or_default();
            body::typed(code, accepted.encoding.media_type(), Body::whole(yaml))
        }
    }
}
