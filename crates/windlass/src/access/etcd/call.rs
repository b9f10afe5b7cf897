//! Calls to one member: gRPC over HTTP/2 over TLS.

use std::sync::Arc;

use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use windlass_plan::inventory::Alarm;

use super::Wire;
use super::message::{self, Garbled, Listed, Status};

/// The name by which every member is known: kubeadm puts it into their certificates, with names and addresses that differ.
const NAME: &str = "localhost";
/// What an answer may have: a member takes some hundred bytes in a list.
const BYTES_MAX: usize = 1024 * 1024;
/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// A call was not answered, or with a refusal.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("TLS with the member")]
    Tls(#[source] std::io::Error),
    #[error("talk to the member")]
    Http(#[source] hyper::Error),
    #[error("make a request")]
    Request(#[source] http::Error),
    #[error("read the answer of the member: {0}")]
    Body(String),
    #[error("the member answered with HTTP {0}")]
    Code(StatusCode),
    #[error("the member refused: {message} (gRPC {code})")]
    Refused { code: String, message: String },
    #[error(transparent)]
    Garbled(#[from] Garbled),
}

/// A connection to a member, for as long as somebody has something to ask.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Greets whoever is at the other end; somebody whom the cluster's authority has not signed is told nothing.
    pub async fn over(wire: Box<dyn Wire>, tls: Arc<ClientConfig>) -> Result<Self, CallError> {
        let name = ServerName::try_from(NAME).map_err(|error| CallError::Tls(std::io::Error::other(error)))?;
        let stream = TlsConnector::from(tls).connect(name, wire).await.map_err(CallError::Tls)?;
        let made = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = made.map_err(CallError::Http)?;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to etcd ended");
            }
        });
        Ok(Self { sender, task })
    }

    pub async fn status(&mut self) -> Result<Status, CallError> {
        Ok(message::status(&self.call("Maintenance/Status", Vec::new()).await?)?)
    }

    /// All members, as the quorum knows them.
    pub async fn members(&mut self) -> Result<Vec<Listed>, CallError> {
        // Linearizable: otherwise a member that was cut off would say what was so before. Members older than 3.5 do not know
        // the field, and answer from what they have.
        Ok(message::members(&self.call("Cluster/MemberList", message::number(1)).await?)?)
    }

    pub async fn alarms(&mut self) -> Result<Vec<(u64, Alarm)>, CallError> {
        // Without an action they are only asked for.
        Ok(message::alarms(&self.call("Maintenance/Alarm", Vec::new()).await?)?)
    }

    pub async fn remove(&mut self, id: u64) -> Result<(), CallError> {
        self.call("Cluster/MemberRemove", message::number(id)).await.map(drop)
    }

    pub async fn move_leader(&mut self, to: u64) -> Result<(), CallError> {
        self.call("Maintenance/MoveLeader", message::number(to)).await.map(drop)
    }

    pub(super) async fn call(&mut self, method: &str, message: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let request = Request::post(format!("https://{NAME}/etcdserverpb.{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(framed(&message)))
            .map_err(CallError::Request)?;
        self.sender.ready().await.map_err(CallError::Http)?;
        let answer = self.sender.send_request(request).await.map_err(CallError::Http)?;
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            return Err(CallError::Code(head.status));
        }
        // Where there is nothing but a refusal it is in the head.
        let in_head = head.headers.contains_key("grpc-status");
        if in_head {
            accepted(&head.headers)?;
        }
        let body = Limited::new(body, BYTES_MAX).collect().await.map_err(|error| CallError::Body(error.to_string()))?;
        if !in_head {
            accepted(&body.trailers().cloned().unwrap_or_default())?;
        }
        Ok(unframed(&body.to_bytes())?.to_vec())
    }
}

/// A message with what stands before it.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// The one message of an answer. Nothing is compressed that did not ask for it.
fn unframed(body: &[u8]) -> Result<&[u8], Garbled> {
    let (prefix, message) = body.split_at_checked(PREFIX_BYTES).ok_or(Garbled)?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if prefix[0] == 0 && usize::try_from(length) == Ok(message.len()) { Ok(message) } else { Err(Garbled) }
}

/// Whether a call was done; an answer that does not say so is none.
fn accepted(headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    match text("grpc-status").as_str() {
        "0" => Ok(()),
        "" => Err(CallError::Garbled(Garbled)),
        code => Err(CallError::Refused { code: code.to_owned(), message: text("grpc-message") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_it_says() {
        assert_eq!(unframed(&framed(b"abc")), Ok(&b"abc"[..]));
        for wrong in [&[0, 0, 0][..], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 1], &[0, 0, 0, 0, 0, 1]] {
            assert_eq!(unframed(wrong), Err(Garbled), "{wrong:?}");
        }
    }

    #[test]
    fn what_does_not_say_that_it_was_done_was_not() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let named = |(name, value): &(&'static str, &'static str)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            };
            pairs.iter().map(named).collect()
        };
        assert!(accepted(&headers(&[("grpc-status", "0")])).is_ok());
        assert!(accepted(&headers(&[])).is_err());
        let refused = accepted(&headers(&[("grpc-status", "5"), ("grpc-message", "etcdserver: member not found")]));
        assert_eq!(refused.unwrap_err().to_string(), "the member refused: etcdserver: member not found (gRPC 5)");
    }
}
