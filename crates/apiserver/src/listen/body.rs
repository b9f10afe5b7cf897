//! The body of an answer: sent to its end, or, for a watch, until the server stops.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;
type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Cut between two frames, so the service must put whole watch events into a frame.
pub(super) struct Answer {
    body: UnsyncBoxBody<Bytes, BoxError>,
    until: Option<Signal>,
    /// Let go when the body is done with; nobody asks for it.
    _held: Option<Box<dyn Send>>,
}

impl Answer {
    /// A body that is sent to its end.
    pub(super) fn whole<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { body: body.map_err(Into::into).boxed_unsync(), until: None, _held: None }
    }

    /// The same body, with something that is let go when it is done with.
    pub(super) fn holding(self, held: impl Send + 'static) -> Self {
        Self { _held: Some(Box::new(held)), ..self }
    }

    /// A body that ends properly (not as an error) when `signal` resolves.
    pub(super) fn until<B>(body: B, signal: impl Future<Output = ()> + Send + 'static) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { until: Some(Box::pin(signal)), ..Self::whole(body) }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(signal) = &mut self.until
            && signal.as_mut().poll(cx).is_ready()
        {
            // The signal must not be polled again, and what is left of the body is not wanted.
            self.until = None;
            self.body = UnsyncBoxBody::default();
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
