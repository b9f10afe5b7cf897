//! Workload clusters of a World, as controllers reach them: without a socket.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use windlass_api::name::NamespacedName;
use windlass_controller::access::{ConnectError, Etcd, EtcdError, Member, WorkloadCluster, Workloads};
use windlass_sim::workload;

use crate::crash::Process;
use crate::seam::{Seam, Through};
use crate::traffic::{Place, Traffic};

/// The workload clusters of a World, for one process.
pub(super) struct InProcess {
    workloads: workload::Workloads,
    process: Process,
    traffic: Traffic,
}

impl InProcess {
    pub(super) fn new(workloads: workload::Workloads, process: Process, traffic: Traffic) -> Self {
        Self { workloads, process, traffic }
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
            let etcd = InProcessEtcd { workload, process: self.process.clone() };
            WorkloadCluster { client: Client::new(seam, "default"), etcd: Arc::new(etcd) }
        });
        let refusal = || ConnectError { cluster: cluster.clone(), why: "there is no such cluster".into() };
        async move { connected.ok_or_else(refusal) }.boxed()
    }
}

/// The etcd of a workload cluster.
struct InProcessEtcd {
    workload: workload::Workload,
    process: Process,
}

impl Etcd for InProcessEtcd {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        let members = self.workload.members().map(|members| members.into_iter().map(member).collect());
        async move { members.map_err(error) }.boxed()
    }

    fn remove(&self, id: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async move {
            self.workload.remove_member(id).map_err(error)?;
            self.process.wrote(format!("remove member {id:x} of etcd")).await;
            Ok(())
        }
        .boxed()
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async move {
            self.workload.move_leader(to).map_err(error)?;
            self.process.wrote(format!("move the leadership of etcd to {to:x}")).await;
            Ok(())
        }
        .boxed()
    }
}

fn member(member: workload::Member) -> Member {
    let workload::Member { id, name, learner, healthy, leader, version } = member;
    // Its etcd raises no alarm: it has room for everything, and loses nothing.
    Member { id, name, learner, healthy, leader, version, alarms: BTreeSet::new() }
}

fn error(workload::EtcdError(why): workload::EtcdError) -> EtcdError {
    EtcdError(why)
}
