//! The conditions that Windlass writes, and those of others that it waits for.

pub use crate::text::UnknownWord;

use crate::text::words;

words! {
    /// What a condition is about. There are many more in the world; these are the ones that we act on.
    pub enum ConditionType {
        /// The object does what it is for.
        Ready,
        /// The release can be used on this management cluster.
        Compatible,
        /// The release has no faults.
        Valid,
        /// There are newer releases that the cluster could be updated to.
        UpdatesAvailable,
        /// Nothing moves any more, and waiting will not help: a person has to act.
        Stalled,
        /// The release of a cluster can be used on this management cluster. Written on clusters, where `Compatible` is on
        /// releases.
        TanzuKubernetesReleaseCompatible,

        /// Machines would be replaced for no other reason than that Windlass decides something otherwise now; the owner has not
        /// agreed to it.
        UpdatePending,

        /// The objects of a cluster are as the release says that its label names. Written on classic clusters.
        ReleaseApplied,

        /// The image of a cluster's release is there, and says what it said. Written on clusters where it is not so.
        ReleaseAvailable,

        /// A package is being brought in.
        Reconciling,
        /// A package could not be brought in.
        ReconcileFailed,
        /// A package is in.
        ReconcileSucceeded,
        /// An object is being removed. On a Machine its reason is a [`DeletionReason`](crate::reason::DeletionReason).
        Deleting,
        /// A package could not be removed.
        DeleteFailed,

        /// The object has done what it is for long enough to be relied on.
        Available,
        /// Nobody touches the object. Its controller says so when it has let go; until then it may still be writing.
        Paused,
        /// Everything derived from a topology is as the topology says. Its reason is a
        /// [`TopologyReason`](crate::reason::TopologyReason).
        TopologyReconciled,
        /// Machines are being replaced.
        RollingOut,
        /// Machines are being added.
        ScalingUp,
        /// Machines are being taken away.
        ScalingDown,
        /// A machine is being replaced because something was wrong with it: two who replace machines at once lose the quorum.
        Remediating,
        /// All machines are ready.
        MachinesReady,
        /// All machines are as they should be.
        MachinesUpToDate,
        /// A machine is as it should be.
        UpToDate,
        /// The control plane has answered once.
        Initialized,
        /// The Secrets that machines join with are there.
        CertificatesAvailable,
        /// etcd has its quorum and all of its members.
        EtcdClusterHealthy,
        /// API server, controller manager and scheduler run on all machines of the control plane.
        ControlPlaneComponentsHealthy,
        /// The API server of a machine runs. This and the next four are on Machines of a `KubeadmControlPlane`.
        APIServerPodHealthy,
        /// The controller manager of a machine runs.
        ControllerManagerPodHealthy,
        /// The scheduler of a machine runs.
        SchedulerPodHealthy,
        /// The etcd of a machine runs.
        EtcdPodHealthy,
        /// The etcd of a machine is a member that works.
        EtcdMemberHealthy,
        /// The infrastructure of a cluster or a machine is there.
        InfrastructureReady,
        /// What a machine reads when it boots is there.
        BootstrapConfigReady,
        /// A machine's node is ready.
        NodeReady,
        /// A machine's node is ready and has enough of everything.
        NodeHealthy,
        /// No health check has found fault with a machine.
        HealthCheckSucceeded,
        /// A health check has found fault with a machine, and whoever owns it has replaced it.
        OwnerRemediated,
        /// A health check may replace machines.
        RemediationAllowed,
        /// What a class can be told is known.
        VariablesReady,
        /// Cluster API has asked an extension what it can be asked.
        Discovered,

        /// A Job has done its work.
        Complete,
        /// A Job has used up its attempts.
        Failed,

        /// The certificates and keys of a cluster are all there. Written on clusters that have an API.
        SecretsIntact,
        /// A cluster has packages that its release does not have: nobody raises their versions. Written on bootstraps.
        PackagesOutsideRelease,
        /// The packages of an update are as they should be, and well. This one is on bootstraps too, for those of a cluster's
        /// release; it and the next three are on updates.
        PackagesReady,
        /// So is the control plane.
        ControlPlaneReady,
        /// So are the workers.
        WorkersReady,
        /// The update has done what it was begun for.
        Succeeded,
    }
}

words! {
    /// Whether a condition holds.
    pub enum ConditionStatus {
        /// It holds.
        True,
        /// It does not hold.
        False,
        /// It could not be found out.
        Unknown,
    }
}
