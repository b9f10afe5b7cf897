//! What controllers are given: clients, time, chance and keys. Each world has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_api::version::KubernetesVersion;
use windlass_plan::gate::Gates;
use windlass_plan::inventory::Alarm;
use windlass_plan::render::Defaults;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::trace::Trace;

use crate::metrics::Metrics;

/// What controllers are given. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    /// The management cluster.
    pub client: Client,
    /// The way to workload clusters.
    pub workloads: Arc<dyn Workloads>,
    /// Makes certificates and keys of new clusters.
    pub keys: Arc<dyn KeyMaker>,
    /// The time.
    pub clock: Clock,
    /// Where jitter comes from.
    pub seed: Seed,
    /// The rules that are in force: all of them, except in rehearsals that leave one out on purpose.
    pub gates: Gates,
    /// What Windlass decides of machines where nobody else does.
    pub defaults: Defaults,
    /// Where the event log of the runners goes.
    pub trace: Option<Arc<dyn Trace>>,
    /// Where looks at clusters are counted.
    pub metrics: Option<Arc<Metrics>>,
}

/// The way to workload clusters.
pub trait Workloads: Send + Sync {
    /// Connects to a cluster, with the content of its kubeconfig Secret.
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        kubeconfig: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>>;
}

/// A workload cluster that can be talked to.
#[derive(Clone)]
pub struct WorkloadCluster {
    /// Its API.
    pub client: Client,
    /// Its etcd.
    pub etcd: Arc<dyn Etcd>,
}

/// A workload cluster could not be connected to.
#[derive(Debug, thiserror::Error)]
#[error("connect to the workload cluster {cluster}: {why}")]
pub struct ConnectError {
    /// Which.
    pub cluster: NamespacedName,
    /// Why not.
    pub why: String,
}

/// The etcd of a workload cluster.
pub trait Etcd: Send + Sync {
    /// Its members, with what each says of itself: etcd answers for health, version and alarms at once.
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>>;
    /// Removes a member.
    fn remove(&self, id: u64) -> BoxFuture<'_, Result<(), EtcdError>>;
    /// Makes another member lead.
    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<(), EtcdError>>;
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It does not count in the quorum yet.
    pub learner: bool,
    /// It answers.
    pub healthy: bool,
    /// It leads.
    pub leader: bool,
    /// The version that it runs, where it says so.
    pub version: Option<KubernetesVersion>,
    /// What it warns of.
    pub alarms: BTreeSet<Alarm>,
}

/// etcd did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("etcd: {0}")]
pub struct EtcdError(pub String);

/// Makes certificates and keys.
pub trait KeyMaker: Send + Sync {
    /// The data of one of a cluster's Secrets, `tls.crt` and `tls.key`.
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError>;
}

/// A certificate or key could not be made.
#[derive(Debug, thiserror::Error)]
#[error("make the {secret} of {cluster}: {why}")]
pub struct KeyError {
    /// The cluster.
    pub cluster: NamespacedName,
    /// Which Secret.
    pub secret: ClusterSecret,
    /// Why not.
    pub why: String,
}
