//! The way to an API server over HTTPS, whosever it is.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// An answer whose body is read while it comes: a watch never ends by itself.
pub type Answer = http::Response<UnsyncBoxBody<Bytes, Error>>;

/// A server may close the connection, which others would be using, on a body of this size or on an unknown user.
const LARGE: u64 = 1 << 20;

/// HTTP/2 over TLS: one connection for all requests and watches.
pub struct Https {
    sender: http2::SendRequest<Full<Bytes>>,
    config: Arc<ClientConfig>,
    port: u16,
    /// What every request brings along, unless the connection itself says who is asking.
    bearer: Option<HeaderValue>,
}

impl Https {
    /// Connects to a server on loopback whose certificate was signed by one of `roots`.
    pub async fn connect(port: u16, roots: Vec<CertificateDer<'static>>, token: &str) -> Result<Self, Error> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root)?;
        }
        let config = ClientConfig::builder().with_root_certificates(store).with_no_client_auth();
        Self::with_config(port, config, Some(format!("Bearer {token}").parse()?)).await
    }

    /// Connects to a server on loopback in the way that `config` says.
    pub async fn with_config(port: u16, mut config: ClientConfig, bearer: Option<HeaderValue>) -> Result<Self, Error> {
        config.alpn_protocols = vec![b"h2".to_vec()];
        let config = Arc::new(config);
        let sender = connection(port, Arc::clone(&config)).await?;
        Ok(Self { sender, config, port, bearer })
    }

    /// Another connection to the same server, by the same user.
    pub async fn another(&self) -> Result<Self, Error> {
        let sender = connection(self.port, Arc::clone(&self.config)).await?;
        Ok(Self { sender, config: Arc::clone(&self.config), port: self.port, bearer: self.bearer.clone() })
    }

    /// Sends a request, and waits until its answer begins.
    pub async fn send(&self, mut request: http::Request<Full<Bytes>>) -> Result<Answer, Error> {
        let target = request.uri().to_string();
        *request.uri_mut() = format!("https://127.0.0.1:{}{target}", self.port).parse()?;
        let apart = request.body().size_hint().lower() >= LARGE || request.headers().contains_key(AUTHORIZATION);
        if let Some(bearer) = &self.bearer {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| bearer.clone());
        }
        let mut sender =
            if apart { connection(self.port, Arc::clone(&self.config)).await? } else { self.sender.clone() };
        let answer = sender.send_request(request).await?;
        Ok(answer.map(|body| body.map_err(Error::from).boxed_unsync()))
    }
}

async fn connection(port: u16, config: Arc<ClientConfig>) -> Result<http2::SendRequest<Full<Bytes>>, Error> {
    let tcp = TcpStream::connect(("127.0.0.1", port)).await?;
    tcp.set_nodelay(true)?;
    let tls = TlsConnector::from(config).connect(ServerName::try_from("127.0.0.1")?, tcp).await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(tls)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
