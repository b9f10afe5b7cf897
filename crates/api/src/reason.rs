//! Why a condition is as it is, in one word. The same word is in status, Events, CLI and metrics.
//!
//! The reasons of the gates come with the gates. Those of others that we read are enums of their own, one for each condition:
//! the same word means different things under different conditions.

use crate::text::words;

words! {
    /// Why a condition is as it is.
    pub enum Reason {
        /// The release is not supported by this management cluster.
        Incompatible,
        /// The release has faults.
        Invalid,
        /// Somebody said that the release is not to be used any more.
        Deactivated,
        /// What says which releases this management cluster supports cannot be read.
        MetadataMalformed,
        /// There is no newer release that the cluster could be updated to.
        AlreadyUpToDate,
        /// The release of a cluster cannot be read.
        CannotParseTKR,
    }
}

words! {
    /// Why everything derived from a topology is, or is not, as the topology says. Written by Cluster API.
    pub enum TopologyReason {
        /// It is.
        ReconcileSucceeded,
        /// Something could not be written.
        ReconcileFailed,
        /// The cluster is being made.
        ClusterCreating,
        /// The cluster is on its way to another version.
        ClusterUpgrading,
        /// Pools wait, as somebody asked for.
        MachineDeploymentsUpgradeDeferred,
        /// Pools of the other sort wait, as somebody asked for.
        MachinePoolsUpgradeDeferred,
        /// The class has faults, or has not been looked at yet.
        ClusterClassNotReconciled,
        /// The cluster is being removed.
        Deleting,
        /// Nobody touches the cluster.
        Paused,
    }
}

words! {
    /// How far the removal of a Machine is, in the order in which it happens. Written by Cluster API.
    pub enum DeletionReason {
        /// Somebody holds it before its pods are evicted.
        WaitingForPreDrainHook,
        /// Its pods are being evicted.
        DrainingNode,
        /// Its volumes are being detached.
        WaitingForVolumeDetach,
        /// Somebody holds it before it is switched off.
        WaitingForPreTerminateHook,
        /// It is being switched off.
        WaitingForInfrastructureDeletion,
        /// What it read when it booted is being removed.
        WaitingForBootstrapDeletion,
        /// Its node is being removed.
        DeletingNode,
        /// All is done.
        DeletionCompleted,
    }
}

words! {
    /// Whether a controller has let go of an object. Written by Cluster API.
    pub enum PausedReason {
        /// It has.
        Paused,
        /// It has not.
        NotPaused,
    }
}
