//! Watches against a model: a naive filter over everything that happened.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Options};

use crate::client::send;
use crate::random::Random;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

/// Reads a watch to its end, which on a paused clock is soon.
async fn frames(server: &ApiServer, path: &str) -> Vec<Value> {
    let Ok(response) = server.clone().oneshot(Request::get(path).body(Empty::<Bytes>::new()).unwrap()).await;
    assert_eq!(response.status(), 200, "{path}");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    body.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Writes at random: labels and namespaces change, objects come and go.
async fn history(server: &ApiServer, random: &mut Random, writes: usize) {
    let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    send(server, Method::POST, "/api/v1/namespaces", &other).await;
    for n in 0..writes {
        let (namespace, name) = (random.one(&["default", "other"]), random.one(&["a", "b", "c", "d"]));
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let mut labels = json!({});
        for (label, chance) in [("l", 60), ("m", 40)] {
            if random.percent(chance) {
                labels[label] = random.one(&["x", "y", "z"]).into();
            }
        }
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"n": n.to_string()}});
        match random.below(5) {
            0 => send(server, Method::DELETE, &format!("{path}/{name}"), &Value::Null).await,
            1 => send(server, Method::POST, &path, &object).await,
            _ => send(server, Method::PUT, &format!("{path}/{name}"), &object).await,
        };
    }
}

/// A selector as a query, and what it means.
type Selector = (&'static str, fn(&Value) -> bool);

const SELECTORS: [Selector; 8] = [
    ("", |_| true),
    ("labelSelector=l%3Dx", |object| object["metadata"]["labels"]["l"] == "x"),
    ("labelSelector=l%21%3Dx", |object| object["metadata"]["labels"]["l"] != "x"),
    ("labelSelector=l", |object| object["metadata"]["labels"]["l"].is_string()),
    ("labelSelector=%21l", |object| object["metadata"]["labels"]["l"].is_null()),
    ("labelSelector=l+in+(x,y),m", |object| {
        let labels = &object["metadata"]["labels"];
        (labels["l"] == "x" || labels["l"] == "y") && labels["m"].is_string()
    }),
    ("labelSelector=l+notin+(x)&fieldSelector=metadata.name%3Da", |object| {
        object["metadata"]["labels"]["l"] != "x" && object["metadata"]["name"] == "a"
    }),
    ("fieldSelector=metadata.namespace%3Dother", |object| object["metadata"]["namespace"] == "other"),
];

/// What a watch with a selector must show of a full one: who enters is new, who leaves is gone.
fn model(events: &[Value], from: u64, selects: fn(&Value) -> bool) -> Vec<(String, u64, Value)> {
    let mut current: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut out = Vec::new();
    for event in events {
        let object = &event["object"];
        let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let key = (text("namespace"), text("name"));
        let before = current.remove(&key);
        let was = before.as_ref().is_some_and(selects);
        let is = event["type"] != "DELETED" && selects(object);
        let kind = match (was, is) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => "",
        };
        if !kind.is_empty() && revision(object) > from {
            // Who leaves is shown as it was when it was last selected.
            let data = if is { &object["data"] } else { &before.as_ref().unwrap()["data"] };
            out.push((kind.to_owned(), revision(object), data.clone()));
        }
        if event["type"] != "DELETED" {
            current.insert(key, object.clone());
        }
    }
    out
}

#[test]
fn a_watch_with_a_selector_shows_who_enters_and_who_leaves() {
    run(async {
        for seed in 0..4 {
            let mut random = Random::new(seed);
            let server = ApiServer::new(Options::default());
            let start = server.store().revision();
            history(&server, &mut random, 120).await;
            let all =
                frames(&server, &format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={start}")).await;
            assert!(all.len() > 40, "{}", all.len());
            for (query, selects) in SELECTORS {
                for _ in 0..3 {
                    let from = start + random.next() % (server.store().revision() - start);
                    let path = format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={from}&{query}");
                    let seen = frames(&server, &path).await;
                    let seen: Vec<_> = seen
                        .iter()
                        .map(|frame| {
                            (
                                frame["type"].as_str().unwrap().to_owned(),
                                revision(&frame["object"]),
                                frame["object"]["data"].clone(),
                            )
                        })
                        .collect();
                    assert_eq!(seen, model(&all, from, selects), "seed {seed}, from {from}, {query}");
                }
            }
        }
    });
}

#[test]
fn a_list_with_a_selector_is_the_filtered_list_at_every_version() {
    run(async {
        let mut random = Random::new(7);
        let server = ApiServer::new(Options::default());
        let start = server.store().revision();
        history(&server, &mut random, 120).await;
        for (query, selects) in SELECTORS {
            for _ in 0..4 {
                let at = start + 1 + random.next() % (server.store().revision() - start);
                let exact = format!("/api/v1/configmaps?resourceVersion={at}&resourceVersionMatch=Exact");
                let all = send(&server, Method::GET, &exact, &Value::Null).await.body;
                let filtered: Vec<&Value> =
                    all["items"].as_array().unwrap().iter().filter(|item| selects(item)).collect();
                let mut paged = Vec::new();
                let mut path = format!("{exact}&{query}&limit=2");
                loop {
                    let page = send(&server, Method::GET, &path, &Value::Null).await.body;
                    assert_eq!(revision(&page), at);
                    paged.extend(page["items"].as_array().unwrap().iter().cloned());
                    // What is written in between is not seen by the pages that follow.
                    send(&server, Method::POST, CONFIG_MAPS, &json!({"metadata": {"generateName": "in-between-"}}))
                        .await;
                    match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                        Some(token) => path = format!("/api/v1/configmaps?{query}&limit=2&continue={token}"),
                        None => break,
                    }
                }
                assert_eq!(paged.iter().collect::<Vec<_>>(), filtered, "at {at}, {query}");
            }
        }
    });
}

#[test]
fn a_bookmark_is_never_older_than_what_came_before_it() {
    run(async {
        let server = ApiServer::new(Options::default());
        let start = server.store().revision();
        let writing = server.clone();
        let writer = tokio::spawn(async move {
            let mut random = Random::new(11);
            for _ in 0..40 {
                history(&writing, &mut random, 3).await;
                // What happens elsewhere moves a watch on, too.
                let secret = json!({"metadata": {"generateName": "s-"}});
                send(&writing, Method::POST, "/api/v1/namespaces/default/secrets", &secret).await;
                tokio::time::sleep(std::time::Duration::from_secs(random.next() % 40)).await;
            }
        });
        for query in ["", "&labelSelector=l%3Dx", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"] {
            let path = format!(
                "/api/v1/configmaps?watch=1&timeoutSeconds=400&allowWatchBookmarks=true&resourceVersion={start}{query}"
            );
            let seen = frames(&server, &path).await;
            let bookmarks = seen.iter().filter(|frame| frame["type"] == "BOOKMARK").count();
            assert!(bookmarks > 2, "{query}: {bookmarks}");
            let initial = seen
                .iter()
                .position(|frame| !frame["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null());
            let ordered = &seen[initial.unwrap_or_default()..];
            for pair in ordered.windows(2) {
                let (one, two) = (revision(&pair[0]["object"]), revision(&pair[1]["object"]));
                assert!(
                    one < two || (one == two && pair[1]["type"] == "BOOKMARK"),
                    "{query}: {one}, then {two}: {}",
                    pair[1]
                );
            }
        }
        writer.await.unwrap();
    });
}

#[test]
fn what_was_compacted_is_expired_and_pages_can_go_on_with_what_is_there() {
    run(async {
        let mut random = Random::new(13);
        let server = ApiServer::new(Options::default());
        let start = server.store().revision();
        history(&server, &mut random, 60).await;
        let first = send(&server, Method::GET, "/api/v1/configmaps?limit=2", &Value::Null).await.body;
        let token = first["metadata"]["continue"].as_str().unwrap();
        history(&server, &mut random, 20).await;
        let now = server.store().revision();
        server.store().compact(now - 1);
        for (from, expired) in [(start + 1, true), (now - 2, true), (now - 1, false), (now, false)] {
            let seen =
                frames(&server, &format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={from}")).await;
            let gone = seen.first().is_some_and(|frame| frame["object"]["code"] == 410);
            assert_eq!(gone, expired, "from {from} of {now}: {seen:?}");
            let exact = format!("/api/v1/configmaps?resourceVersion={from}&resourceVersionMatch=Exact");
            let listed = send(&server, Method::GET, &exact, &Value::Null).await;
            assert_eq!(listed.code, if expired { 410 } else { 200 }, "at {from} of {now}: {}", listed.body);
        }
        let page =
            send(&server, Method::GET, &format!("/api/v1/configmaps?limit=2&continue={token}"), &Value::Null).await;
        assert_eq!((page.code, &page.body["reason"]), (410, &json!("Expired")));
        // The refusal has a token that goes on with what is there now, behind the page that was read.
        let token = page.body["metadata"]["continue"].as_str().unwrap();
        let rest = send(&server, Method::GET, &format!("/api/v1/configmaps?continue={token}"), &Value::Null).await.body;
        let whole = send(&server, Method::GET, "/api/v1/configmaps", &Value::Null).await.body;
        let key = |object: &Value| {
            format!(
                "{}/{}",
                object["metadata"]["namespace"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap()
            )
        };
        let last = key(first["items"].as_array().unwrap().last().unwrap());
        let expected: Vec<&Value> = whole["items"].as_array().unwrap().iter().filter(|item| key(item) > last).collect();
        assert_eq!(rest["items"].as_array().unwrap().iter().collect::<Vec<_>>(), expected);
    });
}
