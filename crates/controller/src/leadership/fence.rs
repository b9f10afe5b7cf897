//! A client that sends no write when its term is over.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

use super::Term;

/// A write that was not sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "not sent, as this replica may lead no more: the lease {lease} was not renewed in time, and another replica does what is \
     left to do"
)]
struct Fenced {
    lease: String,
}

pub(super) fn fence(client: Client, term: Term) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Fence { client, term }, namespace)
}

#[derive(Clone)]
struct Fence {
    client: Client,
    term: Term,
}

impl Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, tower::BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, term } = self.clone();
        Box::pin(async move {
            // As late as can be: from here on it is on its way.
            if !matches!(*request.method(), Method::GET | Method::HEAD) && term.is_over() {
                return Err(Fenced { lease: term.lease.to_string() }.into());
            }
            client.send(request).await.map_err(|error| match error {
                // It is wrapped again by the client around this one.
                kube::Error::Service(source) => source,
                other => other.into(),
            })
        })
    }
}
