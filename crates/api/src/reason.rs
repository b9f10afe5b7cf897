//! Why a condition is as it is, in one word. The same word is in status, Events, CLI and metrics.
//!
//! The reasons of the gates come with the gates.

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
        /// There is no newer release that the cluster could be updated to.
        AlreadyUpToDate,
        /// The release of a cluster cannot be read.
        CannotParseTKR,
    }
}
