//! The least server that a watch can watch, with the faults that a good one does not have.
//!
//! Lists and watches config maps. Tests change them through [`Stub`], not through the client, and tell it when to misbehave.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt, StreamExt};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::Layer;
use windlass_runtime::steady::SteadyLayer;

/// More than any test needs.
const WATCHES_MAX: u32 = 1000;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

#[derive(Clone, Default)]
pub struct Stub(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    revision: u64,
    objects: BTreeMap<String, Value>,
    log: Vec<(u64, Value)>,
    watches: Vec<UnboundedSender<Bytes>>,
    lag: Duration,
    list_delay: Duration,
    lists_to_fail: u32,
    watches_to_refuse: u32,
    ends_watches: bool,
    lists: u32,
    watched: u32,
}

impl Stub {
    pub fn client(&self) -> kube::Client {
        let stub = self.clone();
        let service =
            tower::service_fn(move |request: Request<Body>| stub.clone().answer(request).map(Ok::<_, Infallible>));
        kube::Client::new(SteadyLayer.layer(service), "default")
    }

    /// Creates or changes a ConfigMap in the namespace `default`, and returns it as a server would.
    pub fn put(&self, name: &str, fields: impl Borrow<Value>) -> Value {
        let mut state = self.state();
        state.revision += 1;
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": state.revision.to_string()}});
        merge(&mut object, fields.borrow());
        let kind = if state.objects.insert(name.into(), object.clone()).is_some() { "MODIFIED" } else { "ADDED" };
        state.publish(kind, &object);
        object
    }

    /// Creates empty config maps.
    pub fn put_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) {
        for name in names {
            self.put(name.as_ref(), json!({}));
        }
    }

    pub fn delete(&self, name: &str) {
        let mut state = self.state();
        let mut object = state.objects.remove(name).unwrap();
        state.revision += 1;
        object["metadata"]["resourceVersion"] = state.revision.to_string().into();
        state.publish("DELETED", &object);
    }

    /// Every event takes this long to arrive from now on.
    pub fn lag(&self, lag: Duration) {
        self.state().lag = lag;
    }

    /// Every list takes this long from now on.
    pub fn slow_lists(&self, delay: Duration) {
        self.state().list_delay = delay;
    }

    /// The next lists answer 500.
    pub fn fail_lists(&self, count: u32) {
        self.state().lists_to_fail = count;
    }

    /// The next watches answer 410 as the HTTP status, as some proxies and servers do.
    pub fn refuse_watches(&self, count: u32) {
        self.state().watches_to_refuse = count;
    }

    /// Every watch ends as soon as it has begun, from now on.
    pub fn end_watches_at_once(&self) {
        self.state().ends_watches = true;
        self.drop_watches();
    }

    /// Every open watch ends.
    pub fn drop_watches(&self) {
        self.state().watches.clear();
    }

    /// Every open watch is told that its version has expired, and ends.
    pub fn expire_watches(&self) {
        let gone = json!({"type": "ERROR", "object": status(410, "Expired", "too old resource version")});
        for watch in std::mem::take(&mut self.state().watches) {
            watch.unbounded_send(line(&gone)).ok();
        }
    }

    /// Changes an object, or deletes it, without a word to any watch.
    pub fn silently(&self, change: impl FnOnce(&Self)) {
        let watches = std::mem::take(&mut self.state().watches);
        change(self);
        self.state().watches = watches;
    }

    pub fn lists(&self) -> u32 {
        self.state().lists
    }

    /// How many watches have begun.
    pub fn watched(&self) -> u32 {
        self.state().watched
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn answer(self, request: Request<Body>) -> Answer {
        let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
        assert!(path.ends_with("/configmaps"), "the stub does not serve {path}");
        if query.contains("watch=true") {
            let version = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap();
            return self.watch(version.parse().unwrap());
        }
        let delay = self.state().list_delay;
        tokio::time::sleep(delay).await;
        let mut state = self.state();
        state.lists += 1;
        if state.lists_to_fail > 0 {
            state.lists_to_fail -= 1;
            return plain(500, &status(500, "InternalError", "the list fails"));
        }
        let items: Vec<&Value> = state.objects.values().collect();
        let version = state.revision.to_string();
        plain(
            200,
            &json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": items}),
        )
    }

    fn watch(&self, from: u64) -> Answer {
        let mut state = self.state();
        if state.watches_to_refuse > 0 {
            state.watches_to_refuse -= 1;
            return plain(410, &status(410, "Expired", "too old resource version"));
        }
        state.watched += 1;
        assert!(state.watched < WATCHES_MAX, "somebody asks without a pause");
        let (sender, receiver) = unbounded();
        for (_, event) in state.log.iter().filter(|(revision, _)| *revision > from) {
            deliver(&sender, event, state.lag);
        }
        if !state.ends_watches {
            state.watches.push(sender);
        }
        Response::new(UnsyncBoxBody::new(StreamBody::new(receiver.map(|line| Ok(Frame::data(line))))))
    }
}

impl State {
    fn publish(&mut self, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        for watch in &self.watches {
            deliver(watch, &event, self.lag);
        }
        self.log.push((self.revision, event));
    }
}

fn deliver(watch: &UnboundedSender<Bytes>, event: &Value, lag: Duration) {
    let (watch, frame) = (watch.clone(), line(event));
    if lag.is_zero() {
        watch.unbounded_send(frame).ok();
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(lag).await;
        watch.unbounded_send(frame).ok();
    });
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) if target.is_object() => {
            for (name, value) in fields {
                merge(&mut target[name.as_str()], value);
            }
        }
        other => *target = other.clone(),
    }
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

fn plain(code: u16, body: &Value) -> Answer {
    let mut answer = Response::new(UnsyncBoxBody::new(Full::from(body.to_string())));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}
