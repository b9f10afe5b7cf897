//! The listener as clients see it: over loopback, with TLS, in both versions of HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

use super::auth::Token;
use super::tls::{Authority, Credential};
use super::{Error, Limits, Listener, serve};
use crate::auth::User;

/// Long enough for every machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The tests' clock: certificates must be valid when they run.
#[allow(clippy::disallowed_methods, reason = "rustls checks certificates against the wall clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// One event, then silence.
struct Watch {
    event: Option<Bytes>,
}

impl Body for Watch {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.event.take() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(event)))),
            None => Poll::Pending,
        }
    }
}

struct Server {
    address: SocketAddr,
    authority: Authority,
    token: Token,
    /// Requests to `/wait` are answered with one of these each.
    gate: Arc<Semaphore>,
    /// Gets a permit for each request that the service has seen.
    seen: Arc<Semaphore>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        let authority = Authority::new(now()).unwrap();
        let token = Token::generate().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(any, &authority, Some(token.clone()), limits).await.unwrap();
        let address = listener.address();
        let (stop, stopped) = oneshot::channel();
        let gate = Arc::new(Semaphore::new(0));
        let seen = Arc::new(Semaphore::new(0));
        let service = {
            let (gate, seen) = (Arc::clone(&gate), Arc::clone(&seen));
            tower::service_fn(move |request| echo(request, Arc::clone(&gate), Arc::clone(&seen)))
        };
        let served = tokio::spawn(serve(service, listener, async move { drop(stopped.await) }));
        Self { address, authority, token, gate, seen, stop: Some(stop), served }
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// The listener must come to its end.
    async fn ended(self) {
        tokio::time::timeout(PATIENCE, self.served).await.unwrap().unwrap();
    }

    async fn connect(
        &self,
        version: Version,
        credential: Option<&Credential>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        connect(self.address, self.authority.certificate_pem(), version, credential).await
    }

    async fn client(&self, version: Version, credential: Option<&Credential>) -> Client {
        Client::over(self.connect(version, credential).await.unwrap(), version).await
    }
}

/// Answers with the user's name and groups.
async fn echo(
    request: Request<Incoming>,
    gate: Arc<Semaphore>,
    seen: Arc<Semaphore>,
) -> Result<Response<Either<Full<Bytes>, Watch>>, Infallible> {
    seen.add_permits(1);
    let endless = || Either::Right(Watch { event: Some(Bytes::from_static(b"{\"type\":\"ADDED\"}\n")) });
    Ok(Response::new(match request.uri().path() {
        "/watch" | "/endless" => endless(),
        path => {
            if path == "/wait" {
                gate.acquire().await.unwrap().forget();
            }
            let secret = if request.headers().contains_key(header::AUTHORIZATION) { " secret" } else { "" };
            let user = request.extensions().get::<User>().unwrap();
            Either::Left(Full::new(Bytes::from(format!("{} {}{secret}", user.name, user.groups.join(",")))))
        }
    }))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Version {
    One,
    Two,
}

const BOTH: [Version; 2] = [Version::One, Version::Two];

async fn connect(
    address: SocketAddr,
    authority_pem: &str,
    version: Version,
    credential: Option<&Credential>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match credential {
        Some(Credential::ClientCertificate { certificate_pem, key_pem }) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate_pem.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap(),
            )
            .unwrap(),
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![if version == Version::Two { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    let tcp = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), tcp).await
}

struct Client {
    sender: Sender,
    /// Ends with the connection.
    connection: JoinHandle<hyper::Result<()>>,
}

enum Sender {
    One(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Two(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    async fn over(tls: TlsStream<TcpStream>, version: Version) -> Self {
        let io = TokioIo::new(tls);
        match version {
            Version::One => {
                let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
                Self { sender: Sender::One(sender), connection: tokio::spawn(connection) }
            }
            Version::Two => {
                let (sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
                Self { sender: Sender::Two(sender), connection: tokio::spawn(connection) }
            }
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        let sent = async {
            match &mut self.sender {
                Sender::One(sender) => sender.send_request(request).await,
                Sender::Two(sender) => sender.send_request(request).await,
            }
        };
        tokio::time::timeout(PATIENCE, sent).await.unwrap()
    }

    /// Status and body.
    async fn get(&mut self, path: &str, authorization: Option<&str>) -> (StatusCode, String) {
        let response = self.send(get(path, authorization)).await.unwrap();
        let status = response.status();
        (status, text(response).await)
    }
}

fn get(path: &str, authorization: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(Method::GET).uri(format!("https://127.0.0.1{path}"));
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    request.body(Full::default()).unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let collected = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.unwrap();
    String::from_utf8(collected.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_token_lets_in_and_goes_no_further() {
    let server = Server::start(Limits::default()).await;
    let right = format!("Bearer {}", server.token.secret());
    for version in BOTH {
        let mut client = server.client(version, None).await;
        for _ in 0..2 {
            let (status, body) = client.get("/api", Some(&right)).await;
            assert_eq!(status, StatusCode::OK, "{version:?}");
            assert_eq!(body, "kubernetes-admin system:masters,system:authenticated", "{version:?}");
        }
    }
}

#[tokio::test]
async fn nobody_unknown_is_let_in() {
    let server = Server::start(Limits::default()).await;
    let wrong = format!("Bearer {}", Token::generate().unwrap().secret());
    for version in BOTH {
        for authorization in [None, Some(wrong.as_str()), Some("Bearer "), Some("Basic YTpi")] {
            let mut client = server.client(version, None).await;
            let response = client.send(get("/api", authorization)).await.unwrap();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{version:?} {authorization:?}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
            let status: Value = serde_json::from_str(&text(response).await).unwrap();
            let expected = serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
            });
            assert_eq!(status, expected, "{version:?} {authorization:?}");
        }
    }
    assert_eq!(server.seen.available_permits(), 0, "the service must not see such requests");
}

#[tokio::test]
async fn a_health_probe_needs_no_credentials_and_keeps_no_connection() {
    let server = Server::start(Limits::default()).await;
    for version in BOTH {
        let mut client = server.client(version, None).await;
        let (status, body) = client.get("/readyz", None).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "system:anonymous system:unauthenticated"));
        // Its sender is still there, so it is the server that ends the connection.
        drop(tokio::time::timeout(PATIENCE, &mut client.connection).await.expect("it ends"));
    }
}

#[tokio::test]
async fn a_client_certificate_names_the_user() {
    let server = Server::start(Limits::default()).await;
    let admin = server.authority.admin().unwrap();
    let jane = server.authority.client("jane", "readers").unwrap();
    for version in BOTH {
        let (status, body) = server.client(version, Some(&admin)).await.get("/api", None).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "kubernetes-admin system:masters,system:authenticated"));
        // What the certificate says counts, and a wrong token beside it does not; it must not reach the service either.
        let (status, body) = server.client(version, Some(&jane)).await.get("/api", Some("Bearer wrong")).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "jane readers,system:authenticated"));
    }
}

#[tokio::test]
async fn certificates_of_another_authority_are_refused() {
    let server = Server::start(Limits::default()).await;
    let other = Authority::new(now()).unwrap();
    let foreign = other.admin().unwrap();
    // In TLS 1.3 the client has done its part before the server refuses: the first read says so.
    let refused = async {
        let mut tls = server.connect(Version::One, Some(&foreign)).await?;
        tls.read_u8().await
    };
    let error = tokio::time::timeout(PATIENCE, refused).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "an alert, not an end of the stream: {error}");

    // The other way round: a client that expects another server.
    let error = connect(server.address, other.certificate_pem(), Version::One, None).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn oversize_headers_are_refused() {
    let server = Server::start(Limits { header_bytes_max: 32 * 1024, ..Limits::default() }).await;
    let right = format!("Bearer {}", server.token.secret());
    for version in BOTH {
        let padded = |length: usize| {
            let mut request = get("/api", Some(&right));
            request.headers_mut().insert("x-padding", "x".repeat(length).parse().unwrap());
            request
        };
        let mut client = server.client(version, None).await;
        assert_eq!(client.send(padded(20 * 1024)).await.unwrap().status(), StatusCode::OK, "{version:?}");
        server.seen.acquire().await.unwrap().forget();
        match client.send(padded(40 * 1024)).await {
            Ok(response) => assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{version:?}"),
            // HTTP/2 clients are told the limit in advance, and may refuse themselves.
            Err(error) => assert!(version == Version::Two, "{error:?}"),
        }
        assert_eq!(server.seen.available_permits(), 0, "{version:?}: the service must not see it");
    }
}

#[tokio::test]
async fn slow_clients_are_shown_out() {
    let short = Duration::from_millis(50);
    let server = Server::start(Limits { handshake_timeout: short, ..Limits::default() }).await;
    let mut mute = TcpStream::connect(server.address).await.unwrap();
    let read = tokio::time::timeout(PATIENCE, mute.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");

    // Shakes hands, and then says nothing. The end may be abrupt, and HTTP/2 servers speak first: that it ends is the point.
    let server = Server::start(Limits { header_timeout: short, drain_timeout: short, ..Limits::default() }).await;
    for version in BOTH {
        let mut tls = server.connect(version, None).await.unwrap();
        drop(tokio::time::timeout(PATIENCE, tls.read_to_end(&mut Vec::new())).await.expect("it ends"));
    }
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_asked_any_more_is_closed() {
    let idle_timeout = Duration::from_millis(50);
    let server = Server::start(Limits { idle_timeout, ..Limits::default() }).await;
    let right = format!("Bearer {}", server.token.secret());
    for version in BOTH {
        let mut client = server.client(version, None).await;
        // A watch counts for as long as it goes on.
        let mut watch = client.send(get("/watch?watch=true", Some(&right))).await.unwrap();
        watch.body_mut().frame().await.unwrap().unwrap();
        let early = tokio::time::timeout(idle_timeout * 4, &mut client.connection).await;
        assert!(early.is_err(), "{version:?}: closed under a watch");
        drop(watch);
        drop(tokio::time::timeout(PATIENCE, &mut client.connection).await.expect("it ends"));
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_told_so() {
    let server = Server::start(Limits { request_timeout: Duration::from_millis(50), ..Limits::default() }).await;
    let right = format!("Bearer {}", server.token.secret());
    for version in BOTH {
        let (status, body) = server.client(version, None).await.get("/wait", Some(&right)).await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT, "{version:?}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["reason"], &body["code"]), (&"Timeout".into(), &504.into()), "{version:?}");
    }
}

#[tokio::test]
async fn clients_beyond_the_cap_wait_for_their_turn() {
    let server = Server::start(Limits { connections_max: 1, ..Limits::default() }).await;
    let first = server.connect(Version::Two, None).await.unwrap();
    let mut second = std::pin::pin!(server.connect(Version::Two, None));
    let early = tokio::time::timeout(Duration::from_millis(50), second.as_mut()).await;
    assert!(early.is_err(), "the second connection was let in beside the first");
    drop(first);
    tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_ends_watches_and_finishes_requests() {
    for version in BOTH {
        let mut server = Server::start(Limits { drain_timeout: PATIENCE, ..Limits::default() }).await;
        let right = format!("Bearer {}", server.token.secret());
        let mut watcher = server.client(version, None).await;
        let mut watch = watcher.send(get("/watch?watch=true", Some(&right))).await.unwrap();
        let frame = watch.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "{\"type\":\"ADDED\"}\n");

        let mut waiter = server.client(version, None).await;
        let waiting = tokio::spawn(async move { waiter.get("/wait", Some(&right)).await });
        server.seen.acquire_many(2).await.unwrap().forget();

        server.stop();
        assert_eq!(text(watch).await, "", "{version:?}: the watch ends without an error");
        assert!(TcpStream::connect(server.address).await.is_err(), "{version:?}: nobody is accepted any more");
        assert!(!server.served.is_finished(), "{version:?}: a request is still running");
        server.gate.add_permits(1);
        assert_eq!(waiting.await.unwrap().0, StatusCode::OK, "{version:?}");
        server.ended().await;
    }
}

#[tokio::test]
async fn shutdown_cuts_what_does_not_end() {
    for version in BOTH {
        let mut server = Server::start(Limits { drain_timeout: Duration::from_millis(50), ..Limits::default() }).await;
        let right = format!("Bearer {}", server.token.secret());
        let mut client = server.client(version, None).await;
        // No watch, so it is not ended as if it were whole.
        let response = client.send(get("/endless?watch=false", Some(&right))).await.unwrap();
        server.stop();
        server.ended().await;
        let cut = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.unwrap();
        assert!(cut.is_err(), "{version:?}: the client must see that the answer is not whole");
    }
}

#[tokio::test]
async fn only_loopback_can_be_listened_on() {
    let authority = Authority::new(now()).unwrap();
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = Listener::bind(everywhere, &authority, None, Limits::default()).await.unwrap_err();
    assert!(matches!(error, Error::NotLoopback { .. }), "{error}");
}

#[tokio::test]
async fn a_taken_port_is_reported() {
    let server = Server::start(Limits::default()).await;
    let error = Listener::bind(server.address, &server.authority, None, Limits::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {}", server.address));
}

#[test]
fn a_clock_that_is_far_off_makes_no_certificates() {
    for now in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        assert!(matches!(Authority::new(now), Err(Error::Clock { .. })), "{now}");
    }
}
