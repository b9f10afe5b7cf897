//! A client whose watches last a while, however soon the server ends them.
//!
//! kube's `watcher` begins the next watch as soon as one has ended, and only errors make it wait: against a server, or something on the
//! way to it, that accepts watches and ends them at once it asks without a pause. Here the end is heard a second after the beginning, at
//! the earliest. What the watch says until then comes as it is said.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{FutureExt, Map};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

/// As client-go has it: a watch that has not lasted a second was none.
const LEAST: Duration = Duration::from_secs(1);

/// Puts it in front of a service.
#[derive(Debug, Clone, Copy, Default)]
pub struct SteadyLayer;

impl<S> Layer<S> for SteadyLayer {
    type Service = Steady<S>;

    fn layer(&self, inner: S) -> Steady<S> {
        Steady { inner }
    }
}

/// A service whose watches last a while.
#[derive(Debug, Clone)]
pub struct Steady<S> {
    inner: S,
}

type Answered<B, E> = fn(Result<Response<B>, E>) -> Result<Response<Lasting<B>>, E>;

impl<S, B> Service<Request<Body>> for Steady<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    B: http_body::Body,
{
    type Response = Response<Lasting<B>>;
    type Error = S::Error;
    type Future = Map<S::Future, Answered<B, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answered: Answered<B, S::Error> = if is_watch(&request) {
            |answer| answer.map(|response| response.map(|body| Lasting::new(body, Some(Instant::now() + LEAST))))
        } else {
            |answer| answer.map(|response| response.map(|body| Lasting::new(body, None)))
        };
        self.inner.call(request).map(answered)
    }
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| matches!(parameter, "watch=true" | "watch=1"))
}

/// An answer that is not over before a moment.
pub struct Lasting<B> {
    body: Pin<Box<B>>,
    until: Option<Instant>,
    rest: Option<Pin<Box<Sleep>>>,
}

impl<B: http_body::Body> Lasting<B> {
    fn new(body: B, until: Option<Instant>) -> Self {
        Self { body: Box::pin(body), until, rest: None }
    }
}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>>> http_body::Body for Lasting<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_none() {
            let frame = ready!(self.body.as_mut().poll_frame(context)).map(|frame| frame.map_err(Into::into));
            let Some(until) = self.until.filter(|until| frame.is_none() && *until > Instant::now()) else {
                return Poll::Ready(frame);
            };
            self.rest = Some(Box::pin(tokio::time::sleep_until(until)));
        }
        // Its body is over, and is not asked again.
        match &mut self.rest {
            Some(rest) => rest.as_mut().poll(context).map(|()| None),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.until.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
