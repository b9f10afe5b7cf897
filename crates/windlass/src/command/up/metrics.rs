//! The metrics of `up`, over plain HTTP: on the loopback interface only, as nobody is asked for credentials.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::net::TcpListener;
use windlass_controller::metrics::Metrics;

/// Where Prometheus looks.
const PATH: &str = "/metrics";
/// The text format and its version.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// After a connection that could not be taken: the next may find room.
const BREATH: Duration = Duration::from_millis(100);

/// The address is not one of this machine's own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Others could read it.
    #[error(
        "{address} can be reached from elsewhere, and metrics are served without credentials; accepted is 127.0.0.1:PORT"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// It cannot be listened on.
    #[error("cannot listen on {address} for metrics")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// Listens, and says where.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, String), Error> {
    if !address.ip().is_loopback() {
        return Err(Error::NotLoopback { address });
    }
    let bind = |source| Error::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    Ok((listener, format!("http://{bound}{PATH}")))
}

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, client: Client, metrics: Arc<Metrics>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let (client, metrics) = (client.clone(), Arc::clone(&metrics));
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, client.clone(), Arc::clone(&metrics)));
            // Whoever hangs up does not want to know.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    client: Client,
    metrics: Arc<Metrics>,
) -> Result<Response<String>, Infallible> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, PATH) => match metrics.scrape(&client).await {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        _ => (StatusCode::NOT_FOUND, format!("there is only GET {PATH}\n")),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(TEXT));
    Ok(response)
}
