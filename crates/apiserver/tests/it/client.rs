//! A client of a server in this process: a request in, an answer out.

use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use windlass_apiserver::ApiServer;

/// What a server answered.
pub struct Answered {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

/// Sends JSON, or nothing for `null`.
pub async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> Answered {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    send_request(server, request.body(if body.is_null() { String::new() } else { body.to_string() }).unwrap()).await
}

/// Sends any request.
pub async fn send_request(server: &ApiServer, request: Request<String>) -> Answered {
    let Ok(response) = server.clone().oneshot(request).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answered { code, body: serde_json::from_slice(&body).unwrap_or_default(), warnings }
}

/// Reads a path whose answer is text.
pub async fn text(server: &ApiServer, path: &str) -> String {
    let Ok(response) = server.clone().oneshot(Request::get(path).body(String::new()).unwrap()).await;
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
