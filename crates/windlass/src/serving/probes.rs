//! Whether this replica lives, whether it is ready, and its numbers: over HTTP, for kubelets and Prometheus inside of the cluster.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use windlass_controller::metrics::Metrics;

/// The text format and its version.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Connections at once.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection may take.
const CONNECTION: Duration = Duration::from_secs(30);
/// After a connection that could not be taken: the next may find room.
const BREATH: Duration = Duration::from_millis(100);

/// There is a certificate to serve with.
pub const CERTIFICATE: &str = "certificate";
/// The replica does not end.
pub const RUNNING: &str = "running";

/// What has to be for this replica to be ready. A handle: clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeMap<&'static str, Result<(), &'static str>>>>);

impl Readiness {
    /// What is so, or why not.
    pub fn set(&self, what: &'static str, is: Result<(), &'static str>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(what, is);
    }

    /// A line for each thing that is not so.
    fn missing(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|(what, is)| is.err().map(|why| format!("{what}: {why}\n"))).collect()
    }
}

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, client: Client, metrics: Arc<Metrics>, readiness: Readiness) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.ok();
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let (client, metrics, readiness) = (client.clone(), Arc::clone(&metrics), readiness.clone());
        tokio::spawn(async move {
            let service =
                service_fn(move |request| answer(request, client.clone(), Arc::clone(&metrics), readiness.clone()));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(CONNECTION).keep_alive(false);
            // Whoever hangs up does not want to know.
            drop(timeout(CONNECTION, builder.serve_connection(TokioIo::new(stream), service)).await);
            drop(slot);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    client: Client,
    metrics: Arc<Metrics>,
    readiness: Readiness,
) -> Result<Response<String>, Infallible> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => (StatusCode::OK, "ok\n".to_owned()),
        (&Method::GET, "/readyz") => match readiness.missing() {
            missing if missing.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
            missing => (StatusCode::SERVICE_UNAVAILABLE, missing),
        },
        (&Method::GET, "/metrics") => match metrics.scrape(&client).await {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        _ => (StatusCode::NOT_FOUND, "there are GET /healthz, /readyz and /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(TEXT));
    Ok(response)
}
