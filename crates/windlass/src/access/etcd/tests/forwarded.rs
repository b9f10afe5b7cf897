//! The whole way: pods that are listed by an API server, a port that it forwards over a WebSocket, and a real etcd behind it.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};

use futures::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::client::ClientBuilder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tower::service_fn as tower_service;
use windlass_runtime::clock::Clock;

use super::server::{Authority, Servers, program};
use super::{all_well, until};
use crate::access::capped::CapLayer;
use crate::access::etcd::{Forwarded, Identity, OverPods};

/// What an API server was asked.
type Asked = Arc<Mutex<Vec<String>>>;

/// Answers as an API server does that has these pods, each with its etcd on a port of this machine.
fn answer(mut request: Request<Incoming>, ports: &[u16], asked: &Asked) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    asked.lock().unwrap().push(format!("{path}?{}", request.uri().query().unwrap_or_default()));
    let of = path.strip_prefix("/api/v1/namespaces/kube-system/pods/").and_then(|it| it.strip_suffix("/portforward"));
    let Some(number) = of.and_then(|pod| pod.strip_prefix("etcd-")?.parse::<usize>().ok()) else {
        let pod = |number: usize| {
            let phase = if number < ports.len() { "Running" } else { "Pending" };
            json!({"metadata": {"name": format!("etcd-{number}")}, "spec": {"containers": []}, "status": {"phase": phase}})
        };
        // The last one does not run yet, and must not be asked.
        let items: Vec<_> = (0..=ports.len()).map(pod).collect();
        let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items});
        return Response::new(Full::new(list.to_string().into()));
    };
    let key = request.headers()["sec-websocket-key"].as_bytes().to_vec();
    let upgraded = hyper::upgrade::on(&mut request);
    let port = ports[number];
    tokio::spawn(async move {
        let stream = TokioIo::new(upgraded.await.unwrap());
        bridge(WebSocketStream::from_raw_socket(stream, Role::Server, None).await, port).await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", derive_accept_key(&key))
        .header("sec-websocket-protocol", "v4.channel.k8s.io");
    response.body(Full::default()).unwrap()
}

/// What a kubelet does with a forwarded port: two channels, for data and for errors, which each begin with the port.
async fn bridge<S>(mut socket: WebSocketStream<S>, port: u16)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    for channel in [0_u8, 1] {
        let [low, high] = 2379_u16.to_le_bytes();
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    let mut etcd = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut buffer = vec![0; 4096];
    loop {
        tokio::select! {
            read = etcd.read(&mut buffer) => match read {
                Ok(count) if count > 0 => {
                    let data = [&[0], &buffer[..count]].concat();
                    if socket.send(Message::binary(data)).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Binary(data))) if data.len() > 1 => etcd.write_all(&data[1..]).await.unwrap(),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

/// A client of a server as above.
async fn cluster(ports: Vec<u16>) -> (Client, Asked) {
    let asked = Asked::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (ports, seen) = (ports.clone(), Arc::clone(&seen));
            let service = service_fn(move |request| ready(Ok::<_, Infallible>(answer(request, &ports, &seen))));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades());
        }
    });
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let builder = ClientBuilder::try_from(config).unwrap();
    (builder.with_layer(&CapLayer).build(), asked)
}

/// A management cluster that has one Secret.
fn management(authority: &Authority) -> Client {
    let secret = Secret {
        metadata: kube::core::ObjectMeta { name: Some("my-tkc-etcd".into()), ..Default::default() },
        data: Some(authority.data().into_iter().map(|(key, value)| (key, k8s_openapi::ByteString(value))).collect()),
        ..Secret::default()
    };
    let body = serde_json::to_vec(&secret).unwrap();
    Client::new(
        tower_service(move |request: Request<kube::client::Body>| {
            assert_eq!(request.uri().path(), "/api/v1/namespaces/ns/secrets/my-tkc-etcd");
            let body = body.clone();
            async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body)))) }
        }),
        "default",
    )
}

#[tokio::test]
async fn members_are_asked_through_the_api_server_of_their_cluster() {
    let Some(program) = program("a forwarded port") else { return };
    let authority = Authority::new();
    let servers = Servers::start(&program, &authority, 3);
    let (client, asked) = cluster(servers.ports()).await;
    let identity = Identity::new(management(&authority), "ns/my-tkc".parse().unwrap(), Clock::wall());
    let etcd = OverPods::new(Forwarded::new(client, identity));
    until(&etcd, "three members", |members| all_well(members, 3)).await;
    let asked = asked.lock().unwrap().clone();
    assert!(asked[0].contains("labelSelector=component%3Detcd"), "{asked:?}");
    for number in 0..3 {
        let path = format!("/api/v1/namespaces/kube-system/pods/etcd-{number}/portforward");
        assert!(asked.iter().any(|it| it.starts_with(&path) && it.contains("ports=2379")), "{number}: {asked:?}");
    }
    assert!(!asked.iter().any(|it| it.contains("etcd-3")), "{asked:?}");
}
