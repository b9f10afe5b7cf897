//! The etcd of a simulated cluster, as whoever is on a real one finds it: behind a port that the API server forwards to its pod, by a
//! WebSocket, TLS and gRPC. What is answered is what the World knows.

mod message;

use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::WithTrailers;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message};
use windlass_apiserver::Body;
use windlass_apiserver::auth::{GROUP_MASTERS, User};
use windlass_sim::workload::{EtcdError, Member, Workload};

/// Where its members listen.
const PORT: u16 = 2379;
/// The kinds of frames on a forwarded port, for data and for errors; each begins with the port.
const CHANNELS: [u8; 2] = [0, 1];
/// What is on its way between a WebSocket and a member.
const PIPE_BYTES: usize = 16 * 1024;
/// No question has more than a number.
const QUESTION_BYTES_MAX: usize = 64;

/// gRPC's words for what could not be done.
const UNKNOWN: u16 = 2;
const UNIMPLEMENTED: u16 = 12;
const UNAVAILABLE: u16 = 14;

/// The node of the member that a port is to be forwarded to; nothing where something else is asked, or by somebody who may not.
pub fn member<B>(request: &Request<B>) -> Option<String> {
    let pod = request.uri().path().strip_prefix("/api/v1/namespaces/kube-system/pods/etcd-")?;
    let node = pod.strip_suffix("/portforward").filter(|node| !node.contains('/'))?;
    let is_administrator = |user: &User| user.groups.iter().any(|group| group == GROUP_MASTERS);
    let may = request.extensions().get::<User>().is_some_and(is_administrator);
    let asked = format!("ports={PORT}");
    let is_etcd = request.uri().query().unwrap_or_default().split('&').any(|pair| pair == asked);
    (may && is_etcd && request.headers().contains_key("sec-websocket-key")).then(|| node.to_owned())
}

/// Answers that what follows on this connection is for a member.
pub fn forward<B>(mut request: Request<B>, node: String, workload: Workload, tls: TlsAcceptor) -> Response<Body> {
    let key = request.headers().get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let stream = match upgraded.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return tracing::debug!(%error, "a port was not forwarded"),
        };
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let (carried, ()) = tokio::join!(carry(socket, near), serve(far, tls, node, workload));
        if let Err(error) = carried {
            tracing::debug!(%error, "a forwarded port ended");
        }
    });
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accepted = key.and_then(|key| HeaderValue::from_str(&key).ok());
    let headers = response.headers_mut();
    headers.insert("connection", HeaderValue::from_static("Upgrade"));
    headers.insert("upgrade", HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-protocol", HeaderValue::from_static("v4.channel.k8s.io"));
    headers.extend(accepted.map(|accepted| (http::header::SEC_WEBSOCKET_ACCEPT, accepted)));
    response
}

/// Carries bytes between the frames of a forwarded port and a member, until one of them ends.
async fn carry<S>(mut socket: WebSocketStream<S>, mut member: DuplexStream) -> Result<(), tungstenite::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for channel in CHANNELS {
        let [low, high] = PORT.to_le_bytes();
        socket.send(Message::binary(vec![channel, low, high])).await?;
    }
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        tokio::select! {
            read = member.read(&mut buffer) => match read? {
                0 => return Ok(()),
                count => {
                    let data = buffer.get(..count).unwrap_or_default();
                    socket.send(Message::binary([&CHANNELS[..1], data].concat())).await?;
                }
            },
            message = socket.next() => match message.transpose()? {
                Some(Message::Binary(frame)) => member.write_all(frame.get(1..).unwrap_or_default()).await?,
                Some(Message::Close(_)) | None => return Ok(()),
                Some(_) => {}
            },
        }
    }
}

/// Answers as a member, to whomever its authority has signed. Nobody answers for one that is not well.
async fn serve(stream: DuplexStream, tls: TlsAcceptor, node: String, workload: Workload) {
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "somebody was not let in by etcd"),
    };
    let service = service_fn(move |request| {
        let (node, workload) = (node.clone(), workload.clone());
        async move { Ok::<_, Infallible>(answer(request, &node, &workload).await) }
    });
    let ended = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to etcd ended");
    }
}

type Trailers = std::future::Ready<Option<Result<HeaderMap, Infallible>>>;
type Answer = Response<WithTrailers<Full<Bytes>, Trailers>>;

/// A call could not be done: the number of gRPC for that, and why.
struct Refused(u16, String);

impl From<EtcdError> for Refused {
    fn from(EtcdError(why): EtcdError) -> Self {
        Self(UNKNOWN, why)
    }
}

async fn answer(request: Request<Incoming>, node: &str, workload: &Workload) -> Answer {
    let delay = workload.faults().etcd_delay(workload.name());
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let method = request.uri().path().to_owned();
    let question = http_body_util::Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect().await;
    let question = question.map(|body| message::number(&body.to_bytes())).unwrap_or_default();
    let (message, code, why) = match call(&method, question, node, workload) {
        Ok(message) => (message::framed(&message), 0, String::new()),
        Err(Refused(code, why)) => (Bytes::new(), code, why),
    };
    let mut trailers = HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from(code))]);
    trailers.extend(HeaderValue::from_str(&why).ok().map(|why| (http::HeaderName::from_static("grpc-message"), why)));
    let mut response = Response::new(Full::new(message).with_trailers(ready(Some(Ok(trailers)))));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

/// Does what one of etcd's calls is for.
fn call(method: &str, question: u64, node: &str, workload: &Workload) -> Result<Vec<u8>, Refused> {
    let members = workload.members()?;
    let own = members.iter().find(|member| member.name == node && member.healthy);
    let Some(own) = own else { return Err(Refused(UNAVAILABLE, "the member is not well".to_owned())) };
    match method {
        "/etcdserverpb.Maintenance/Status" => Ok(message::status(own, leader(&members))),
        "/etcdserverpb.Cluster/MemberList" => Ok(message::members(own, &members)),
        "/etcdserverpb.Maintenance/Alarm" => Ok(message::alarms(&workload.alarms())),
        "/etcdserverpb.Cluster/MemberRemove" => Ok(workload.remove_member(question).map(|()| Vec::new())?),
        "/etcdserverpb.Maintenance/MoveLeader" => Ok(workload.move_leader(question).map(|()| Vec::new())?),
        _ => Err(Refused(UNIMPLEMENTED, format!("unknown method {method}"))),
    }
}

/// Who leads; 0 where nobody does.
fn leader(members: &[Member]) -> u64 {
    members.iter().find(|member| member.leader).map_or(0, |member| member.id)
}
