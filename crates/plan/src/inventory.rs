//! What was observed of a cluster, when, and what could not be observed.
//!
//! The controller's `observe` is the only one who fills this in, and whoever plans or checks knows nothing else. A part that
//! could not be read is a [`Gap`], never a part that is silently missing: gates refuse to open across a gap.

pub mod applied;
mod pool;
mod releases;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::name::{
    AddonName, ClusterSecret, ImageName, MachineClassName, MachineName, NameLimit, NodeName, ObjectName, PoolName,
    StorageClassName, Uid, UpdateId, replacement_name,
};
use windlass_api::version::KubernetesVersion;

pub use pool::{Failing, Leaving, Pool, PoolMachine, PoolMoved, PoolProgress, Template};
pub use releases::{ImageState, KeptRelease, Releases};
pub use workload::{AddonObject, Alarm, EtcdMember, Node, Workload};

use crate::gate::Blocked;
use crate::step::Revision;
use crate::target::{NetworkTarget, Target};
pub use applied::{AppliedAddons, AppliedObject};

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
    /// The managed topology, where the cluster has one.
    pub topology: Option<Topology>,
    /// What the workload cluster says.
    pub workload: Workload,
    /// The latest update on record; `None` if the cluster has only ever been created.
    pub update: Option<UpdateRecord>,
    /// What people have ordered about that update.
    pub orders: Orders,
    /// What could not be observed.
    pub gaps: Vec<Gap>,
    /// What somebody has agreed to: the digest of an envelope, as the refusal names it.
    pub consent: Option<String>,
    /// The releases that are kept for it.
    pub releases: Releases,
    /// The templates that earlier updates have made for its pools, and that nobody refers to any more. They are looked for only
    /// when no update is under way and all pools are at rest.
    pub earlier_templates: Vec<EarlierTemplate>,
    /// The release that the cluster was last brought to, where it says so itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<KubernetesVersion>,
}

/// What people have ordered about the latest update.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Orders {
    /// To give it up.
    pub abort: Option<Abort>,
    /// Not to begin the next one without approval, or at all.
    pub approval: Approval,
}

/// Whether an update has to be approved, and what was decided against.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Approval {
    /// No update begins without it.
    pub is_required: bool,
    /// What somebody does not want.
    pub rejected: Option<Rejection>,
}

/// An update that somebody does not want.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rejection {
    /// The digest of its envelope.
    pub digest: String,
    /// Who.
    pub by: String,
    /// Why, if that was said.
    pub because: String,
}

/// The order to give an update up, and how far that is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Abort {
    /// Who wants it.
    pub by: String,
    /// What the cluster is to be again; `None` if the release that it had is not to be found.
    pub back: Option<Target>,
    /// Which state of the Job was seen that works towards the update, while that is there.
    pub upgrading: Option<Revision>,
    /// The Job that gives up.
    pub job: Option<Job>,
    /// Why that cannot be any more, where whoever looked knows already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_late: Option<String>,
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
    /// The add-ons that somebody else has brought in, and their objects, as `Kind/name`.
    pub foreign: &'a BTreeMap<AddonName, Vec<String>>,
    /// The record of what was applied, if there is one.
    pub applied: Option<&'a AppliedAddons>,
}

impl Inventory {
    /// The workload cluster, if it answers.
    pub fn reachable(&self) -> Option<Reachable<'_>> {
        match &self.workload {
            Workload::Reachable { nodes, addons, etcd, foreign, applied } => {
                Some(Reachable { nodes, addons, etcd, foreign, applied: applied.as_ref() })
            }
            Workload::NotYet | Workload::Unreachable { .. } => None,
        }
    }

    /// Who holds the cluster, if somebody does.
    pub fn paused(&self) -> Option<&str> {
        match &self.cluster {
            ClusterState::Absent => None,
            ClusterState::Present { paused, .. } => paused.as_deref(),
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
        /// The network inside of it, which nobody can change any more; `None` if it does not say.
        network: Option<NetworkTarget>,
    },
}

/// The machines of the control plane, and the Job that replaces them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ControlPlane {
    /// The machines, by name.
    pub machines: Vec<Machine>,
    /// The Job of the current update, if there is one.
    pub job: Option<Job>,
    /// The Jobs of earlier updates that nobody needs any more: they have ended, and are not those of the last one that had any.
    pub earlier_jobs: Vec<EarlierJob>,
    /// The object that rolls the machines, where Cluster API does it.
    pub kubeadm: Option<KubeadmControlPlane>,
}

/// A template that was made for a pool, and that nobody refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierTemplate {
    /// The version of its kind.
    pub api_version: String,
    /// `WCPMachineTemplate` or `KubeadmConfigTemplate`.
    pub kind: &'static str,
    /// Its name.
    pub name: ObjectName,
    /// Which state of it was seen.
    pub revision: Revision,
}

/// A Job of an earlier update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierJob {
    /// Its name.
    pub name: ObjectName,
    /// Which state of it was seen.
    pub revision: Revision,
}

/// A `KubeadmControlPlane`: where Cluster API rolls the machines of the control plane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KubeadmControlPlane {
    /// Its name.
    pub name: ObjectName,
    /// Which state of it was seen.
    pub revision: Revision,
    /// How many machines it should have.
    pub replicas: u32,
    /// The version of Kubernetes that its machines should have.
    pub version: KubernetesVersion,
    /// The template of their infrastructure.
    pub infrastructure_template: Template,
    /// Its `spec.kubeadmConfigSpec`.
    pub configuration: serde_json::Value,
    /// How far its controller is.
    pub progress: PoolProgress,
    /// The versions that its machines have: `status.versions`.
    pub versions: Vec<KubernetesVersion>,
    /// What its conditions say is wrong with it, if anything.
    pub unwell: Option<String>,
    /// Whether it brings `kube-proxy` and `CoreDNS` itself: it has no annotation that says to skip them.
    pub owns_addons: bool,
    /// The object as it was read, with who owns which field. Only where a release sets fields of it.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub live: serde_json::Value,
}

/// A managed topology: Cluster API derives everything from `Cluster.spec.topology`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// Which state of the Cluster was seen.
    pub revision: Revision,
    /// The name of its `ClusterClass`.
    pub class: String,
    /// `spec.topology.version`.
    pub version: KubernetesVersion,
    /// The whole of `spec.topology`.
    pub spec: serde_json::Value,
    /// What the condition `TopologyReconciled` says is still to be done, if anything.
    pub pending: Option<String>,
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
    /// The update that has marked it and has not let go of it yet.
    pub update: Option<UpdateId>,
    /// When it was created: the time that it has to become healthy is counted from here.
    pub created: Timestamp,
    /// The version of Kubernetes that it was asked to have.
    pub version: KubernetesVersion,
    /// The image that its disk was made from; `None` if its infrastructure is not there (yet, or any more).
    pub image: Option<ImageName>,
    /// Its class, as above.
    pub class: Option<MachineClassName>,
    /// Its storage class, as above.
    pub storage_class: Option<StorageClassName>,
    /// How kubeadm registered it as a node: `nodeRegistration` of its configuration; `None` where that is not known.
    pub registration: Option<serde_json::Value>,
    /// How far it is.
    pub state: MachineState,
}

impl Machine {
    /// The node that it is, or by which its member of etcd would be known: its own name, while it is no node yet.
    pub fn node(&self) -> &str {
        match &self.state {
            MachineState::Ready { node }
            | MachineState::Unhealthy { node, .. }
            | MachineState::Deleting { node: Some(node) } => node.as_str(),
            MachineState::Deleting { node: None } | MachineState::Joining { .. } => self.name.as_str(),
        }
    }

    /// What it shares with all machines that take its place: the base of its name.
    pub fn row(&self) -> &MachineName {
        self.base.as_ref().unwrap_or(&self.name)
    }

    /// Whether it took the place of another in this update.
    pub fn is_made_by(&self, update: UpdateId) -> bool {
        let made = |base: &MachineName| replacement_name(base, update, NameLimit::LabelValue) == self.name;
        self.base.as_ref().is_some_and(made)
    }
}

/// How far a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MachineState {
    /// It is on the way to being a node.
    Joining {
        /// What it does not have yet.
        awaits: Milestone,
    },
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
    Deleting {
        /// Its node, if it ever was one.
        node: Option<NodeName>,
    },
}

impl MachineState {
    /// The state in one word, without what is said about it.
    fn word(&self) -> &'static str {
        match self {
            Self::Joining { awaits: Milestone::ProviderId } => "made",
            Self::Joining { .. } => "joining",
            Self::Ready { .. } => "ready",
            Self::Unhealthy { .. } => "unhealthy",
            Self::Deleting { .. } => "deleting",
        }
    }
}

/// What a machine reaches on its way to being a healthy node, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Milestone {
    /// Infrastructure that is known by a `providerID`.
    ProviderId,
    /// A node with that `providerID`.
    Node,
    /// Its programs: an API server, a controller manager, a scheduler and a member of etcd.
    Components,
    /// The label of a node of the control plane.
    RoleLabel,
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
    /// What it was waiting for when it was last looked at.
    pub waiting: Vec<Waited>,
    /// When each pool that was not at rest last moved.
    pub progress: Vec<PoolMoved>,
}

/// Something that an update was waiting for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// Why, in one word: [`Blocked::reason`].
    pub reason: String,
    /// For which object: [`Blocked::object`].
    pub object: String,
    /// Since when.
    pub since: Timestamp,
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
    /// Somebody had it given up.
    Aborted,
}

impl UpdateRecordState {
    /// Whether it has come to an end, and nobody will go on with it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Aborted)
    }
}

/// Something that could not be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The object, as `Kind/name`.
    pub object: String,
    /// Why not.
    pub why: String,
}
