//! What other crates add to a server: subresources, and a backend that makes writes durable.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http::{Method, Response};
use serde_json::json;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::store::{Backend, Change, Resource};
use windlass_apiserver::subresource::{Described, Subresource, SubresourceRequest};
use windlass_apiserver::{ApiServer, Body, Options};

use crate::client::{send, text};

/// A log of what a pod would have said.
struct Log;

impl Subresource for Log {
    fn describe(&self) -> Described {
        Described { group: "", version: "v1", kind: "Pod", verbs: &["get"] }
    }

    fn call<'a>(
        &'a self,
        _: &'a ApiServer,
        request: SubresourceRequest,
    ) -> BoxFuture<'a, Result<Response<Body>, ApiError>> {
        let said = format!("{}/{} says {}", request.namespace, request.name, request.query);
        Box::pin(async move { Ok(Response::new(Body::whole(said))) })
    }
}

#[tokio::test]
async fn a_subresource_can_be_added_from_outside() {
    let server = ApiServer::new(Options::default());
    let path = "/api/v1/namespaces/default/pods/web/log?tail=1";
    let answer = send(&server, Method::GET, path, &json!(null)).await;
    assert_eq!(answer.code, 501);
    assert_eq!(answer.body["message"], "pods/log is not implemented by this server");

    server.add_subresource("pods", "log", Arc::new(Log));
    assert_eq!(text(&server, path).await, "default/web says tail=1");
    let listed = send(&server, Method::GET, "/api/v1", &json!(null)).await.body;
    let log = listed["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods/log").unwrap().clone();
    assert_eq!(log["verbs"], json!(["get"]));

    let fork = server.fork(Options::default());
    assert_eq!(text(&fork, path).await, "default/web says tail=1");
}

/// Remembers what it was given, and can be told that the disk is full.
#[derive(Default)]
struct Disk {
    appended: Mutex<Vec<(String, u64)>>,
    full: AtomicBool,
}

impl Backend for Disk {
    fn append(&self, resource: &Resource, change: &Arc<Change>) {
        self.appended.lock().unwrap().push((resource.to_string(), change.revision));
    }

    fn durable(&self, revision: u64) -> BoxFuture<'static, io::Result<()>> {
        let known = self.appended.lock().unwrap().iter().any(|(_, appended)| *appended >= revision);
        let full = self.full.load(Ordering::Relaxed);
        Box::pin(async move {
            assert!(known, "asked about a revision that was never given");
            if full { Err(io::Error::other("no space left")) } else { Ok(()) }
        })
    }
}

#[tokio::test]
async fn a_backend_gets_every_change_in_order_and_holds_the_answer_back() {
    let disk = Arc::new(Disk::default());
    let server = ApiServer::new(Options { backend: Some(disk.clone()), ..Options::default() });
    let path = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b"] {
        let answer = send(&server, Method::POST, path, &json!({"metadata": {"name": name}})).await;
        assert_eq!(answer.code, 201);
    }
    let given = disk.appended.lock().unwrap().clone();
    assert!(given.is_sorted_by_key(|(_, revision)| *revision), "{given:?}");
    assert_eq!(given.iter().filter(|(resource, _)| resource == "configmaps").count(), 2);
    assert_eq!(given.last().unwrap().1, server.store().revision());

    disk.full.store(true, Ordering::Relaxed);
    let answer = send(&server, Method::POST, path, &json!({"metadata": {"name": "c"}})).await;
    assert_eq!(answer.code, 500);
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains("no space left"), "{message}");
}
