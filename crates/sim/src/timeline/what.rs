//! The words for what happens.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What sort of thing happened, in one word for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum What {
    /// A cluster is asked to be of a distribution.
    ClusterRequested,
    /// A cluster is in another phase.
    ClusterPhase,
    /// All machines of a cluster have another distribution.
    ClusterVersion,
    /// A cluster is to be removed.
    ClusterDeleting,
    /// A cluster is gone.
    ClusterGone,
    /// The Cluster of Cluster API is there.
    ClusterCreated,
    /// A control plane that Cluster API rolls is asked to be of a version.
    ControlPlaneRequested,
    /// All machines of a control plane that Cluster API rolls have another version.
    ControlPlaneVersion,
    /// A control plane that Cluster API rolls is to be removed.
    ControlPlaneDeleting,
    /// A control plane that Cluster API rolls is gone.
    ControlPlaneGone,
    /// An update was recorded.
    UpdateBegan,
    /// An update works on another stage.
    UpdateStage,
    /// An update goes on that had ended.
    UpdateResumed,
    /// An update is done.
    UpdateSucceeded,
    /// An update gave up.
    UpdateFailed,
    /// An update was given up.
    UpdateAborted,
    /// A machine is asked for.
    MachineCreated,
    /// A machine is a node.
    MachineRunning,
    /// A machine is to be removed.
    MachineDeleting,
    /// A machine that goes waits for something.
    MachineWaits,
    /// A machine is to be replaced, as it is not well.
    MachineRemediated,
    /// A machine is gone.
    MachineDeleted,
    /// A pool is asked for.
    PoolCreated,
    /// A pool is to be made of other machines.
    PoolSwitched,
    /// A pool is gone.
    PoolGone,
    /// A Job is to update the control plane.
    JobCreated,
    /// An attempt of a Job failed.
    JobAttemptFailed,
    /// A Job did what it was for.
    JobComplete,
    /// A Job gave up.
    JobFailed,
    /// A certificate has other owners than before.
    SecretOwned,
    /// A certificate is gone.
    SecretGone,
    /// kubeadm has given up on a machine.
    KubeadmFailed,
    /// A node registered.
    NodeRegistered,
    /// A node became ready.
    NodeReady,
    /// A node is not ready any more.
    NodeNotReady,
    /// A node takes no new pods.
    NodeCordoned,
    /// A node takes new pods again.
    NodeUncordoned,
    /// A node is gone.
    NodeGone,
    /// A pod was evicted.
    PodEvicted,
    /// An object of an add-on was applied.
    AddonApplied,
    /// An object of an add-on is gone.
    AddonRemoved,
    /// etcd has one member more.
    MemberAdded,
    /// A member of etcd has joined.
    MemberStarted,
    /// A member of etcd began to count in the quorum.
    MemberPromoted,
    /// etcd has one member less.
    MemberRemoved,
    /// Another member of etcd leads.
    LeaderMoved,
    /// A member of etcd raises an alarm, or no longer does.
    MemberAlarmed,
    /// An object that should say something could not be read.
    Unreadable,
    /// Something went wrong on purpose, or somebody did something.
    Fault,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
