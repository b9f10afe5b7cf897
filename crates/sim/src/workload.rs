//! Workload clusters: an API server each, and what happens in them without anybody asking.
//!
//! Machines and members of etcd are [records](record) in the store; everything else is an object. [`Workload`] is what others
//! do to a cluster (switch a machine on, remove a member of etcd, talk to its API); what follows from it is the business of
//! one task per cluster, in `workload/life.rs`, which reads the store's changes and waits for what is due next.

mod adopt;
mod cloud_provider;
mod connection;
mod daemon_set;
mod deployment;
mod disruption;
mod etcd;
mod image;
mod instance;
mod job;
mod kubeadm;
mod kubelet;
mod life;
mod lifecycle;
mod node;
mod package_kinds;
mod pod;
pub mod record;
mod removed_kinds;
mod replica_set;
mod scheduler;
mod seen;
mod stateful_set;
mod termination;
mod trouble;
mod user_data;
mod view;
mod volumes;
mod witness;
mod write;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable};
use futures::stream::{BoxStream, FuturesUnordered};
use tokio::sync::Notify;
use windlass_api::name::{NamespacedName, NodeName};
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Keeper, Retention};
use windlass_apiserver::{ApiServer, Options};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;

use crate::actor::{self, acting};
use crate::durations::Durations;
use crate::fault::Faults;
use crate::log::PodLog;
use crate::packages::{self, Kapp};
use crate::timeline::Recorder;
use crate::world::{KeptStores, Settings};
use etcd::Etcd;
pub use instance::Instance;
use record::{Machine, Stage};
pub(crate) use seen::suffix;
pub use seen::template_hash;
use witness::{Listeners, Witness};

pub use adopt::Seen;
pub use trouble::{Alarm, TROUBLES, Trouble};

/// There may be thousands of clusters in a process, and those who watch one are in the same process: they are never far behind.
const RETENTION: Retention = Retention { age: Duration::from_secs(75), events_min: 100, events_max: 10_000 };

/// All workload clusters of a World. Cheap to clone.
#[derive(Clone)]
pub struct Workloads(Arc<Clusters>);

struct Clusters {
    settings: Settings,
    recorder: Recorder,
    faults: Faults,
    /// Who keeps what happens in them, if anybody does.
    keeper: Option<Arc<dyn Keeper>>,
    all: Mutex<BTreeMap<NamespacedName, Workload>>,
    /// Told whenever `all` changes.
    changed: Notify,
    listeners: Arc<Listeners>,
}

impl Workloads {
    /// None yet.
    pub(crate) fn new(settings: Settings, recorder: Recorder, faults: Faults, keeper: Option<Arc<dyn Keeper>>) -> Self {
        let (all, changed, listeners) = (Mutex::default(), Notify::new(), Arc::default());
        Self(Arc::new(Clusters { settings, recorder, faults, keeper, all, changed, listeners }))
    }

    /// Clusters that go on where kept ones ended.
    pub(crate) fn resume(&self, kept: KeptStores) {
        for (place, recovered) in kept {
            // Other places are for whoever kept them.
            let Ok(cluster) = place.parse::<NamespacedName>() else { continue };
            let server = ApiServer::recovered(self.options(&cluster), recovered);
            PodLog::serve(&server);
            self.all().insert(cluster.clone(), self.workload(&cluster, server));
        }
    }

    /// Clusters of their own, as these are now.
    pub(crate) fn fork(&self, settings: Settings, recorder: Recorder, faults: Faults) -> Self {
        let fork = Self::new(settings, recorder, faults, None);
        for (cluster, workload) in &*self.all() {
            let server = workload.server().fork(fork.options(cluster));
            fork.all().insert(cluster.clone(), fork.workload(cluster, server));
        }
        fork
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, Workload>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seed(&self, cluster: &NamespacedName) -> Seed {
        self.0.settings.seed.child("workload").child(&cluster.to_string())
    }

    fn options(&self, cluster: &NamespacedName) -> Options {
        let recorder = self.0.recorder.observer(&cluster.to_string());
        let listeners = self.0.listeners.clone();
        Options {
            now: self.0.settings.clock.now_fn(),
            seed: self.seed(cluster).0,
            retention: RETENTION,
            backend: self.0.keeper.as_ref().map(|keeper| keeper.backend(&cluster.to_string())),
            observer: Some(Arc::new(Witness { cluster: cluster.clone(), recorder, listeners })),
            ..Options::default()
        }
    }

    fn workload(&self, cluster: &NamespacedName, server: ApiServer) -> Workload {
        let workload = Workload(Arc::new(Inner {
            cluster: cluster.clone(),
            server,
            clock: self.0.settings.clock.clone(),
            seed: self.seed(cluster),
            durations: self.0.settings.durations.clone(),
            faults: self.0.faults.clone(),
            records: Mutex::default(),
            answers: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
        }));
        workload.settle();
        workload
    }

    /// The cluster of that name.
    pub fn get(&self, cluster: &NamespacedName) -> Option<Workload> {
        self.all().get(cluster).cloned()
    }

    /// The clusters there are, by name.
    pub fn names(&self) -> Vec<NamespacedName> {
        self.all().keys().cloned().collect()
    }

    /// The cluster of that name; one with an API that does not answer yet where there is none.
    pub fn ensure(&self, cluster: &NamespacedName) -> Workload {
        let mut all = self.all();
        if let Some(workload) = all.get(cluster) {
            return workload.clone();
        }
        let server = ApiServer::new(self.options(cluster));
        PodLog::serve(&server);
        let workload = self.workload(cluster, server);
        all.insert(cluster.clone(), workload.clone());
        drop(all);
        self.0.changed.notify_one();
        workload
    }

    /// The cluster is gone for good.
    pub fn remove(&self, cluster: &NamespacedName) {
        let was_there = self.all().remove(cluster).is_some();
        if let Some(keeper) = self.0.keeper.as_ref().filter(|_| was_there) {
            keeper.forget(&cluster.to_string());
        }
        self.0.changed.notify_one();
    }

    /// Whenever a node of any cluster changes from now on: the cluster, and the node.
    pub fn node_changes(&self) -> BoxStream<'static, (NamespacedName, NodeName)> {
        self.0.listeners.nodes.join()
    }

    /// Whenever a static pod of a control plane or a member of etcd changes from now on: the cluster.
    pub fn component_changes(&self) -> BoxStream<'static, NamespacedName> {
        self.0.listeners.components.join()
    }

    /// Lives the lives of all clusters, also of those that are yet to come. Does not end.
    pub async fn run(&self) {
        let mut lives = FuturesUnordered::new();
        let mut running: BTreeMap<NamespacedName, (Workload, AbortHandle)> = BTreeMap::new();
        loop {
            let all = self.all().clone();
            running.retain(|cluster, (workload, life)| {
                let goes_on = all.get(cluster).is_some_and(|now| Arc::ptr_eq(&now.0, &workload.0));
                if !goes_on {
                    life.abort();
                }
                goes_on
            });
            for (cluster, workload) in all {
                running.entry(cluster).or_insert_with(|| {
                    let (handle, registration) = AbortHandle::new_pair();
                    let life = acting(actor::Actor::Kubernetes, workload.clone().live());
                    lives.push(Abortable::new(life, registration));
                    (workload, handle)
                });
            }
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            loop {
                tokio::select! {
                    biased;
                    () = &mut changed => break,
                    Some(_) = lives.next() => {}
                }
            }
        }
    }
}

/// One workload cluster. Cheap to clone.
#[derive(Clone)]
pub struct Workload(Arc<Inner>);

struct Inner {
    cluster: NamespacedName,
    server: ApiServer,
    clock: Clock,
    seed: Seed,
    durations: Durations,
    faults: Faults,
    /// Whoever writes records holds it.
    records: Mutex<()>,
    /// What the records say about the API: it is asked at every request.
    answers: AtomicBool,
    /// Whose turn it is among the API servers.
    turns: AtomicUsize,
}

/// A machine that has booted: what is on its disk, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The machine, and the node to be.
    pub node: NodeName,
    /// What tells the machine from all others.
    pub provider_id: String,
    /// Its address.
    pub address: String,
    /// The kubelet on its disk.
    pub kubelet: KubernetesVersion,
    /// The container images on its disk. Those of a repository without a host are in no registry: a machine has them or not.
    pub images: Vec<String>,
    /// How much of everything it has.
    pub capacity: Capacity,
    /// The zone that it is in, where zones are told apart.
    pub zone: Option<String>,
    /// The bootstrap data: a cloud-config with kubeadm's configuration in it.
    pub user_data: String,
}

/// How much of everything a machine has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Capacity {
    /// Processors.
    pub cpus: u32,
    /// Memory, as a quantity.
    pub memory: String,
}

impl Default for Capacity {
    /// As much as a small machine has.
    fn default() -> Self {
        Self { cpus: 2, memory: "4Gi".to_owned() }
    }
}

/// What a machine does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Begins {
    /// It begins the cluster.
    Init,
    /// It joins the control plane.
    JoinControlPlane,
    /// It joins as a worker.
    Join,
}

/// Bootstrap data that no machine can begin with.
#[derive(Debug, thiserror::Error)]
#[error("the bootstrap data of {node} cannot be used: {why}")]
pub struct BootError {
    /// The machine.
    pub node: NodeName,
    /// What is wrong with it.
    pub why: String,
}

/// A member of etcd, as its own API shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// The version that it runs, where its image has one.
    pub version: Option<KubernetesVersion>,
}

/// etcd did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("etcd: {0}")]
pub struct EtcdError(pub String);

impl Workload {
    /// Which cluster it is.
    pub fn name(&self) -> &NamespacedName {
        &self.0.cluster
    }

    /// Its API server, whether or not it would answer: for invariants and snapshots.
    pub fn server(&self) -> &ApiServer {
        &self.0.server
    }

    /// Whether its API answers.
    pub fn answers(&self) -> bool {
        self.0.answers.load(Ordering::Acquire)
    }

    /// A machine was switched on and has booted. It begins or joins the cluster after a while. Saying so again changes nothing.
    pub fn boot(&self, boot: &Boot) -> Result<Begins, BootError> {
        let _lock = self.lock();
        // Another machine of the same name takes the place of the one before, which is off.
        let known = record::of::<Machine>(self.0.server.store(), &boot.node);
        if let Some(machine) = known.filter(|machine| machine.provider_id == boot.provider_id) {
            return Ok(machine.begins);
        }
        let read = user_data::read(&boot.user_data);
        let (begins, configuration) =
            read.map_err(|error| BootError { node: boot.node.clone(), why: chain(&error) })?;
        self.put(&Machine {
            name: boot.node.clone(),
            provider_id: boot.provider_id.clone(),
            address: boot.address.clone(),
            kubelet: boot.kubelet.clone(),
            begins,
            booted_at: self.0.clock.now(),
            stage: Stage::Begun,
            on: true,
            off_at: None,
            gone_at: None,
            capacity: boot.capacity.clone(),
            images: boot.images.clone(),
            zone: boot.zone.clone(),
            configuration,
            failure: None,
        });
        Ok(begins)
    }

    /// A machine is switched off for good. Its node stays, and after a while it is noticed that it is not ready any more.
    pub fn power_off(&self, node: &NodeName) {
        let _lock = self.lock();
        let Some(machine) = record::of::<Machine>(self.0.server.store(), node).filter(|machine| machine.on) else {
            return;
        };
        self.put(&Machine { on: false, off_at: Some(self.0.clock.now()), ..machine });
        self.settle();
    }

    /// The infrastructure has this machine no more, which is off. Its node stays, until the Machine or the cloud provider deletes it.
    pub fn machine_gone(&self, node: &NodeName, provider_id: &str) {
        let _lock = self.lock();
        let known = record::of::<Machine>(self.0.server.store(), node);
        // Another machine of the same name is there.
        let is_it = |machine: &Machine| machine.provider_id == provider_id && !machine.on && machine.gone_at.is_none();
        if let Some(machine) = known.filter(is_it) {
            self.put(&Machine { gone_at: Some(self.0.clock.now()), ..machine });
        }
    }

    /// The members of etcd. An error where it has no quorum.
    pub fn members(&self) -> Result<Vec<Member>, EtcdError> {
        self.etcd().shown()
    }

    /// Removes a member. Removing one that is not there is an error that says so; so is one whose removal would leave the others
    /// without a quorum.
    pub fn remove_member(&self, id: u64) -> Result<(), EtcdError> {
        let _lock = self.lock();
        let etcd = self.etcd();
        let member = etcd.removal(id)?;
        record::remove::<record::Member>(self.0.server.store(), &member.name, self.0.clock.now());
        self.settle();
        self.0.faults.removal_unanswered(&self.0.cluster).map_or(Ok(()), |why| Err(EtcdError(why)))
    }

    /// Makes another member lead.
    pub fn move_leader(&self, to: u64) -> Result<(), EtcdError> {
        if let Some(why) = self.0.faults.move_refused(&self.0.cluster) {
            return Err(EtcdError(why));
        }
        let _lock = self.lock();
        for member in self.etcd().led_by(to)? {
            self.put(&member);
        }
        Ok(())
    }

    /// Machines that are switched on, by node, and the version of their kubelets: ground truth for invariants.
    pub fn running(&self) -> BTreeMap<NodeName, KubernetesVersion> {
        let machines = record::all::<Machine>(self.0.server.store()).into_iter().filter(|machine| machine.on);
        machines.map(|machine| (machine.name, machine.kubelet)).collect()
    }

    /// Why kubeadm has given up on a machine, if it has.
    pub fn kubeadm_failure(&self, node: &NodeName) -> Option<String> {
        record::of::<Machine>(self.0.server.store(), node).and_then(|machine| machine.failure)
    }

    /// All that happens in it without anybody asking. Does not end.
    async fn live(self) {
        let packages = Kapp {
            client: self.client(),
            server: self.0.server.clone(),
            place: packages::Place::Workload(self.clone()),
            clock: self.0.clock.clone(),
            seed: self.0.seed,
        };
        futures::future::join(life::run(self), packages.run()).await;
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put<T: record::Record>(&self, record: &T) {
        record::put(self.0.server.store(), record, self.0.clock.now());
    }

    fn etcd(&self) -> Etcd {
        Etcd::read(self.0.server.store())
    }

    fn new_member(&self, node: &NodeName, started: bool, learner: bool) -> record::Member {
        let id = self.0.seed.child("etcd member").stream(node.as_str()).u64();
        record::Member { id, name: node.clone(), learner, started, leader: false, version: None }
    }

    /// What follows at once from changed records: somebody leads, and the API answers or does not, with the kinds that it has.
    fn settle(&self) {
        let etcd = self.etcd();
        for member in etcd.election() {
            self.put(&member);
        }
        self.settle_removed_kinds(&etcd);
        self.0.answers.store(etcd.api_answers(), Ordering::Release);
    }
}

/// An error with all its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
