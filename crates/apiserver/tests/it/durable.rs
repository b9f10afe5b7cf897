//! A server whose store is kept in a data directory, as its clients see it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::BytesMut;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;
use windlass_apiserver::durable::disk::{Directory, Disk, File};
use windlass_apiserver::durable::{self, Journal, Keys, Lasting};
use windlass_apiserver::store::{Keeper as _, Recovered, Waits};
use windlass_apiserver::{ApiServer, Body, Options};

use crate::linear::{self, Asked, Operation, Told};
use crate::random::Random;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn run(test: impl Future<Output = ()>) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    threads.block_on(test);
}

/// A server, what it lets out, and what keeps it.
struct Kept {
    server: ApiServer,
    journal: Journal,
}

impl Kept {
    fn open(folder: &Path) -> Self {
        let (journal, recovered) = durable::open(&folder.join("data"), &folder.join("key"), Waits::TheDoor).unwrap();
        Self::on(journal, recovered)
    }

    fn on(journal: Journal, mut recovered: BTreeMap<Arc<str>, Recovered>) -> Self {
        let options = Options { backend: Some(journal.backend("here")), ..Options::default() };
        let server = match recovered.remove("here") {
            Some(recovered) => ApiServer::recovered(options, recovered),
            None => ApiServer::new(options),
        };
        Self { server, journal }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let response = self.respond(method, path, body).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn respond(&self, method: Method, path: &str, body: &Value) -> http::Response<Body> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let media = if method == Method::PATCH { "application/apply-patch+yaml" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let door = Lasting::new(self.server.clone(), self.server.store().clone());
        let Ok(response) = door.oneshot(request.body(body).unwrap()).await;
        response
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, &Value::Null).await
    }

    /// The frames of a watch up to a revision.
    async fn watch(&self, from: u64, until: u64) -> Vec<Value> {
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
        let mut body = self.respond(Method::GET, &path, &Value::Null).await.into_body();
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::<Value>::new());
        loop {
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let frame: Value = serde_json::from_slice(&buffer.split_to(end + 1)).unwrap();
                let is_last = frame["type"] == "ERROR" || revision(&frame["object"]) >= until;
                frames.push(frame);
                if is_last {
                    return frames;
                }
            }
            buffer.extend_from_slice(body.frame().await.unwrap().unwrap().data_ref().unwrap());
        }
    }
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn config_map(name: &str, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value.to_string()}})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.test.example"},
        "spec": {
            "group": "test.example", "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"oars": {"type": "integer", "default": 2}}}},
            }}}],
        },
    })
}

#[test]
fn a_server_comes_back_as_it_was() {
    run(async {
        let folder = TempDir::new().unwrap();
        let kept = Kept::open(folder.path());
        let first = kept.send(Method::POST, CONFIG_MAPS, &config_map("first", 1)).await.1;
        kept.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition()).await;
        let boats = "/apis/test.example/v1/namespaces/default/boats";
        let boat =
            json!({"apiVersion": "test.example/v1", "kind": "Boat", "metadata": {"name": "b"}, "spec": {"oars": 4}});
        let applied = format!("{boats}/b?fieldManager=me");
        assert_eq!(kept.send(Method::PATCH, &applied, &boat).await.0, 201);
        kept.send(Method::DELETE, &format!("{CONFIG_MAPS}/first"), &Value::Null).await;
        let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}});
        let last = kept.send(Method::POST, CONFIG_MAPS, &generated).await.1;
        let paths =
            [boats, CONFIG_MAPS, "/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"];
        let mut before = Vec::new();
        for path in paths {
            before.push(kept.get(path).await);
        }
        kept.journal.close().unwrap();

        let kept = Kept::open(folder.path());
        for (path, before) in paths.into_iter().zip(before) {
            assert_eq!(kept.get(path).await, before, "{path}: with its resourceVersion and its managedFields");
        }
        // Revisions and identities go on.
        let (_, new) = kept.send(Method::POST, CONFIG_MAPS, &generated).await;
        assert_eq!(revision(&new), revision(&last) + 1);
        assert_ne!(new["metadata"]["uid"], last["metadata"]["uid"]);
        assert_ne!(new["metadata"]["name"], last["metadata"]["name"]);
        // Ownership goes on, too.
        let mut theirs = boat.clone();
        theirs["spec"]["oars"] = 6.into();
        assert_eq!(kept.send(Method::PATCH, &format!("{boats}/b?fieldManager=you"), &theirs).await.0, 409);
        assert_eq!(kept.send(Method::PATCH, &applied, &theirs).await.1["spec"]["oars"], 6);
        // A watch goes on where it was.
        let frames = kept.watch(revision(&first), revision(&new)).await;
        let seen: Vec<_> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
        assert_eq!(seen, ["DELETED", "ADDED", "ADDED"]);
        // What was deleted stays so, and may come again.
        assert_eq!(kept.get(&format!("{CONFIG_MAPS}/first")).await.0, 404);
        let again = kept.send(Method::POST, CONFIG_MAPS, &config_map("first", 2)).await.1;
        assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    });
}

#[test]
fn what_was_left_to_do_is_done_after_a_restart() {
    run(async {
        let folder = TempDir::new().unwrap();
        // One without controllers does not do it, like one that was killed in between.
        let (journal, _) =
            durable::open(&folder.path().join("data"), &folder.path().join("key"), Waits::TheDoor).unwrap();
        let options = Options { backend: Some(journal.backend("here")), controllers: false, ..Options::default() };
        let kept = Kept { server: ApiServer::new(options), journal };
        let owner = kept.send(Method::POST, CONFIG_MAPS, &config_map("owner", 1)).await.1;
        let mut child = config_map("owned", 1);
        let uid = owner["metadata"]["uid"].clone();
        child["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
        assert_eq!(kept.send(Method::POST, CONFIG_MAPS, &child).await.0, 201);
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
        kept.send(Method::POST, "/api/v1/namespaces", &other).await;
        let inside = "/api/v1/namespaces/other/configmaps";
        kept.send(Method::POST, inside, &config_map("inside", 1)).await;
        kept.send(Method::DELETE, &format!("{CONFIG_MAPS}/owner"), &Value::Null).await;
        kept.send(Method::DELETE, "/api/v1/namespaces/other", &Value::Null).await;
        assert_eq!(kept.get(&format!("{CONFIG_MAPS}/owned")).await.0, 200);
        kept.journal.close().unwrap();

        let kept = Kept::open(folder.path());
        // It is done before the first answer that follows a request.
        kept.get("/api/v1/namespaces").await;
        assert_eq!(kept.get(&format!("{CONFIG_MAPS}/owned")).await.0, 404);
        assert_eq!(kept.get("/api/v1/namespaces/other").await.0, 404);
    });
}

/// A directory whose disk is full when it is told so.
struct Fillable {
    directory: Directory,
    is_full: Arc<AtomicBool>,
}

struct FillableFile(Box<dyn File>, Arc<AtomicBool>);

fn room(is_full: &AtomicBool) -> io::Result<()> {
    if is_full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

impl Write for FillableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        room(&self.1)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File for FillableFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

impl Disk for Fillable {
    fn names(&self) -> io::Result<Vec<String>> {
        self.directory.names()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        room(&self.is_full)?;
        Ok(Box::new(FillableFile(self.directory.create(name)?, self.is_full.clone())))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        self.directory.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.directory.sync(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_names()
    }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room_and_loses_nothing() {
    run(async {
        let folder = TempDir::new().unwrap();
        let is_full = Arc::new(AtomicBool::new(false));
        let open = || {
            let directory = Directory::at(&folder.path().join("data"), |_| true).unwrap();
            let disk = Fillable { directory, is_full: is_full.clone() };
            let (journal, recovered) =
                durable::open_on(Arc::new(disk), &Keys::of([1; 32]), Waits::TheDoor, ()).unwrap();
            Kept::on(journal, recovered)
        };
        let kept = open();
        assert_eq!(kept.send(Method::POST, CONFIG_MAPS, &config_map("a", 1)).await.0, 201);
        is_full.store(true, Ordering::SeqCst);
        let (code, body) = kept.send(Method::POST, CONFIG_MAPS, &config_map("b", 1)).await;
        assert_eq!((code, body["reason"].as_str()), (507, Some("InsufficientStorage")), "{body}");
        let (code, body) = kept.send(Method::PUT, &format!("{CONFIG_MAPS}/a"), &config_map("a", 2)).await;
        assert_eq!((code, body["kind"].as_str()), (507, Some("Status")), "{body}");
        let (code, body) = kept.get(&format!("{CONFIG_MAPS}/a")).await;
        assert_eq!((code, body["data"]["value"].as_str()), (200, Some("1")), "what was refused was not written");

        is_full.store(false, Ordering::SeqCst);
        // It tries again by itself.
        while kept.server.store().refuses().is_some() {
            tokio::task::yield_now().await;
        }
        let (code, _) = kept.send(Method::POST, CONFIG_MAPS, &config_map("c", 1)).await;
        assert_eq!(code, 201);
        kept.journal.close().unwrap();
        let kept = open();
        let names: Vec<Value> = kept.get(CONFIG_MAPS).await.1["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].clone())
            .collect();
        // The outcome of the one that met the full disk was not known; it was written in the end.
        assert_eq!(names, ["a", "b", "c"]);
    });
}

/// What a client does, and what it was told.
async fn client(kept: Arc<Kept>, number: u64, clock: Arc<AtomicU64>) -> Vec<(String, Operation)> {
    let mut random = Random::new(number);
    let mut log = Vec::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..30 {
        let name = random.one(&["a", "b", "c"]).to_owned();
        let path = format!("{CONFIG_MAPS}/{name}");
        let value = number * 1_000 + round;
        let at = seen.get(&name).copied().unwrap_or(1);
        let mut object = config_map(&name, value);
        object["metadata"]["resourceVersion"] = at.to_string().into();
        let conditions =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": at.to_string()}});
        let sent = clock.fetch_add(1, Ordering::SeqCst);
        let (asked, (code, body)) = match random.below(6) {
            0 | 1 => {
                let made = kept.send(Method::POST, CONFIG_MAPS, &config_map(&name, value)).await;
                (Asked::Create(value), made)
            }
            2 | 3 => (Asked::Replace(value, at), kept.send(Method::PUT, &path, &object).await),
            4 => (Asked::Delete(at), kept.send(Method::DELETE, &path, &conditions).await),
            _ => (Asked::Read, kept.get(&path).await),
        };
        let answered = clock.fetch_add(1, Ordering::SeqCst);
        let told = match (&asked, code) {
            (Asked::Create(_), 201) | (Asked::Replace(..), 200) => Told::Written(revision(&body)),
            (Asked::Delete(_), 200) => Told::Gone,
            (Asked::Read, 200) => {
                let value = body["data"]["value"].as_str().unwrap().parse().unwrap();
                Told::There(value, revision(&body))
            }
            (_, 404) => Told::Nothing,
            (_, 409) => Told::Conflict,
            other => panic!("{other:?}: {body}"),
        };
        if let Told::Written(revision) | Told::There(_, revision) = told {
            seen.insert(name.clone(), revision);
        }
        log.push((name, Operation { sent, answered, asked, told }));
    }
    log
}

async fn linearizable(kept: Kept) {
    let (kept, clock) = (Arc::new(kept), Arc::new(AtomicU64::new(0)));
    for round in 0..6 {
        let clients: Vec<_> =
            (0..5).map(|number| tokio::spawn(client(kept.clone(), round * 5 + number + 1, clock.clone()))).collect();
        let mut log: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
        let mut refused = 0;
        for client in clients {
            for (name, operation) in client.await.unwrap() {
                refused += u64::from(operation.told == Told::Conflict);
                log.entry(name).or_default().push(operation);
            }
        }
        assert!(refused > 0, "nobody met anybody");
        linear::check(&log);
        // The next round begins with nothing.
        for name in log.keys() {
            kept.send(Method::DELETE, &format!("{CONFIG_MAPS}/{name}"), &Value::Null).await;
        }
    }
}

#[test]
fn a_server_in_memory_is_linearizable() {
    run(async {
        let folder = TempDir::new().unwrap();
        // Its door has nothing to wait for.
        let (journal, _) = durable::open(&folder.path().join("d"), &folder.path().join("k"), Waits::TheDoor).unwrap();
        linearizable(Kept { server: ApiServer::new(Options::default()), journal }).await;
    });
}

#[test]
fn a_durable_server_is_linearizable() {
    run(async {
        let folder = TempDir::new().unwrap();
        linearizable(Kept::open(folder.path())).await;
    });
}

#[test]
fn watches_lists_and_restarts_tell_one_history() {
    run(async {
        let folder = TempDir::new().unwrap();
        let mut told: Vec<Value> = Vec::new();
        let mut from = None;
        for life in 0..4 {
            let kept = Arc::new(Kept::open(folder.path()));
            let start = *from.get_or_insert(kept.server.store().revision());
            let clock = Arc::new(AtomicU64::new(0));
            let clients: Vec<_> = (0..4)
                .map(|number| tokio::spawn(client(kept.clone(), life * 4 + number + 100, clock.clone())))
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            let end = kept.send(Method::POST, CONFIG_MAPS, &config_map(&format!("end-{life}"), 0)).await.1;
            // One watch from the beginning, and one from where the life before ended: they say the same.
            let all = kept.watch(start, revision(&end)).await;
            assert_eq!(all[..told.len()], told[..], "what was told before is told again");
            if let Some(last) = told.last() {
                let rest = kept.watch(revision(&last["object"]), revision(&end)).await;
                assert_eq!(rest[..], all[told.len()..]);
            }
            assert!(all.windows(2).all(|pair| revision(&pair[0]["object"]) < revision(&pair[1]["object"])));
            told = all;
            let mut model: BTreeMap<String, u64> = BTreeMap::new();
            for frame in &told {
                let name = frame["object"]["metadata"]["name"].as_str().unwrap().to_owned();
                let known = model.remove(&name).is_some();
                assert_eq!(frame["type"] == "ADDED", !known, "{frame}");
                if frame["type"] != "DELETED" {
                    model.insert(name, revision(&frame["object"]));
                }
            }
            let list = kept.get(CONFIG_MAPS).await.1;
            let items = list["items"].as_array().unwrap().iter();
            let items: BTreeMap<String, u64> =
                items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), revision(item))).collect();
            assert_eq!(items, model);
            kept.journal.close().unwrap();
        }
    });
}
