//! Our server: in-process, and behind its HTTPS listener.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use tokio::runtime::Handle;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tower::ServiceExt as _;
use windlass_apiserver::carrier::Carrier;
use windlass_apiserver::listen::auth::Token;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Limits, Listener, serve};
use windlass_apiserver::{ApiServer, Options};

use super::hooks::Hooks;
use super::transport::{Answer, Error, Https, Transport, WithHooks};

/// With the controllers that a cluster has, or a bare server.
fn server(controllers: bool, carrier: Arc<dyn Carrier>) -> ApiServer {
    let server = ApiServer::new(Options { controllers, ..Options::default() });
    server.reach(carrier);
    server
}

/// A server of one's own, without a socket, and webhooks without one.
pub struct InProcess(ApiServer, Hooks);

impl InProcess {
    pub fn new(controllers: bool) -> Self {
        let hooks = Hooks::default();
        Self(server(controllers, Arc::new(hooks.clone())), hooks)
    }
}

impl Transport for InProcess {
    fn send(&self, request: http::Request<Full<Bytes>>) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(async move {
            let answer = self.0.clone().oneshot(request).await.map_err(Error::from)?;
            Ok(answer.map(|body| body.map_err(Error::from).boxed_unsync()))
        })
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.1)
    }
}

/// The way to a new server through its listener. It ends with the runtime.
pub async fn over_https(controllers: bool) -> Result<WithHooks, Error> {
    let server = server(controllers, Arc::new(windlass_apiserver::carrier::https::Https::new(Handle::current())));
    let authority = Authority::new(server.now())?;
    let token = Token::generate()?;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(anywhere, &authority, Some(token.clone()), Limits::default()).await?;
    let port = listener.address().port();
    let root = CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes())?;
    tokio::spawn(serve(server, listener, std::future::pending()));
    WithHooks::listen(Https::connect(port, vec![root], token.secret()).await?).await
}
