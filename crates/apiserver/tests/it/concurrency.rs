//! Many clients at once, on several threads: nothing is lost, nothing is seen twice, everybody sees the same.

use std::collections::{BTreeMap, BTreeSet};

use bytes::BytesMut;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Body, Options};

use crate::client::{Answered, send, send_request};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CLIENTS: usize = 8;
const ROUNDS: usize = 25;

fn run(test: impl Future<Output = ()>) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    threads.block_on(test);
}

async fn patch(server: &ApiServer, path: &str, media: &str, body: &Value) -> Answered {
    let request = Request::patch(path).header("content-type", media).body(body.to_string()).unwrap();
    send_request(server, request).await
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"count": "0"}})
}

fn count(object: &Value) -> usize {
    object["data"]["count"].as_str().unwrap().parse().unwrap()
}

/// Reads, adds one and writes what it read, until nobody was faster.
async fn increment_by_update(server: &ApiServer) {
    let path = format!("{CONFIG_MAPS}/counter");
    loop {
        let mut object = send(server, Method::GET, &path, &Value::Null).await.body;
        object["data"]["count"] = (count(&object) + 1).to_string().into();
        let written = send(server, Method::PUT, &path, &object).await;
        match written.code {
            200 => return,
            409 => tokio::task::yield_now().await,
            _ => panic!("{}", written.body),
        }
    }
}

/// Replaces a number that it has tested.
async fn increment_by_patch(server: &ApiServer) {
    let path = format!("{CONFIG_MAPS}/counter");
    loop {
        let was = count(&send(server, Method::GET, &path, &Value::Null).await.body);
        let change = json!([
            {"op": "test", "path": "/data/count", "value": was.to_string()},
            {"op": "replace", "path": "/data/count", "value": (was + 1).to_string()},
        ]);
        let patched = patch(server, &path, "application/json-patch+json", &change).await;
        match patched.code {
            200 => return,
            409 | 422 => tokio::task::yield_now().await,
            _ => panic!("{}", patched.body),
        }
    }
}

/// A watch, frame by frame.
struct Watch {
    body: Body,
    buffer: BytesMut,
}

impl Watch {
    async fn start(server: &ApiServer, path: &str) -> Self {
        let request = Request::get(path).body(Empty::<bytes::Bytes>::new()).unwrap();
        let Ok(response) = server.clone().oneshot(request).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), buffer: BytesMut::new() }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return serde_json::from_slice(&self.buffer.split_to(end + 1)).unwrap();
            }
            let frame = self.body.frame().await.expect("the watch goes on").unwrap();
            self.buffer.extend_from_slice(frame.data_ref().unwrap());
        }
    }

    /// All frames up to a version, that one included.
    async fn until(&mut self, version: u64) -> Vec<Value> {
        let mut frames: Vec<Value> = Vec::new();
        while frames.last().is_none_or(|frame| revision(&frame["object"]) < version) {
            frames.push(self.next().await);
        }
        frames
    }
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[test]
fn no_increment_is_lost_and_every_watcher_sees_each_once_and_in_order() {
    run(async {
        let server = ApiServer::new(Options::default());
        let made = send(&server, Method::POST, CONFIG_MAPS, &config_map("counter")).await.body;
        let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", revision(&made));
        let mut watches = [Watch::start(&server, &watch).await, Watch::start(&server, &watch).await];
        let clients = (0..CLIENTS).map(|client| {
            let server = server.clone();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    if client % 2 == 0 { increment_by_update(&server).await } else { increment_by_patch(&server).await }
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        let end = send(&server, Method::GET, &format!("{CONFIG_MAPS}/counter"), &Value::Null).await.body;
        assert_eq!(count(&end), CLIENTS * ROUNDS);
        let [one, two] = &mut watches;
        let (one, two) = (one.until(revision(&end)).await, two.until(revision(&end)).await);
        assert_eq!(one, two);
        let counts: Vec<usize> = one.iter().map(|frame| count(&frame["object"])).collect();
        assert_eq!(counts, (1..=CLIENTS * ROUNDS).collect::<Vec<_>>());
        assert!(one.windows(2).all(|pair| revision(&pair[0]["object"]) < revision(&pair[1]["object"])));
    });
}

/// Creates, changes and deletes a few names that others use, too.
async fn meddle(server: ApiServer, client: usize) {
    for round in 0..ROUNDS {
        let name = format!("n{}", (client * 7 + round * 3) % 5);
        let path = format!("{CONFIG_MAPS}/{name}");
        let answer = match (client + round) % 4 {
            0 => send(&server, Method::DELETE, &path, &Value::Null).await,
            1 => {
                patch(&server, &path, "application/merge-patch+json", &json!({"data": {"count": round.to_string()}}))
                    .await
            }
            _ => send(&server, Method::POST, CONFIG_MAPS, &config_map(&name)).await,
        };
        assert!(matches!(answer.code, 200 | 201 | 404 | 409), "{}", answer.body);
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_list_is_what_the_events_before_it_add_up_to() {
    run(async {
        let server = ApiServer::new(Options::default());
        let start = server.store().revision();
        let mut watch = Watch::start(&server, &format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).await;
        let clients: Vec<_> = (0..CLIENTS).map(|client| tokio::spawn(meddle(server.clone(), client))).collect();
        let mut lists = Vec::new();
        for _ in 0..40 {
            lists.push(send(&server, Method::GET, CONFIG_MAPS, &Value::Null).await.body);
            tokio::task::yield_now().await;
        }
        for client in clients {
            client.await.unwrap();
        }
        // A last write tells where the history ends.
        let end = send(&server, Method::POST, CONFIG_MAPS, &config_map("end")).await.body;
        lists.push(send(&server, Method::GET, CONFIG_MAPS, &Value::Null).await.body);
        let events = watch.until(revision(&end)).await;
        let mut seen = start;
        for event in &events {
            assert!(revision(&event["object"]) > seen, "{event}");
            seen = revision(&event["object"]);
        }
        for list in lists {
            let mut model: BTreeMap<String, Value> = BTreeMap::new();
            for event in events.iter().take_while(|event| revision(&event["object"]) <= revision(&list)) {
                let mut object = event["object"].clone();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                // Items of a list do not repeat what they are.
                object.as_object_mut().unwrap().retain(|field, _| field != "kind" && field != "apiVersion");
                let known = model.remove(&name).is_some();
                assert_eq!(event["type"] == "ADDED", !known, "{event}");
                if event["type"] != "DELETED" {
                    model.insert(name, object);
                }
            }
            let items: Vec<Value> = model.into_values().collect();
            assert_eq!(list["items"], Value::Array(items), "at {}", revision(&list));
        }
    });
}

#[test]
fn one_of_many_creates_wins_and_one_of_many_deletes() {
    run(async {
        let server = ApiServer::new(Options::default());
        for _ in 0..ROUNDS {
            let races = [
                (Method::POST, CONFIG_MAPS.to_owned(), config_map("a"), 201),
                (Method::DELETE, format!("{CONFIG_MAPS}/a"), Value::Null, 200),
            ];
            for (method, path, body, won) in races {
                let clients: Vec<_> = (0..CLIENTS)
                    .map(|_| {
                        let (server, method, path, body) = (server.clone(), method.clone(), path.clone(), body.clone());
                        tokio::spawn(async move { send(&server, method, &path, &body).await.code })
                    })
                    .collect();
                let mut codes = Vec::new();
                for client in clients {
                    codes.push(client.await.unwrap());
                }
                assert_eq!(codes.iter().filter(|code| **code == won).count(), 1, "{method} {codes:?}");
            }
        }
    });
}

#[test]
fn generated_names_and_uids_are_given_once() {
    run(async {
        let server = ApiServer::new(Options::default());
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}});
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (server, object) = (server.clone(), object.clone());
                tokio::spawn(async move {
                    let mut made = Vec::new();
                    for _ in 0..ROUNDS * 4 {
                        let answer = send(&server, Method::POST, CONFIG_MAPS, &object).await;
                        assert_eq!(answer.code, 201, "{}", answer.body);
                        made.push(answer.body);
                    }
                    made
                })
            })
            .collect();
        let (mut names, mut uids, mut revisions) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for client in clients {
            for object in client.await.unwrap() {
                names.insert(object["metadata"]["name"].to_string());
                uids.insert(object["metadata"]["uid"].to_string());
                revisions.insert(revision(&object));
            }
        }
        let all = CLIENTS * ROUNDS * 4;
        assert_eq!((names.len(), uids.len(), revisions.len()), (all, all, all));
    });
}

#[test]
fn dependents_that_come_while_their_owner_goes_are_collected() {
    run(async {
        for _ in 0..10 {
            let server = ApiServer::new(Options::default());
            let owner = send(&server, Method::POST, CONFIG_MAPS, &config_map("owner")).await.body;
            let reference =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (server, reference) = (server.clone(), reference.clone());
                    tokio::spawn(async move {
                        if client == CLIENTS / 2 {
                            send(&server, Method::DELETE, &format!("{CONFIG_MAPS}/owner"), &Value::Null).await;
                        }
                        for n in 0..10 {
                            let mut dependent = config_map(&format!("d{client}-{n}"));
                            dependent["metadata"]["ownerReferences"] = reference.clone();
                            let made = send(&server, Method::POST, CONFIG_MAPS, &dependent).await;
                            assert_eq!(made.code, 201, "{}", made.body);
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            // Each request settles what the requests before it have left to do.
            let left = send(&server, Method::GET, CONFIG_MAPS, &Value::Null).await.body;
            let left = send(&server, Method::GET, CONFIG_MAPS, &left["none"]).await.body;
            assert_eq!(left["items"], json!([]));
        }
    });
}
