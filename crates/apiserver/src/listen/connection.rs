//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt};

use super::Limits;
use super::auth::{Admission, Gatekeeper, user_of_certificate};
use super::body::{Answer, BoxError};
use super::tls::ALPN_HTTP2;
use crate::auth::User;
use crate::status::ApiError;

/// A dead peer is noticed after these two.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// What all connections have in common.
pub(super) struct Entrance {
    pub(super) acceptor: TlsAcceptor,
    pub(super) gatekeeper: Arc<Gatekeeper>,
    pub(super) limits: Arc<Limits>,
    /// Becomes true when the server stops.
    pub(super) stopped: watch::Receiver<bool>,
}

/// What the requests of one connection have in common.
struct Visit {
    gatekeeper: Arc<Gatekeeper>,
    /// The user that the client's certificate names.
    certified: Option<User>,
    stopped: watch::Receiver<bool>,
    /// There was a request.
    asked: Notify,
    /// There was a request without credentials.
    unknown: Notify,
    /// How many requests are in hand, and how many there were.
    requests: watch::Sender<(usize, u64)>,
    request_timeout: Duration,
}

/// A request in hand: from its headers to the end of its answer.
struct InHand(Arc<Visit>);

impl InHand {
    fn new(visit: &Arc<Visit>) -> Self {
        visit.requests.send_modify(|(in_hand, all)| (*in_hand, *all) = (*in_hand + 1, *all + 1));
        Self(Arc::clone(visit))
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.requests.send_modify(|(in_hand, _)| *in_hand = in_hand.saturating_sub(1));
    }
}

/// Serves one connection until the client leaves, loses its welcome, or the server stops. Errors of a connection are the
/// client's affair: it sees them itself, and the server goes on.
pub(super) async fn run<S, B>(stream: TcpStream, entrance: Entrance, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Entrance { acceptor, gatekeeper, limits, mut stopped } = entrance;
    // Watch events are small and are waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's algorithm");
    }
    let handshake = timeout(limits.handshake_timeout, acceptor.accept(stream));
    let tls = tokio::select! {
        biased;
        () = has_stopped(&mut stopped) => return,
        shaken = handshake => match shaken {
            Ok(Ok(tls)) => tls,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        },
    };
    let (_, session) = tls.get_ref();
    let is_http2 = session.alpn_protocol() == Some(ALPN_HTTP2);
    let certified = session.peer_certificates().and_then(|chain| user_of_certificate(chain.first()?));
    let visit = Arc::new(Visit {
        gatekeeper,
        certified,
        stopped,
        asked: Notify::new(),
        unknown: Notify::new(),
        requests: watch::Sender::new((0, 0)),
        request_timeout: limits.request_timeout,
    });
    let io = TokioIo::new(tls);
    let answering = {
        let visit = Arc::clone(&visit);
        service_fn(move |request| answer(request, Arc::clone(&visit), service.clone()))
    };
    let ended = if is_http2 {
        let connection = http2_builder(&limits).serve_connection(io, answering);
        drive(pin!(connection), http2::Connection::graceful_shutdown, &visit, &limits).await
    } else {
        // Whatever is behind may answer that something else is spoken from there on, as for a forwarded port.
        let connection = http1_builder(&limits).serve_connection(io, answering).with_upgrades();
        drive(pin!(connection), http1::UpgradeableConnection::graceful_shutdown, &visit, &limits).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_header_size(limits.header_bytes_max as usize);
    builder
}

fn http2_builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_bytes_max)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// Drives the connection to its end; asks it to wind down when the server stops or the client has lost its welcome.
async fn drive<C>(mut connection: Pin<&mut C>, wind_down: fn(Pin<&mut C>), visit: &Visit, limits: &Limits) -> C::Output
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = visit.is_over(limits) => {}
    }
    wind_down(connection.as_mut());
    timeout(limits.drain_timeout, connection).await.unwrap_or(Ok(()))
}

impl Visit {
    /// Resolves when the server stops, when the client has not asked anything in time or for a long time, and when it has asked
    /// without credentials: somebody unknown gets one answer and no connection to keep.
    async fn is_over(&self, limits: &Limits) {
        let mut stopped = self.stopped.clone();
        let idle = async {
            if timeout(limits.header_timeout, self.asked.notified()).await.is_err() {
                return;
            }
            let mut requests = self.requests.subscribe();
            loop {
                let Ok(seen) = requests.wait_for(|(in_hand, _)| *in_hand == 0).await.map(|seen| seen.1) else { return };
                let next = requests.wait_for(|(_, all)| *all != seen);
                if timeout(limits.idle_timeout, next).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = has_stopped(&mut stopped) => {}
            () = self.unknown.notified() => {}
            () = idle => {}
        }
    }
}

/// Resolves when the server stops.
async fn has_stopped(stopped: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it the server.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

async fn answer<S, B>(
    mut request: Request<Incoming>,
    visit: Arc<Visit>,
    service: S,
) -> Result<Response<Answer>, Infallible>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    visit.asked.notify_one();
    let in_hand = InHand::new(&visit);
    let user = match visit.gatekeeper.admit(&request, visit.certified.as_ref()) {
        Admission::Known(user) => user,
        Admission::Probe => {
            visit.unknown.notify_one();
            User::anonymous()
        }
        Admission::Refused => {
            visit.unknown.notify_one();
            return Ok(refused(&ApiError::unauthorized()));
        }
    };
    // Whoever comes after must not be tempted to look at the secret.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(user);
    let is_endless = is_endless(request.uri().query().unwrap_or_default());
    let answering = service.oneshot(request);
    let response = if is_endless {
        answering.await?
    } else {
        match timeout(visit.request_timeout, answering).await {
            Ok(response) => response?,
            Err(_) => return Ok(refused(&ApiError::timeout())),
        }
    };
    let mut stopped = visit.stopped.clone();
    Ok(response.map(|body| {
        if is_endless {
            Answer::until(body, async move { has_stopped(&mut stopped).await }).holding(in_hand)
        } else {
            Answer::whole(body).holding(in_hand)
        }
    }))
}

/// Whether the answer goes on until somebody ends it: a watch, or a log that is followed. Any other body must not be cut,
/// because the client could not tell that it is not whole. A boolean is true here unless it says `false` or `0`.
fn is_endless(query: &str) -> bool {
    query.split('&').any(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        matches!(key, "watch" | "follow") && value != "0" && !value.eq_ignore_ascii_case("false")
    })
}

fn refused(refusal: &ApiError) -> Response<Answer> {
    let mut response = Response::new(Answer::whole(Full::new(Bytes::from(refusal.to_value().to_string()))));
    *response.status_mut() = refusal.code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    response
}
