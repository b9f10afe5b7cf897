//! Where the requests of a process pass on their way to an API server.

mod old;

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tower::Service;

use crate::crash::Process;
use crate::traffic::{Asked, Place, Traffic};

pub use old::Old;
pub(crate) use old::{Aged, Memory};

/// A service that counts requests, and that may be the last thing that its process used.
#[derive(Clone)]
pub struct Seam<S> {
    inner: S,
    place: Place,
    process: Process,
    traffic: Traffic,
}

impl<S> Seam<S> {
    /// A seam in front of an API server.
    pub fn new(inner: S, place: Place, process: Process, traffic: Traffic) -> Self {
        Self { inner, place, process, traffic }
    }
}

impl<S, B> Service<Request<Body>> for Seam<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error: 'static, Future: Send + 'static>,
    S: Clone + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(self.place, &request);
        self.traffic.count(self.process.caller(), &asked);
        if !asked.writes {
            return Box::pin(self.inner.call(request));
        }
        let (process, number, traffic) = (self.process.clone(), self.process.asks(), self.traffic.clone());
        let answer = match process.before(&asked.to_string()) {
            None => self.inner.call(request).left_future(),
            Some(wait) => {
                let mut inner = self.inner.clone();
                let waits = async move {
                    wait.await;
                    inner.call(request).await
                };
                waits.right_future()
            }
        };
        Box::pin(async move {
            let response = answer.await?;
            if response.status() == StatusCode::CREATED {
                traffic.created(process.caller(), &asked);
            }
            if response.status().is_success() {
                process.wrote(asked.to_string(), Some(number)).await;
            }
            Ok(response)
        })
    }
}

/// A client as a service, to put a seam in front of it.
#[derive(Clone)]
pub struct Through(pub Client);

impl Service<Request<Body>> for Through {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}
