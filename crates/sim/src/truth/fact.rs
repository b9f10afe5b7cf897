//! What a change says, to people and to rules.

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
    OwnerChanged,

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

    /// A machine is asked for.
    MachineCreated { machine: Box<str>, role: Role, version: Box<str> },
    /// A machine is a node.
    MachineRunning { machine: Box<str> },
    /// A machine is to be removed.
    MachineDeleting { machine: Box<str> },
    /// A machine is gone.
    MachineDeleted { machine: Box<str>, role: Role, version: Box<str> },
    /// Another version is asked of a machine that is there already.
    MachineChanged,

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
    /// A certificate is gone.
    SecretGone { secret: Box<str> },

    /// A node registered.
    NodeRegistered { node: Box<str>, kubelet: Box<str> },
    /// A node became ready.
    NodeReady { node: Box<str> },
    /// A node is not ready any more.
    NodeNotReady { node: Box<str> },
    /// A node is gone.
    NodeGone { node: Box<str> },
    /// A machine was switched on or off, or an API server or a kube-proxy came, changed or went.
    ComponentsChanged,

    /// An object of an add-on was applied.
    AddonApplied { addon: Box<str>, object: String, distribution: Option<Box<str>> },
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

    /// An object that should say something could not be read.
    Unreadable { object: String, why: String },
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
    /// What no rule asks about.
    Story,
}

impl Fact {
    pub(crate) fn topic(&self) -> Topic {
        match self {
            Self::Requested { .. }
            | Self::DeletionRequested
            | Self::UpdateBegan { .. }
            | Self::UpdateResumed { .. }
            | Self::UpdateSucceeded { .. }
            | Self::UpdateFailed { .. } => Topic::Request,
            Self::MachineCreated { .. }
            | Self::MachineDeleting { .. }
            | Self::MachineDeleted { .. }
            | Self::MachineChanged
            | Self::PoolCreated { .. }
            | Self::PoolSwitched { .. }
            | Self::JobCreated { .. } => Topic::Machines,
            Self::NodeRegistered { .. }
            | Self::NodeReady { .. }
            | Self::NodeNotReady { .. }
            | Self::NodeGone { .. }
            | Self::ComponentsChanged => Topic::Nodes,
            Self::MemberAdded { .. }
            | Self::MemberStarted { .. }
            | Self::MemberPromoted { .. }
            | Self::MemberRemoved { .. } => Topic::Etcd,
            Self::SecretOwned { .. } | Self::SecretGone { .. } | Self::OwnerChanged => Topic::Secrets,
            Self::PhaseChanged { .. }
            | Self::VersionReached { .. }
            | Self::ClusterGone
            | Self::UpdateStage { .. }
            | Self::MachineRunning { .. }
            | Self::PoolGone { .. }
            | Self::JobAttemptFailed { .. }
            | Self::JobComplete { .. }
            | Self::JobFailed { .. }
            | Self::AddonApplied { .. }
            | Self::AddonRemoved { .. }
            | Self::LeaderMoved { .. }
            | Self::Unreadable { .. } => Topic::Story,
        }
    }
}
