//! The embedded management cluster, put together: today its API server.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use jiff::Timestamp;
use tower::Service;
use windlass_apiserver::status::ApiError;

/// The wall clock, which the embedded cluster runs on in `up`.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The service behind the listener.
// Stands in until the API server's service is there: refuses everything, honestly.
pub fn management<B: Send + 'static>(
    _now: Timestamp,
) -> impl Service<Request<B>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send> + Clone + Send + 'static
{
    tower::service_fn(|_: Request<B>| {
        let refusal = ApiError::not_implemented("this path");
        let mut response = Response::new(Full::new(Bytes::from(refusal.to_value().to_string())));
        *response.status_mut() = refusal.code;
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        std::future::ready(Ok(response))
    })
}
