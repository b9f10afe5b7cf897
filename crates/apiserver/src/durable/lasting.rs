//! The door of a server whose store is durable: nothing leaves before it will last.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use tower::Service;

use crate::body::{self, Body};
use crate::status::ApiError;
use crate::store::Store;

/// A service in front of a store. An answer, or a frame of a watch, is let out when all that was committed before it is durable:
/// so neither a write that was acknowledged nor anything that somebody was shown is lost in a crash. Where the disk takes
/// nothing, whoever wrote is told so, and reads are answered from memory.
#[derive(Clone)]
pub struct Lasting<S> {
    inner: S,
    store: Store,
}

impl<S> Lasting<S> {
    /// The service, and the store that its answers are made of.
    pub fn new(inner: S, store: Store) -> Self {
        Self { inner, store }
    }
}

impl<S, B> Service<Request<B>> for Lasting<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.store.is_kept() {
            return self.inner.call(request).boxed();
        }
        let store = self.store.clone();
        let writes = !request.method().is_safe();
        let answer = self.inner.call(request);
        async move {
            let response = answer.await?;
            let durable = store.durable(store.revision()).await;
            Ok(match durable {
                Err(error) if writes && response.status().is_success() => body::refusal(&ApiError::not_durable(&error)),
                Err(_) | Ok(()) => response.map(|body| body.held(move |frame| hold(store.clone(), frame))),
            })
        }
        .boxed()
    }
}

/// A frame, once it will last.
fn hold(store: Store, frame: bytes::Bytes) -> BoxFuture<'static, bytes::Bytes> {
    async move {
        // Where the disk takes nothing there is nothing to wait for.
        drop(store.durable(store.revision()).await);
        frame
    }
    .boxed()
}

impl Body {
    /// The same body, each of whose frames is let through by `gate`. One that is whole already is not held.
    fn held(self, gate: impl FnMut(bytes::Bytes) -> BoxFuture<'static, bytes::Bytes> + Send + 'static) -> Self {
        self.with_frames(|frames| frames.then(gate))
    }
}
