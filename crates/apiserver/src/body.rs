//! What a response carries: bytes, or the frames of a watch.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::{Response, StatusCode, header};
use http_body::Frame;
use serde_json::Value;

use crate::status::ApiError;

/// The body of a response.
pub struct Body(Inner, Option<Box<dyn Send>>);

/// What a body that goes on is made of.
pub(crate) type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

enum Inner {
    Whole(Option<Bytes>),
    Frames(Frames),
}

impl Body {
    /// A body that ends.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(Some(bytes.into())), None)
    }

    /// A body that goes on for as long as the stream does.
    pub fn frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Frames(Box::pin(frames)), None)
    }

    /// The same body, with something that is let go when it is done.
    #[must_use]
    pub(crate) fn holding(self, held: impl Send + 'static) -> Self {
        Self(self.0, Some(Box::new(held)))
    }

    /// The same body, with what becomes of its stream where it goes on. A body that is whole already stays as it is.
    #[cfg(feature = "durable")]
    pub(crate) fn with_frames<S>(self, change: impl FnOnce(Frames) -> S) -> Self
    where
        S: Stream<Item = Bytes> + Send + 'static,
    {
        let inner = match self.0 {
            Inner::Frames(frames) => Inner::Frames(Box::pin(change(frames))),
            whole @ Inner::Whole(_) => whole,
        };
        Self(inner, self.1)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Frames(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Inner::Whole(Some(bytes)) => http_body::SizeHint::with_exact(bytes.len() as u64),
            Inner::Whole(None) => http_body::SizeHint::with_exact(0),
            Inner::Frames(_) => http_body::SizeHint::default(),
        }
    }
}

const JSON: &str = "application/json";

/// A response of JSON bytes.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    typed(code, JSON, Body::whole(bytes))
}

/// A response of one JSON value.
pub fn json(code: StatusCode, value: &Value) -> Response<Body> {
    // Serialising a tree of JSON values into memory has no way to fail.
    json_bytes(code, serde_json::to_vec(value).unwrap_or_default())
}

/// A response with a content type of its own.
pub fn typed(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// A refusal.
pub fn refusal(error: &ApiError) -> Response<Body> {
    if error.details.plain {
        let mut response = typed(error.code, "text/plain; charset=utf-8", Body::whole(format!("{}\n", error.message)));
        if error.details.retry_after_seconds > 0 {
            response.headers_mut().insert(header::RETRY_AFTER, error.details.retry_after_seconds.into());
        }
        return response;
    }
    let mut response = json(error.code, &error.to_value());
    if error.details.retry_after_seconds > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, error.details.retry_after_seconds.into());
    }
    warn(&mut response, &error.details.warnings);
    response
}

/// Adds warnings that kubectl prints: `299 - "text"`. A warning that cannot stand in a header is left out.
pub fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - {}", crate::field::quote(warning));
        if let Ok(value) = header::HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
