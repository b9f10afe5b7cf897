//! A small server over HTTPS: what is posted is answered, and nobody can take more of it than they should.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use windlass_controller::hooks::BODY_MAX;

use super::Answers;

/// Connections at once. An API server keeps a few open for each webhook.
const CONNECTIONS_MAX: usize = 256;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a question may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// How long an answer may take: nobody waits for longer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long connections may go on when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// After a connection that could not be taken: the next may find room.
const BREATH: Duration = Duration::from_millis(100);

/// When it is to stop.
pub type Stop = Shared<BoxFuture<'static, ()>>;

/// Answers until `stop`; then what was asked is still answered.
pub async fn serve(listener: TcpListener, acceptor: TlsAcceptor, answers: Answers, stop: Stop) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await.ok();
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            biased;
            () = stop.clone() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let (acceptor, answers, stop) = (acceptor.clone(), answers.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, acceptor, answers, stop).await;
            drop(slot);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("connections that did not end in time are cut");
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, answers: Answers, stop: Stop) {
    let tls = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(ARRIVAL);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(128);
    let service = service_fn(move |request| answer(request, answers.clone()));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(tls), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

async fn answer(request: Request<Incoming>, answers: Answers) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        return Ok(response(StatusCode::METHOD_NOT_ALLOWED, b"only POST is answered".to_vec()));
    }
    let path = request.uri().path().to_owned();
    let arriving = Limited::new(request.into_body(), BODY_MAX).collect();
    let body = match timeout(ARRIVAL, arriving).await {
        Ok(Ok(body)) => body.to_bytes().to_vec(),
        Ok(Err(error)) => {
            return Ok(response(StatusCode::PAYLOAD_TOO_LARGE, error.to_string().into_bytes()));
        }
        Err(_) => return Ok(response(StatusCode::REQUEST_TIMEOUT, Vec::new())),
    };
    let Ok(reply) = timeout(ANSWER, answers.reply(path, body)).await else {
        return Ok(response(StatusCode::GATEWAY_TIMEOUT, b"the management API does not answer".to_vec()));
    };
    let code = StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response(code, reply.body))
}

fn response(code: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let text = if code == StatusCode::OK { "application/json" } else { "text/plain; charset=utf-8" };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(text));
    response
}
