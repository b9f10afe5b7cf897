//! Answers that say what time it is on the server, as every HTTP server's do: by the server's clock, which may be a virtual one.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{DATE, HeaderValue};
use http::{Request, Response};
use jiff::fmt::rfc2822::DateTimePrinter;
use tower::Service;

use crate::{ApiServer, Body};

/// A server whose answers have a `Date` of its own. Without it they have one of the machine's clock.
#[derive(Clone)]
pub struct Dated(pub ApiServer);

impl<B> Service<Request<B>> for Dated
where
    ApiServer: Service<
            Request<B>,
            Response = Response<Body>,
            Error = Infallible,
            Future = BoxFuture<'static, Result<Response<Body>, Infallible>>,
        >,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clock = self.0.clone();
        let answer = self.0.call(request);
        async move {
            let mut response = answer.await?;
            let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&clock.now());
            // A time that cannot be written is one that nobody has to know.
            if let Some(date) = date.ok().and_then(|date| HeaderValue::try_from(date).ok()) {
                response.headers_mut().insert(DATE, date);
            }
            Ok(response)
        }
        .boxed()
    }
}
