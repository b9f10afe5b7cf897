//! The ways to a server. A case does not know which one it takes.

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
pub use windlass_reference::Error;
pub use windlass_reference::https::{Answer, Https};

use super::hooks::Hooks;

/// A way to a server.
pub trait Transport {
    fn send(&self, request: http::Request<Full<Bytes>>) -> BoxFuture<'_, Result<Answer, Error>>;

    /// The webhooks that the server can reach.
    fn hooks(&self) -> Option<&Hooks> {
        None
    }
}

impl Transport for Https {
    fn send(&self, request: http::Request<Full<Bytes>>) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(self.send(request))
    }
}

/// The way to a server that can reach webhooks of this process.
pub struct WithHooks {
    https: Https,
    hooks: Hooks,
}

impl WithHooks {
    /// Lets cases put webhooks where the server can reach them.
    pub async fn listen(https: Https) -> Result<Self, Error> {
        Ok(Self { https, hooks: Hooks::listen().await? })
    }
}

impl Transport for WithHooks {
    fn send(&self, request: http::Request<Full<Bytes>>) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(self.https.send(request))
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }
}
