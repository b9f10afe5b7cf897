//! What a change says, to people and to rules.

use windlass_api::version::MinorVersion;

use super::{Member, Role};

/// What a change says. Names are those of objects; what else there is to know of them is in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The cluster is asked to be of a distribution, for the first time or anew.
    Requested { distribution: Option<Box<str>> },
    /// The whole of the cluster is in another phase.
    PhaseChanged { phase: Box<str> },
    /// All machines of the cluster have another distribution.
    VersionReached { distribution: Box<str> },
    /// The cluster is to be removed.
    DeletionRequested,
    /// The cluster is gone.
    ClusterGone,
    /// The Cluster of Cluster API came, is to go, or went.
    OwnerChanged { change: OwnerChange },
    /// The add-ons that cannot be applied are others than before.
    AddonErrors,

    /// A control plane that Cluster API rolls is asked to be so, for the first time or anew.
    ControlPlaneRequested { name: Box<str>, version: Box<str>, replicas: u32 },
    /// All machines of a control plane that Cluster API rolls have a version.
    ControlPlaneReached { name: Box<str>, version: Box<str> },
    /// A control plane that Cluster API rolls is to go, or gone.
    ControlPlaneGoes { name: Box<str>, gone: bool },

    /// An update was recorded.
    UpdateBegan { update: Box<str>, from: Box<str>, to: Box<str> },
    /// An update works on another stage.
    UpdateStage { update: Box<str>, stage: Box<str> },
    /// An update goes on that had ended.
    UpdateResumed { update: Box<str> },
    /// An update is done.
    UpdateSucceeded { update: Box<str> },
    /// An update gave up.
    UpdateFailed { update: Box<str>, why: Option<Box<str>> },
    /// An update was given up.
    UpdateAborted { update: Box<str> },
    /// An update has another id than before.
    UpdateRenamed { update: Box<str>, was: Box<str> },

    /// A machine is asked for.
    MachineCreated { machine: Box<str>, role: Role, version: Box<str> },
    /// A machine is a node.
    MachineRunning { machine: Box<str> },
    /// A machine is to be removed.
    MachineDeleting { machine: Box<str> },
    /// A machine is gone. Settled is one whose node has been ready.
    MachineDeleted { machine: Box<str>, role: Role, version: Box<str>, pool: Option<Box<str>>, settled: bool },
    /// A machine that goes waits for something else than before.
    MachineWaits { machine: Box<str>, reason: Box<str>, message: Box<str> },
    /// A machine is to be replaced because it is not well.
    MachineRemediated { machine: Box<str> },
    /// Another version is asked of a machine that is there already.
    MachineChanged,
    /// A machine takes the place of another one than before.
    MachineRebased { machine: Box<str>, was: Option<Box<str>> },

    /// A pool is asked for.
    PoolCreated { pool: Box<str>, version: Box<str> },
    /// A pool is to be made of other machines.
    PoolSwitched { pool: Box<str>, version: Box<str>, template: Box<str> },
    /// A pool is gone.
    PoolGone { pool: Box<str> },

    /// The control plane is to be updated by a Job.
    JobCreated { job: Box<str> },
    /// An attempt of a Job failed.
    JobAttemptFailed { job: Box<str>, failed: u32 },
    /// A Job did what it was for.
    JobComplete { job: Box<str> },
    /// A Job gave up.
    JobFailed { job: Box<str> },

    /// A certificate has other owners than before.
    SecretOwned { secret: Box<str>, owners: Vec<String> },
    /// All owners of a certificate were exchanged at once.
    SecretHandedOver { secret: Box<str> },
    /// A certificate is another than it was.
    SecretChanged { secret: Box<str> },
    /// A certificate is gone.
    SecretGone { secret: Box<str> },

    /// kubeadm has given up on a machine, which will never be a node.
    KubeadmFailed { node: Box<str>, why: Box<str> },
    /// A node registered.
    NodeRegistered { node: Box<str>, kubelet: Box<str> },
    /// A node became ready.
    NodeReady { node: Box<str> },
    /// A node is not ready any more.
    NodeNotReady { node: Box<str>, why: Option<Box<str>> },
    /// Nothing new is scheduled on a node.
    NodeCordoned { node: Box<str> },
    /// A node takes new pods again.
    NodeUncordoned { node: Box<str> },
    /// A node is gone. This was its machine.
    NodeGone { node: Box<str>, provider_id: Option<Box<str>> },
    /// A machine was switched on.
    PoweredOn { node: Box<str> },
    /// A machine was switched off.
    PoweredOff { node: Box<str> },
    /// A program of the control plane or a kube-proxy came, changed or went.
    ComponentsChanged,
    /// What kubeadm tells to those who join is another than before; perhaps even whose etcd it is.
    KubeadmConfigured { flipped: bool },
    /// A definition has objects stored in versions that it does not serve.
    StoredUnserved { definition: Box<str>, unserved: Vec<String> },

    /// The Eviction API let a pod go.
    PodEvicted { pod: Box<str>, node: Box<str> },
    /// A pod is to go, and nobody asked the Eviction API.
    PodKilled { pod: Box<str>, node: Box<str> },
    /// A pod of an add-on is on a node, or a pod has no image there.
    PodPlaced { pod: Box<str>, node: Box<str> },

    /// An object of an add-on was applied. Careless is one whose pods may go before others have come.
    AddonApplied { addon: Box<str>, object: String, distribution: Option<Box<str>>, careless: bool },
    /// An object of an add-on is gone.
    AddonRemoved { addon: Box<str>, object: String },

    /// etcd has one member more.
    MemberAdded { node: Box<str>, learner: bool },
    /// A member has joined.
    MemberStarted { node: Box<str> },
    /// A member began to count in the quorum.
    MemberPromoted { node: Box<str> },
    /// etcd has one member less. This is what it was.
    MemberRemoved { node: Box<str>, member: Member, healthy: bool },
    /// Another member leads.
    LeaderMoved { node: Box<str> },
    /// A member is of a version; before, no member was newer than this.
    MemberVersion { node: Box<str>, newest: Option<MinorVersion> },
    /// A member complains of something else than before.
    MemberAlarmed { node: Box<str>, alarms: Vec<String> },

    /// An object that should say something could not be read.
    Unreadable { object: String, why: String },
}

/// What became of the Cluster of Cluster API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerChange {
    Came,
    Goes,
    Went,
    /// It has another uid, or other owners.
    Other,
}

/// What a fact is about. Rules say which topics they depend on, and are asked after no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// What is asked of the cluster, and the record of its update.
    Request,
    /// Machines, pools, and the Job that changes them.
    Machines,
    /// Nodes, API servers and kube-proxies.
    Nodes,
    /// Members of etcd.
    Etcd,
    /// Certificates, and who owns them.
    Secrets,
    /// Pods that are to go.
    Departures,
    /// Add-ons, and where their pods are.
    Placement,
    /// What is kept for those who join, and definitions of kinds.
    Configuration,
    /// What no rule asks about.
    Story,
}

impl Fact {
    pub(crate) fn topic(&self) -> Topic {
        match self {
            Self::Requested { .. }
            | Self::DeletionRequested
            | Self::AddonErrors
            | Self::ControlPlaneRequested { .. }
            | Self::UpdateBegan { .. }
            | Self::UpdateResumed { .. }
            | Self::UpdateRenamed { .. }
            | Self::UpdateSucceeded { .. }
            | Self::UpdateFailed { .. }
            | Self::UpdateAborted { .. } => Topic::Request,
            Self::MachineCreated { .. }
            | Self::MachineDeleting { .. }
            | Self::MachineDeleted { .. }
            | Self::MachineChanged
            | Self::MachineRebased { .. }
            | Self::PoolCreated { .. }
            | Self::PoolSwitched { .. }
            | Self::JobCreated { .. }
            | Self::JobAttemptFailed { .. } => Topic::Machines,
            Self::NodeRegistered { .. }
            | Self::NodeReady { .. }
            | Self::NodeNotReady { .. }
            | Self::NodeGone { .. }
            | Self::PoweredOn { .. }
            | Self::PoweredOff { .. }
            | Self::ComponentsChanged => Topic::Nodes,
            Self::PodEvicted { .. } | Self::PodKilled { .. } => Topic::Departures,
            Self::PodPlaced { .. } | Self::AddonApplied { .. } => Topic::Placement,
            Self::KubeadmConfigured { .. } | Self::StoredUnserved { .. } => Topic::Configuration,
            Self::MemberAdded { .. }
            | Self::MemberStarted { .. }
            | Self::MemberPromoted { .. }
            | Self::MemberVersion { .. }
            | Self::MemberAlarmed { .. }
            | Self::LeaderMoved { .. }
            | Self::MemberRemoved { .. } => Topic::Etcd,
            Self::SecretOwned { .. }
            | Self::SecretHandedOver { .. }
            | Self::SecretChanged { .. }
            | Self::SecretGone { .. }
            | Self::ControlPlaneGoes { .. }
            | Self::OwnerChanged { .. } => Topic::Secrets,
            Self::PhaseChanged { .. }
            | Self::VersionReached { .. }
            | Self::ControlPlaneReached { .. }
            | Self::ClusterGone
            | Self::UpdateStage { .. }
            | Self::MachineRunning { .. }
            | Self::MachineWaits { .. }
            | Self::MachineRemediated { .. }
            | Self::PoolGone { .. }
            | Self::JobComplete { .. }
            | Self::JobFailed { .. }
            | Self::KubeadmFailed { .. }
            | Self::NodeCordoned { .. }
            | Self::NodeUncordoned { .. }
            | Self::AddonRemoved { .. }
            | Self::Unreadable { .. } => Topic::Story,
        }
    }
}
