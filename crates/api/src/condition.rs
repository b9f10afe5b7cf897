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
        /// A package is being brought in.
        Reconciling,
        /// A package could not be brought in.
        ReconcileFailed,
        /// A package is in.
        ReconcileSucceeded,
        /// A package is being removed.
        Deleting,
        /// A package could not be removed.
        DeleteFailed,
        /// A Job has done its work.
        Complete,
        /// A Job has used up its attempts.
        Failed,
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
