//! The HTTPS listener: the same service, for clients outside of the process.
//!
//! A connection passes, in this order: a slot ([`Limits::connections_max`]), the TLS handshake ([`tls`]), the choice of
//! HTTP/1.1 or HTTP/2 by ALPN (`connection`), and for each request the question who asks ([`auth`]). Only then does the
//! service see the request, with a [`User`](crate::auth::User) in its extensions.
//!
//! There is no anonymous access but to the health probes, and the listener binds to loopback only.

pub mod auth;
mod body;
mod connection;
mod dated;
pub mod kubeconfig;
mod subject;
pub mod tls;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, rustls};
use tower::Service;

use self::auth::{Gatekeeper, Token};
use self::tls::Authority;

pub use self::dated::Dated;

/// What a client may take from the server. The defaults follow kube-apiserver where it has the same limit.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections that are open at once. Further clients wait in the kernel's queue until one ends.
    pub connections_max: usize,
    /// Requests in flight on one HTTP/2 connection. The watches of a whole controller share a connection.
    pub streams_max: u32,
    /// The size of a request's line and headers.
    pub header_bytes_max: u32,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long a connection may take to its first request, and an HTTP/1.1 one to each further request.
    pub header_timeout: Duration,
    /// How long a request may take, from its headers to the beginning of its answer, and so also how long its body may trickle in.
    /// A watch goes on for as long as it wants.
    pub request_timeout: Duration,
    /// How long a connection is kept on which nothing is asked.
    pub idle_timeout: Duration,
    /// How long requests may go on after shutdown has begun, before their connections are cut.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            streams_max: 250,
            // Long label selectors travel in the request's line. hyper refuses URLs of 64 KiB and more anyway.
            header_bytes_max: 128 * 1024,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(32),
            request_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(90),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// The listener could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is taken, or may not be used.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The server's certificate is for this machine only.
    #[error("cannot listen on {address}: it is not a loopback address")]
    NotLoopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// A key or certificate could not be made.
    #[error("cannot make the server's certificates")]
    Certificate(#[from] rcgen::Error),
    /// What should be the certificate of an authority is none.
    #[error("the authority that was kept has no certificate")]
    NoAuthority,
    /// TLS refused its configuration.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// TLS refused the configuration of client certificates.
    #[error("cannot set up the check of client certificates")]
    ClientVerifier(#[from] rustls::server::VerifierBuilderError),
    /// No randomness: without it there are no secrets.
    #[error("the operating system gave no random bytes")]
    Random,
    /// A certificate cannot be valid around this time.
    #[error("the time {now} is too far off to make certificates for")]
    Clock {
        /// The time given.
        now: jiff::Timestamp,
    },
}

/// A bound address with all that it takes to let clients in. Clients may connect from now on; they are answered by [`serve`].
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    gatekeeper: Arc<Gatekeeper>,
    limits: Limits,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds to a loopback address; port 0 means any free one. Client certificates of `authority` are accepted, and
    /// `token` if there is one.
    pub async fn bind(
        address: SocketAddr,
        authority: &Authority,
        token: Option<Token>,
        limits: Limits,
    ) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback { address });
        }
        let bind_error = |source| Error::Bind { address, source };
        let tcp = TcpListener::bind(address).await.map_err(bind_error)?;
        let address = tcp.local_addr().map_err(bind_error)?;
        let acceptor = TlsAcceptor::from(Arc::new(authority.server_config()?));
        Ok(Self { tcp, address, acceptor, gatekeeper: Arc::new(Gatekeeper::new(token)), limits })
    }

    /// The address with the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a kubeconfig names it.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// Serves until `shutdown` resolves: then accepts nobody, ends watches between two events, lets other requests finish, and
/// returns when all connections are closed or [`Limits::drain_timeout`] has cut them.
pub async fn serve<S, B>(service: S, listener: Listener, shutdown: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let Listener { tcp, acceptor, gatekeeper, limits, .. } = listener;
    let slots = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
    let limits = Arc::new(limits);
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => log_panic(ended),
            (stream, slot) = accept(&tcp, &slots) => {
                let entrance = connection::Entrance {
                    acceptor: acceptor.clone(),
                    gatekeeper: Arc::clone(&gatekeeper),
                    limits: Arc::clone(&limits),
                    stopped: stopped.clone(),
                };
                let service = service.clone();
                connections.spawn(async move {
                    connection::run(stream, entrance, service).await;
                    drop(slot);
                });
            }
        }
    }
    drop(tcp);
    stop.send_replace(true);
    let drained = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    if tokio::time::timeout(limits.drain_timeout, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut connections that did not end in time");
        connections.shutdown().await;
    }
}

/// The next connection, once there is a slot for it.
async fn accept(tcp: &TcpListener, slots: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        let Ok(slot) = Arc::clone(slots).acquire_owned().await else {
            // The semaphore is never closed; if it were, waiting for shutdown is all that is left.
            std::future::pending::<()>().await;
            continue;
        };
        match tcp.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) => {
                // Mostly "too many open files": trying again at once would only spin.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended abnormally");
    }
}
