//! A server in this process, and the requests that go to it without a socket.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube::CustomResourceExt as _;
use tower::Service as _;
use windlass_apiserver::{ApiServer, Options};
use windlass_reference::Error;

use super::objects::{self, Crate, Sample as _};

/// A server that knows the custom resource, and has none.
pub async fn server() -> Result<ApiServer, Error> {
    let server = ApiServer::new(Options::default());
    let definition = serde_json::to_vec(&Crate::crd())?;
    send(&server, request(Method::POST, objects::DEFINITIONS, "application/json", definition)?).await?;
    Ok(server)
}

/// A server with this many custom resources.
pub async fn filled(count: usize) -> Result<ApiServer, Error> {
    let server = server().await?;
    for number in 0..count {
        let body = serde_json::to_vec(&Crate::sample(number))?;
        send(&server, request(Method::POST, Crate::PATH, "application/json", body)?).await?;
    }
    Ok(server)
}

pub fn request(
    method: Method,
    target: &str,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Result<Request<Full<Bytes>>, Error> {
    let request = Request::builder().method(method).uri(target).header("content-type", content_type);
    Ok(request.body(Full::new(body.into()))?)
}

/// Sends a request that must succeed, and reads the answer to its end.
pub async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> Result<Bytes, Error> {
    let answer = server.clone().call(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() { Ok(body) } else { Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()) }
}
