//! What was observed of a cluster, when, and what could not be observed.
//!
//! The controller's `observe` is the only one who fills this in, and whoever plans or checks knows nothing else. A part that
//! could not be read is a [`Gap`], never a part that is silently missing: gates refuse to open across a gap.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::name::{
    AddonName, ClusterSecret, ImageName, MachineClassName, MachineName, NodeName, ObjectName, PoolName,
    StorageClassName, Uid, UpdateId,
};
use windlass_api::version::KubernetesVersion;

use crate::gate::Blocked;
use crate::step::Revision;

/// What was observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inventory {
    /// When.
    pub as_of: Timestamp,
    /// The cluster's own objects on the management side.
    pub cluster: ClusterState,
    /// The Secrets that are there. Their contents are nobody's business.
    pub secrets: BTreeSet<ClusterSecret>,
    /// The machines of the control plane, and the Job that replaces them.
    pub control_plane: ControlPlane,
    /// The pools of workers.
    pub pools: BTreeMap<PoolName, Pool>,
    /// What the workload cluster says.
    pub workload: Workload,
    /// The latest update on record; `None` if the cluster has only ever been created.
    pub update: Option<UpdateRecord>,
    /// What could not be observed.
    pub gaps: Vec<Gap>,
}

/// What the workload cluster says when it answers.
#[derive(Debug, Clone, Copy)]
pub struct Reachable<'a> {
    /// Its nodes.
    pub nodes: &'a [Node],
    /// The objects of add-ons that were found.
    pub addons: &'a BTreeMap<AddonName, Vec<AddonObject>>,
    /// The members of etcd.
    pub etcd: &'a [EtcdMember],
}

impl Inventory {
    /// The workload cluster, if it answers.
    pub fn reachable(&self) -> Option<Reachable<'_>> {
        match &self.workload {
            Workload::Reachable { nodes, addons, etcd } => Some(Reachable { nodes, addons, etcd }),
            Workload::NotYet | Workload::Unreachable { .. } => None,
        }
    }

    /// Why the workload cluster cannot be asked.
    pub fn unreachable(&self) -> Option<Blocked> {
        match &self.workload {
            Workload::NotYet => Some(Blocked::NoWorkloadApi),
            Workload::Unreachable { why } => Some(Blocked::WorkloadUnreachable { why: why.clone() }),
            Workload::Reachable { .. } => None,
        }
    }
}

/// The cluster's own objects on the management side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ClusterState {
    /// There is no Cluster yet.
    Absent,
    /// It is there.
    Present {
        /// Its uid: what belongs to the cluster for as long as it lives is owned by it.
        uid: Uid,
        /// The infrastructure that it needs once is there.
        infrastructure_ready: bool,
        /// Its API has answered once.
        initialized: bool,
        /// Nobody may touch what belongs to it, for this reason.
        paused: Option<String>,
    },
}

/// The machines of the control plane, and the Job that replaces them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ControlPlane {
    /// The machines, by name.
    pub machines: Vec<Machine>,
    /// The Job of the current update, if there is one.
    pub job: Option<Job>,
}

/// A machine of the control plane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Its name.
    pub name: MachineName,
    /// Which state of it was seen.
    pub revision: Revision,
    /// The base of its name.
    pub base: Option<MachineName>,
    /// The version of Kubernetes that it was asked to have.
    pub version: KubernetesVersion,
    /// The image that its disk was made from; `None` if its infrastructure is not there (yet, or any more).
    pub image: Option<ImageName>,
    /// Its class, as above.
    pub class: Option<MachineClassName>,
    /// Its storage class, as above.
    pub storage_class: Option<StorageClassName>,
    /// How far it is.
    pub state: MachineState,
}

/// How far a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MachineState {
    /// It is on the way to being a node.
    Joining,
    /// It is a node, and well.
    Ready {
        /// Its node.
        node: NodeName,
    },
    /// It is a node, and not well.
    Unhealthy {
        /// Its node.
        node: NodeName,
        /// What is wrong.
        why: String,
    },
    /// It is on the way out.
    Deleting,
}

/// The Job that replaces the machines of the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Its name.
    pub name: ObjectName,
    /// The update that it belongs to.
    pub update: UpdateId,
    /// How far it is.
    pub state: JobState,
}

/// How far a Job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum JobState {
    /// It runs, or is about to.
    Active {
        /// How many of its attempts have failed.
        failed_attempts: u32,
    },
    /// It has done its work.
    Complete,
    /// It has used up its attempts.
    Failed {
        /// What it said.
        message: String,
    },
}

/// A pool of workers: a `MachineDeployment` and what it refers to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pool {
    /// Which state of the `MachineDeployment` was seen.
    pub revision: Revision,
    /// How many machines it should have.
    pub replicas: u32,
    /// The version of Kubernetes in its template.
    pub version: KubernetesVersion,
    /// The template of its infrastructure.
    pub infrastructure_template: Template,
    /// The template of its bootstrap configuration.
    pub bootstrap_template: Template,
    /// How far its controller is.
    pub progress: PoolProgress,
}

/// A template that a pool refers to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Template {
    /// Its name.
    pub name: ObjectName,
    /// Its `spec.template.spec`; `None` if there is no such object.
    pub spec: Option<serde_json::Value>,
}

/// How far the rollout of a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PoolProgress {
    /// The counts below are about the latest change.
    pub observed: bool,
    /// How many machines there are, old and new.
    pub replicas: u32,
    /// How many of them are as the template says.
    pub up_to_date: u32,
    /// How many can be relied on.
    pub available: u32,
}

/// What the workload cluster says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Workload {
    /// It has no API yet.
    NotYet,
    /// It has one, which did not answer.
    Unreachable {
        /// What went wrong.
        why: String,
    },
    /// It answers.
    Reachable {
        /// Its nodes.
        nodes: Vec<Node>,
        /// The objects of add-ons that were found, sorted by kind, namespace and name.
        addons: BTreeMap<AddonName, Vec<AddonObject>>,
        /// The members of etcd.
        etcd: Vec<EtcdMember>,
    },
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// It is one of the control plane.
    pub control_plane: bool,
    /// The version of its kubelet.
    pub kubelet: KubernetesVersion,
    /// The distribution that it says it was made from.
    pub distribution: Option<KubernetesVersion>,
    /// It is ready.
    pub ready: bool,
}

/// An object of an add-on, as it is in the workload cluster: found by our label, whichever release it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddonObject {
    /// Which state of it was seen.
    pub revision: Revision,
    /// The whole of it, without `managedFields`.
    pub live: serde_json::Value,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EtcdMember {
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It answers, and is part of the quorum.
    pub healthy: bool,
}

/// The latest update on record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpdateRecord {
    /// The name of the `ClusterUpdate`.
    pub name: ObjectName,
    /// Which update of the cluster it is.
    pub ordinal: u64,
    /// Its id.
    pub id: UpdateId,
    /// What the cluster was when it began: `spec.from`.
    pub from: UpdateEnd,
    /// The digest of its envelope.
    pub envelope_digest: String,
    /// How it is going.
    pub state: UpdateRecordState,
}

/// How an update is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum UpdateRecordState {
    /// It goes on.
    Running,
    /// It is done.
    Succeeded,
    /// It gave up.
    Failed,
}

/// Something that could not be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The object, as `Kind/name`.
    pub object: String,
    /// Why not.
    pub why: String,
}
