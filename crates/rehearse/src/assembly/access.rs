//! Workload clusters of a World, as controllers reach them: without a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tower::Layer;
use windlass_api::name::NamespacedName;
use windlass_apiserver::store::Key;
use windlass_controller::access::{ConnectError, Etcd, EtcdError, Member, WorkloadCluster, Workloads};
use windlass_plan::inventory::Alarm;
use windlass_runtime::steady::SteadyLayer;
use windlass_sim::actor::Caller;
use windlass_sim::fault::Faulty;
use windlass_sim::workload;

use crate::crash::Process;
use crate::seam::{Memory, Old, Seam, Through};
use crate::traffic::{Place, Traffic};

/// How the removal of a member is told.
pub(crate) const REMOVAL: &str = "remove member";

/// The workload clusters of a World, for one process.
pub(super) struct InProcess {
    workloads: workload::Workloads,
    process: Process,
    traffic: Traffic,
    old: Vec<Old>,
    memory: Memory,
    ages: Option<Box<Ages>>,
}

/// Makes a client one as it would have been once.
type Ages = dyn Fn(Client, Caller) -> Client + Send + Sync;

impl InProcess {
    pub(super) fn new(workloads: workload::Workloads, process: Process, traffic: Traffic) -> Self {
        Self { workloads, process, traffic, old: Vec::new(), memory: Memory::default(), ages: None }
    }

    /// The same, as it would have been once.
    pub(super) fn aged_by(
        self,
        old: Vec<Old>,
        memory: Memory,
        ages: impl Fn(Client, Caller) -> Client + Send + Sync + 'static,
    ) -> Self {
        Self { old, memory, ages: Some(Box::new(ages)), ..self }
    }
}

impl Workloads for InProcess {
    /// The kubeconfig is not looked at: there is one cluster of that name, and no wire to it.
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        _: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        let connected = self.workloads.get(cluster).map(|workload| {
            let through = Through(workload.client());
            let seam = Seam::new(through, Place::Workload, self.process.clone(), self.traffic.clone());
            let client = match workload.faults() {
                faults if faults.is_empty() => Client::new(SteadyLayer.layer(seam), "default"),
                faults => {
                    let (caller, name) = (self.process.caller(), cluster.to_string());
                    let upset = Faulty::new(seam, faults.clone(), caller, Place::Workload, &name);
                    Client::new(SteadyLayer.layer(upset), "default")
                }
            };
            let client = match &self.ages {
                Some(ages) => ages(client, self.process.caller()),
                None => client,
            };
            let (old, memory) = (self.old.clone(), self.memory.clone());
            let etcd = InProcessEtcd { workload, process: self.process.clone(), old, memory };
            WorkloadCluster { client, etcd: Arc::new(etcd) }
        });
        let refusal = || ConnectError { cluster: cluster.clone(), why: "there is no such cluster".into() };
        async move { connected.ok_or_else(refusal) }.boxed()
    }
}

/// The etcd of a workload cluster.
struct InProcessEtcd {
    workload: workload::Workload,
    process: Process,
    old: Vec<Old>,
    memory: Memory,
}

impl Etcd for InProcessEtcd {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        async move {
            self.answers().await;
            let alarms = self.workload.alarms();
            let shown = |shown| member(shown, &alarms);
            let members = self.workload.members().map_err(error)?.into_iter().map(shown).collect();
            let as_known = |members, old: &Old| old.members(members, &self.memory, |node| self.is_ready(node));
            Ok(self.old.iter().fold(members, as_known))
        }
        .boxed()
    }

    fn remove(&self, id: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async move {
            self.answers().await;
            let what = format!("{REMOVAL} {id:x} of etcd");
            self.waits(&what).await;
            self.workload.remove_member(id).map_err(error)?;
            self.process.wrote(what, None).await;
            Ok(())
        }
        .boxed()
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async move {
            self.answers().await;
            let what = format!("move the leadership of etcd to {to:x}");
            self.waits(&what).await;
            self.workload.move_leader(to).map_err(error)?;
            self.process.wrote(what, None).await;
            Ok(())
        }
        .boxed()
    }
}

impl InProcessEtcd {
    /// Waits for as long as etcd takes for an answer: no time at all, unless something is wrong with it.
    async fn answers(&self) {
        let delay = self.workload.faults().etcd_delay(self.workload.name());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Whether a node says that it is ready.
    fn is_ready(&self, node: &str) -> bool {
        let found = self.workload.server().store().get("nodes", &Key::new("", node));
        let object = found.map(|entry| entry.to_value("", "")).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }

    /// Waits for whatever comes before a write; for ever where that is a crash.
    async fn waits(&self, what: &str) {
        if let Some(wait) = self.process.before(what) {
            wait.await;
        }
    }
}

fn member(member: workload::Member, alarms: &BTreeMap<u64, BTreeSet<workload::Alarm>>) -> Member {
    let workload::Member { id, name, learner, healthy, leader, version } = member;
    let alarm = |alarm: &workload::Alarm| match alarm {
        workload::Alarm::NoSpace => Alarm::NoSpace,
        workload::Alarm::Corrupt => Alarm::Corrupt,
    };
    let alarms = alarms.get(&id).into_iter().flatten().map(alarm).collect();
    Member { id, name, learner, healthy, leader, version, alarms }
}

fn error(workload::EtcdError(why): workload::EtcdError) -> EtcdError {
    EtcdError(why)
}
