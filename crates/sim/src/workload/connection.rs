//! A connection to the API of a workload cluster: refused while nobody listens.

use std::io;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::Service;
use windlass_apiserver::Body;

use super::Workload;

/// The API server of a workload cluster, as it is seen through the network.
#[derive(Clone)]
pub(super) struct Connection(pub(super) Workload);

impl Service<Request<kube::client::Body>> for Connection {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        if !self.0.answers() {
            let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
            return Box::pin(std::future::ready(Err(refused)));
        }
        let mut server = self.0.server().clone();
        Box::pin(async move {
            match server.call(request).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        })
    }
}
