//! Parts of objects, and things that can be done with them: `scale`, `eviction`, and whatever other crates add.

mod eviction;
pub(crate) mod scale;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Response};

use crate::auth::User;
use crate::body::Body;
use crate::kind::Kind;
use crate::server::ApiServer;
use crate::status::ApiError;

/// Something below an object: `/api/v1/namespaces/a/pods/p/log`.
pub trait Subresource: Send + Sync {
    /// What discovery says about it.
    fn describe(&self) -> Described;

    /// Answers a request.
    fn call<'a>(
        &'a self,
        server: &'a ApiServer,
        request: SubresourceRequest,
    ) -> BoxFuture<'a, Result<Response<Body>, ApiError>>;
}

/// What discovery says about a subresource.
#[derive(Debug, Clone)]
pub struct Described {
    /// The group of the objects that go in and out.
    pub group: &'static str,
    /// Their version.
    pub version: &'static str,
    /// Their kind.
    pub kind: &'static str,
    /// `get`, `create`, ….
    pub verbs: &'static [&'static str],
}

/// A request to a subresource.
#[derive(Debug)]
pub struct SubresourceRequest {
    /// The kind of the object.
    pub kind: Arc<Kind>,
    /// The object's namespace, or nothing.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The method.
    pub method: Method,
    /// The query string, as sent.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// Who asks.
    pub user: User,
    /// The body.
    pub body: Bytes,
}

/// Adds the subresources that this crate brings.
pub(crate) fn register(server: &ApiServer) {
    server.add_subresource("pods", "eviction", Arc::new(eviction::Eviction));
}
