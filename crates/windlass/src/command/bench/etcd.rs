//! etcd as its clients ask it: gRPC, of which three calls are needed.

use std::convert::Infallible;

use bytes::{Buf as _, Bytes, BytesMut};
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use windlass_reference::Error;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What is before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A connection.
pub struct Client(http2::SendRequest<Body>);

impl Client {
    pub async fn new(tcp: TcpStream) -> Result<Self, Error> {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Writes a value. The answer comes when it is on the disk.
    pub async fn put(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.call("KV/Put", &[text(1, key.as_bytes()), text(2, value)].concat()).await.map(drop)
    }

    /// Whether the key has a value.
    pub async fn has(&self, key: &str) -> Result<bool, Error> {
        // Field 9: only count.
        let answer = self.call("KV/Range", &[text(1, key.as_bytes()), vec![9 << 3, 1]].concat()).await?;
        Ok(number(answer, 4)? == 1)
    }

    /// What happens to a key from now on.
    pub async fn watch(&self, key: &str) -> Result<Messages, Error> {
        let create = text(1, &text(1, key.as_bytes()));
        let asked = futures::stream::iter([Ok::<_, Infallible>(Frame::data(message(&create)))]);
        // The question stays open for as long as answers are wanted.
        let open = futures::StreamExt::chain(asked, futures::stream::pending());
        let answer = self.send("Watch/Watch", StreamBody::new(open).boxed_unsync()).await?;
        let mut messages = Messages { body: answer, rest: BytesMut::new() };
        // The first one says that it watches.
        messages.next().await?.ok_or("etcd ends a watch at once")?;
        Ok(messages)
    }

    async fn call(&self, method: &str, request: &[u8]) -> Result<Bytes, Error> {
        let answer = self.send(method, Full::new(message(request)).boxed_unsync()).await?.collect().await?;
        let status = answer.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
        let body = answer.to_bytes();
        match status.as_ref().map(http::HeaderValue::as_bytes) {
            Some(b"0") if body.len() >= PREFIX => Ok(body.slice(PREFIX..)),
            status => Err(format!("etcd refuses {method}: grpc-status {status:?}").into()),
        }
    }

    async fn send(&self, method: &str, body: Body) -> Result<Incoming, Error> {
        let request = Request::post(format!("http://127.0.0.1/etcdserverpb.{method}"));
        let request = request.header("content-type", "application/grpc").header("te", "trailers").body(body)?;
        Ok(self.0.clone().send_request(request).await?.into_body())
    }
}

/// Messages that come one after the other.
pub struct Messages {
    body: Incoming,
    rest: BytesMut,
}

impl Messages {
    /// The next one, when it is there; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let length = self.rest.get(1..PREFIX).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes);
            if let Some(length) = length.map(|length| length as usize)
                && self.rest.len() >= PREFIX + length
            {
                self.rest.advance(PREFIX);
                return Ok(Some(self.rest.split_to(length).freeze()));
            }
            match self.body.frame().await.transpose()? {
                Some(frame) => self.rest.extend_from_slice(frame.data_ref().map_or(&[][..], Bytes::as_ref)),
                None => return Ok(None),
            }
        }
    }
}

/// A message with what goes before it.
fn message(bytes: &[u8]) -> Bytes {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0][..], &length, bytes].concat().into()
}

/// A field that has a length.
fn text(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(0x80 | u8::try_from(length & 0x7f).unwrap_or_default());
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap_or_default());
    out.extend_from_slice(bytes);
    out
}

/// A field that is a number; 0 where it is left out.
fn number(mut message: Bytes, wanted: u64) -> Result<u64, Error> {
    while message.has_remaining() {
        let tag = varint(&mut message)?;
        match tag & 7 {
            0 => {
                let value = varint(&mut message)?;
                if tag >> 3 == wanted {
                    return Ok(value);
                }
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?)?;
                message.advance(length.min(message.len()));
            }
            other => return Err(format!("etcd answers with a field of the type {other}").into()),
        }
    }
    Ok(0)
}

fn varint(message: &mut Bytes) -> Result<u64, Error> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = message.try_get_u8().map_err(|_| "an answer of etcd ends within a number")?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number of etcd is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_behind_others_and_is_zero_where_it_is_missing() {
        let long = "x".repeat(300);
        let answer = Bytes::from([text(1, long.as_bytes()), vec![3 << 3, 0x96, 1], vec![4 << 3, 7]].concat());
        assert_eq!((number(answer.clone(), 4).unwrap(), number(answer.clone(), 3).unwrap()), (7, 150));
        assert_eq!(number(answer, 5).unwrap(), 0);
        number(Bytes::from_static(&[4 << 3, 0x96]), 4).unwrap_err();
    }
}
