//! What a workload cluster may send: it belongs to others, and may be broken or hostile.
//!
//! An answer may be so large and no larger, and so may each event of a watch, whose answer goes on for as long as somebody reads.
//! That an answer begins in time, and goes on, is seen to by time-outs; redirects are not followed, and nothing is sent again
//! because a server says so.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use kube::client::Body as ClientBody;
use tower::{BoxError, Layer, Service};

/// The list of everything of a kind in a large cluster is some ten megabytes.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// An object has less than two megabytes.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// It sent too much.
#[derive(Debug, thiserror::Error)]
#[error("the server sent more than {bytes} bytes {of}, which is no answer")]
struct TooMuch {
    bytes: usize,
    of: &'static str,
}

/// Caps what a service answers.
#[derive(Debug, Clone, Copy)]
pub struct CapLayer;

impl<S> Layer<S> for CapLayer {
    type Service = Cap<S>;

    fn layer(&self, inner: S) -> Cap<S> {
        Cap { inner }
    }
}

#[derive(Debug, Clone)]
pub struct Cap<S> {
    inner: S,
}

impl<S, B> Service<Request<ClientBody>> for Cap<S>
where
    S: Service<Request<ClientBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Capped<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ClientBody>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let by_event = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "follow=true"));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await.map_err(Into::into)?;
            Ok(response.map(|body| Capped { body, by_event, bytes: 0 }))
        })
    }
}

/// A body that ends with an error when it is too long.
#[derive(Debug)]
pub struct Capped<B> {
    body: B,
    by_event: bool,
    /// Since the beginning, or since the last end of a line.
    bytes: usize,
}

impl<B> Capped<B> {
    fn count(&mut self, data: &[u8]) -> Result<(), TooMuch> {
        if !self.by_event {
            self.bytes += data.len();
            return if self.bytes > BYTES_MAX { Err(TooMuch { bytes: BYTES_MAX, of: "" }) } else { Ok(()) };
        }
        match data.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => self.bytes = data.len() - last - 1,
            None => self.bytes += data.len(),
        }
        if self.bytes > EVENT_BYTES_MAX { Err(TooMuch { bytes: EVENT_BYTES_MAX, of: "as one event" }) } else { Ok(()) }
    }
}

impl<B> Body for Capped<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else { return Poll::Pending };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(Into::into)?;
            if let Some(data) = frame.data_ref() {
                self.count(data)?;
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::Client;
    use kube::client::ClientBuilder;
    use tower::service_fn;

    use super::*;

    /// Sends the same for ever.
    #[derive(Debug)]
    struct Endless(&'static [u8]);

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0)))))
        }
    }

    fn client(sends: &'static [u8]) -> Client {
        let server =
            service_fn(move |_: Request<ClientBody>| async move { Ok::<_, Infallible>(Response::new(Endless(sends))) });
        ClientBuilder::new(server, "default").with_layer(&CapLayer).build()
    }

    const CHUNK: &[u8] = &[b' '; 64 * 1024];

    async fn refusal(uri: &str, sends: &'static [u8]) -> String {
        let request = Request::get(uri).body(Vec::new()).unwrap();
        crate::error::with_causes(&client(sends).request_text(request).await.unwrap_err())
    }

    #[tokio::test]
    async fn an_endless_answer_ends_and_so_does_an_endless_event() {
        let words = refusal("/api/v1/nodes", CHUNK).await;
        assert!(words.contains("more than 67108864 bytes"), "{words}");
        // Lines make no difference where it is no watch.
        let words = refusal("/api/v1/nodes", b"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n").await;
        assert!(words.contains("more than 67108864 bytes"), "{words}");
        let words = refusal("/api/v1/nodes?watch=true", CHUNK).await;
        assert!(words.contains("more than 8388608 bytes as one event"), "{words}");
    }
}
