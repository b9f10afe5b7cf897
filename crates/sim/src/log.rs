//! What programs write, and where people read it: the subresource `log` of pods.
//!
//! A log is no object in reality but a file on a node. Here it is a record in the store beside the pod, so that forks have it.
//! Containers that are no programs write nothing.

mod endpoint;

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_apiserver::store::{Entry, Expect, Key, Resource, Store};
use windlass_runtime::clock::Clock;

pub(crate) use endpoint::PodLog;

use crate::program::{Container, Exit, Programs, Reply, Unheard};

/// The resource of a pod's log.
pub const LOGS: &str = "logs.sim.windlass.dev";

/// A kubelet keeps a log within bounds, too: the oldest lines go.
const LINES_MAX: usize = 1_000;

/// A line, and when it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    text: String,
}

/// All that the pod with this uid has written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    uid: String,
    /// How many lines were written before those that are kept.
    #[serde(default)]
    dropped: usize,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Stored {
    record: Written,
}

fn read(entry: &Entry) -> Option<Written> {
    serde_json::from_slice::<Stored>(&entry.json).ok().map(|stored| stored.record)
}

/// What the pod with this uid has written so far.
fn written(store: &Store, pod: &Key, uid: &str) -> Written {
    let known = store.get(LOGS, pod).and_then(|entry| read(&entry)).filter(|written| written.uid == uid);
    known.unwrap_or_else(|| Written { uid: uid.to_owned(), ..Written::default() })
}

/// Where a program writes; the default leads nowhere.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<File>>);

struct File {
    store: Store,
    clock: Clock,
    pod: Key,
    uid: String,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Log").field(&self.0.as_ref().map(|file| &file.pod)).finish()
    }
}

impl Log {
    /// Writes a text, line by line.
    pub fn write(&self, text: &str) {
        let Some(file) = &self.0 else { return };
        let at = file.clock.now();
        let lines: Vec<Line> = text.lines().map(|line| Line { at, text: line.to_owned() }).collect();
        // Another line of the same pod may come in between: then it goes first.
        while !file.append(&lines, at) {}
    }
}

impl File {
    fn append(&self, lines: &[Line], now: Timestamp) -> bool {
        let mut written = written(&self.store, &self.pod, &self.uid);
        written.lines.extend_from_slice(lines);
        let too_many = written.lines.len().saturating_sub(LINES_MAX);
        written.lines.drain(..too_many);
        written.dropped += too_many;
        let expect = self.store.get(LOGS, &self.pod).map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        let metadata = serde_json::json!({"name": self.pod.name, "namespace": self.pod.namespace});
        let object = serde_json::json!({"metadata": metadata, "record": written});
        self.store.put(&Resource::from(LOGS), &self.pod, expect, object, now).is_ok()
    }
}

/// Programs whose containers have a log in the store.
pub(crate) struct Logged {
    programs: Arc<dyn Programs>,
    store: Store,
    clock: Clock,
}

impl Logged {
    pub(crate) fn new(programs: Arc<dyn Programs>, store: Store, clock: Clock) -> Self {
        Self { programs, store, clock }
    }
}

impl Programs for Logged {
    fn run(&self, mut container: Container) -> BoxFuture<'static, Exit> {
        let pod = Key::new(container.pod.namespace.as_str(), container.pod.name.as_str());
        if let Some(entry) = self.store.get("pods", &pod) {
            let (store, clock, uid) = (self.store.clone(), self.clock.clone(), entry.uid.to_string());
            container.log = Log(Some(Arc::new(File { store, clock, pod, uid })));
        }
        self.programs.run(container)
    }

    fn post(&self, url: String, body: Vec<u8>) -> BoxFuture<'static, Result<Reply, Unheard>> {
        self.programs.post(url, body)
    }
}
