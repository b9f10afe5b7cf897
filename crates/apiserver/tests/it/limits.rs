//! What a client may take, and what is counted of it.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::subresource::{Described, Subresource, SubresourceRequest};
use windlass_apiserver::{ApiServer, Body, Limits, Options};

use crate::client::{send, text};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server(limits: Limits) -> ApiServer {
    ApiServer::new(Options { limits, ..Options::default() })
}

fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_client_may_have_so_many_watches_and_no_more() {
    let server = server(Limits { watches_per_user_max: 2, ..Limits::default() });
    let watch = || server.clone().oneshot(get(&format!("{MAPS}?watch=1")));
    let first = watch().await.unwrap();
    let _second = watch().await.unwrap();
    let refused = watch().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let said = refused.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&said[..], b"Too many requests, please try again later.\n");
    // Others go on, and a watch that ends makes room for the next.
    assert_eq!(send(&server, Method::GET, MAPS, &Value::Null).await.code, 200);
    drop(first);
    assert_eq!(watch().await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_takes_no_place() {
    let server = server(Limits { watches_max: 1, ..Limits::default() });
    for _ in 0..3 {
        let refused = server.clone().oneshot(get(&format!("{MAPS}?watch=1&labelSelector=,"))).await.unwrap();
        assert_eq!(refused.status(), 400);
    }
    assert_eq!(server.clone().oneshot(get(&format!("{MAPS}?watch=1"))).await.unwrap().status(), 200);
}

/// Never answers.
struct Silence;

impl Subresource for Silence {
    fn describe(&self) -> Described {
        Described { group: "", version: "v1", kind: "Pod", verbs: &["get"] }
    }

    fn call<'a>(
        &'a self,
        _: &'a ApiServer,
        _: SubresourceRequest,
    ) -> BoxFuture<'a, Result<http::Response<Body>, ApiError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_may_have_so_many_requests_in_hand() {
    let server = server(Limits { requests_per_user_max: 1, ..Limits::default() });
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    assert_eq!(send(&server, Method::POST, "/api/v1/namespaces/default/pods", &pod).await.code, 201);
    server.add_subresource("pods", "log", Arc::new(Silence));
    let waiting = tokio::spawn(server.clone().oneshot(get("/api/v1/namespaces/default/pods/a/log")));
    tokio::task::yield_now().await;
    assert_eq!(send(&server, Method::GET, MAPS, &Value::Null).await.code, 429);
    waiting.abort();
    drop(waiting.await);
    assert_eq!(send(&server, Method::GET, MAPS, &Value::Null).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_is_counted_by_verb_resource_and_code() {
    let server = server(Limits::default());
    let map = json!({"metadata": {"name": "a"}});
    for _ in 0..2 {
        send(&server, Method::POST, MAPS, &map).await;
    }
    let _watch = server.clone().oneshot(get(&format!("{MAPS}?watch=1"))).await.unwrap();
    send(&server, Method::GET, "/apis/made.up/v1/names", &Value::Null).await;
    let page = text(&server, "/metrics").await;
    let about = |verb: &str| {
        format!(
            "verb=\"{verb}\",group=\"\",version=\"v1\",resource=\"configmaps\",subresource=\"\",scope=\"namespace\""
        )
    };
    for line in [
        format!("apiserver_request_total{{{},code=\"201\"}} 1", about("POST")),
        format!("apiserver_request_total{{{},code=\"409\"}} 1", about("POST")),
        format!("apiserver_request_total{{{},code=\"200\"}} 1", about("WATCH")),
        format!("apiserver_request_duration_seconds_count{{{}}} 2", about("POST")),
        format!("apiserver_request_duration_seconds_bucket{{{},le=\"+Inf\"}} 2", about("POST")),
        "apiserver_longrunning_requests{verb=\"WATCH\"} 1".to_owned(),
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1".to_owned(),
        "apiserver_resource_objects{group=\"\",resource=\"configmaps\"} 1".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    assert!(!page.contains("made.up"), "names that clients make up are not kept: {page}");
}
