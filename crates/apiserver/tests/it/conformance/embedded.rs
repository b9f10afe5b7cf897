//! Our server: in-process, and behind its HTTPS listener.

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Options};

use super::transport::{Answer, Error, Transport};

/// A server of one's own, without a socket.
pub struct InProcess(ApiServer);

impl InProcess {
    /// With the controllers that a cluster has, or a bare server.
    pub fn new(controllers: bool) -> Self {
        Self(ApiServer::new(Options { controllers, ..Options::default() }))
    }
}

impl Transport for InProcess {
    fn send(&self, request: http::Request<Full<Bytes>>) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(async move {
            let answer = self.0.clone().oneshot(request).await.map_err(Error::from)?;
            Ok(answer.map(|body| body.map_err(Error::from).boxed_unsync()))
        })
    }
}
