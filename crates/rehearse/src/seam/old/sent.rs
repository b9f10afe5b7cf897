//! A request that can be looked at, changed and sent more than once.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Uri};
use kube::client::Body;
use serde_json::Value;

use crate::traffic::{Asked, Place};

/// A request, with all that is in it.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) asked: Asked,
    parts: Parts,
    bytes: Vec<u8>,
}

impl Sent {
    /// Takes a request apart.
    pub(super) async fn of(place: Place, request: Request<Body>) -> Result<Self, kube::Error> {
        let asked = Asked::of(place, &request);
        let (parts, body) = request.into_parts();
        Ok(Self { asked, parts, bytes: body.collect_bytes().await?.to_vec() })
    }

    /// As it is sent.
    pub(super) fn request(self) -> Request<Body> {
        let Self { mut parts, bytes, .. } = self;
        parts.headers.remove(CONTENT_LENGTH);
        Request::from_parts(parts, Body::from(bytes))
    }

    /// Whether it is this.
    pub(super) fn is(&self, verb: &str, resource: &str) -> bool {
        self.asked.verb == verb && self.asked.resource == resource
    }

    /// What it says; nothing where it is no JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The same, saying something else.
    pub(super) fn saying(self, value: &Value) -> Self {
        Self { bytes: value.to_string().into_bytes(), ..self }
    }

    /// Where it goes.
    pub(super) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Where it goes, and what it asks there.
    pub(super) fn place(&self) -> String {
        self.parts.uri.to_string()
    }

    /// The same, to another place. A text that is no place changes nothing.
    pub(super) fn to(mut self, path_and_query: &str) -> Self {
        if let Ok(uri) = path_and_query.parse::<Uri>() {
            self.parts.uri = uri;
        }
        self
    }

    /// The same, only tried.
    pub(super) fn tried(self) -> Self {
        let query = self.parts.uri.query().map_or_else(String::new, |query| format!("{query}&"));
        let uri = format!("{}?{query}dryRun=All", self.path());
        self.to(&uri)
    }

    /// A merge patch by the same sender.
    pub(super) fn patch(&self, object: &str, change: &Value) -> Self {
        let mut other = self.clone().to(object).saying(change);
        other.parts.method = Method::PATCH;
        other.parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
        other
    }
}
