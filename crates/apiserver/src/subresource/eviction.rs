//! placeholder
use super::{Described, Subresource, SubresourceRequest};
use crate::body::Body;
use crate::server::ApiServer;
use crate::status::ApiError;
use futures::future::BoxFuture;
use http::Response;
pub(super) struct Eviction;
impl Subresource for Eviction {
    fn describe(&self) -> Described {
        Described { group: "policy", version: "v1", kind: "Eviction", verbs: &["create"] }
    }
    fn call<'a>(&'a self, _: &'a ApiServer, _: SubresourceRequest) -> BoxFuture<'a, Result<Response<Body>, ApiError>> {
        Box::pin(async { Err(ApiError::not_implemented("eviction")) })
    }
}
