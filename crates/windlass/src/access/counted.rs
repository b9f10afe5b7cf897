//! How much this program asks, for whoever runs the API servers: every request that is sent is counted.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request};
use tower::{Layer, Service};
use windlass_controller::metrics::{Asked, Metrics};

/// Counts what a client sends.
#[derive(Debug, Clone)]
pub struct CountLayer {
    metrics: Arc<Metrics>,
    api: Asked,
}

impl CountLayer {
    /// As requests to this API.
    pub fn new(metrics: Arc<Metrics>, api: Asked) -> Self {
        Self { metrics, api }
    }
}

impl<S> Layer<S> for CountLayer {
    type Service = Count<S>;

    fn layer(&self, inner: S) -> Count<S> {
        Count { inner, counts: self.clone() }
    }
}

#[derive(Debug, Clone)]
pub struct Count<S> {
    inner: S,
    counts: CountLayer,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Count<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.counts.metrics.asked(self.counts.api, verb(&request));
        self.inner.call(request)
    }
}

/// What a request does, in a word.
fn verb<B>(request: &Request<B>) -> &'static str {
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        Method::GET if query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")) => "watch",
        Method::GET => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_told_from_a_read() {
        let check = |method: Method, uri: &str, expected: &str| {
            assert_eq!(verb(&Request::builder().method(method).uri(uri).body(()).unwrap()), expected);
        };
        check(Method::GET, "/api/v1/nodes?limit=500&watch=true", "watch");
        check(Method::GET, "/api/v1/nodes?limit=500", "get");
        check(Method::GET, "/api/v1/nodes/a", "get");
        check(Method::PATCH, "/api/v1/nodes/a?fieldManager=watch", "patch");
        check(Method::DELETE, "/api/v1/nodes/a", "delete");
    }
}
