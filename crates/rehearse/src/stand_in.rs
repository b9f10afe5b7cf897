//! Stand-ins for what a rehearsal must not have: keys that are worth something, and open doors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use windlass_api::kind::wcp::Endpoint;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_controller::access::{KeyError, KeyMaker};
use windlass_runtime::chance::Seed;
use windlass_sim::door::{DoorError, Doors};
use windlass_sim::workload::Workload;

/// Makes texts that stand where certificates and keys would be, and say so.
#[derive(Debug, Clone)]
pub struct StandInKeys {
    seed: Seed,
}

impl StandInKeys {
    /// The same seed makes the same texts.
    pub fn new(seed: Seed) -> Self {
        Self { seed: seed.child("keys") }
    }
}

impl KeyMaker for StandInKeys {
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError> {
        let text = |part: &str| {
            let mark = self.seed.stream(&format!("{cluster} {secret} {part}")).u64();
            let body = format!("the {part} of {secret} of {cluster}, for a rehearsal: {mark:016x}");
            format!("-----BEGIN STAND-IN-----\n{body}\n-----END STAND-IN-----\n").into_bytes()
        };
        Ok(["tls.crt", "tls.key"].into_iter().map(|key| (key.to_owned(), text(key))).collect())
    }
}

/// Counts what another makes.
pub struct CountedKeys {
    inner: Arc<dyn KeyMaker>,
    made: AtomicU64,
}

impl CountedKeys {
    /// None was made yet.
    pub fn new(inner: Arc<dyn KeyMaker>) -> Self {
        Self { inner, made: AtomicU64::new(0) }
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}

impl KeyMaker for CountedKeys {
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.inner.make(cluster, secret)
    }
}

/// Doors that lead nowhere: in a rehearsal nobody knocks, and no socket is opened.
#[derive(Debug, Clone, Copy)]
pub struct NoDoors;

impl NoDoors {
    /// Where kubeadm puts an API.
    const PORT: u16 = 6443;
}

impl Doors for NoDoors {
    fn open<'a>(&'a self, cluster: &'a NamespacedName, _: &'a Workload) -> BoxFuture<'a, Result<Endpoint, DoorError>> {
        // A name that no resolver answers (RFC 2606).
        let host = format!("{}.{}.invalid", cluster.name, cluster.namespace);
        async move { Ok(Endpoint { host, port: Self::PORT }) }.boxed()
    }

    fn kubeconfig<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        endpoint: &'a Endpoint,
    ) -> BoxFuture<'a, Result<String, DoorError>> {
        let server = format!("https://{}:{}", endpoint.host, endpoint.port);
        let text = format!("# A stand-in: it leads to no cluster.\ncluster: {cluster}\nserver: {server}\n");
        async move { Ok(text) }.boxed()
    }

    fn close(&self, _: &NamespacedName) {}
}
