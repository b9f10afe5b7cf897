//! Why there is no release for what was asked, or no way to it.

use windlass_api::version::{KubernetesVersion, MinorVersion, VersionError, VersionPrefix};

use super::listed;
use crate::release::ReleaseState;

/// Why there is no release for what was asked, or why a cluster may not be changed to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The hint is no beginning of a version.
    #[error("spec.distribution.version: {0}")]
    Hint(#[source] VersionError),
    /// The full version is no version.
    #[error("spec.distribution.fullVersion: {0}")]
    FullVersion(#[source] VersionError),
    /// Neither hint nor full version.
    #[error("spec.distribution: neither version nor fullVersion is set; there are {}", listed(.known))]
    Nothing {
        /// The releases that there are.
        known: Vec<KubernetesVersion>,
    },
    /// No release begins like the hint.
    #[error("no release begins with {hint}; there are {}", listed(.known))]
    NoMatch {
        /// The hint.
        hint: VersionPrefix,
        /// The releases that there are.
        known: Vec<KubernetesVersion>,
    },
    /// Releases begin like the hint, and none of them is for hints.
    #[error("no release that begins with {hint} is for new clusters: {}", stated(.passed))]
    PassedOver {
        /// The hint.
        hint: VersionPrefix,
        /// The releases that would have matched, and why they do not.
        passed: Vec<(KubernetesVersion, ReleaseState)>,
    },
    /// No release has the version.
    #[error("there is no release {version}; there are {}", listed(.known))]
    NoRelease {
        /// The version.
        version: KubernetesVersion,
        /// The releases that there are.
        known: Vec<KubernetesVersion>,
    },
    /// The release is there, and no cluster is led to it.
    #[error("release {version} is {state}: clusters that have it keep it, and no other is led to it")]
    NotOffered {
        /// The version.
        version: KubernetesVersion,
        /// Why not.
        state: ReleaseState,
    },
    /// Hint and full version are of different releases.
    #[error(
        "spec.distribution.version {hint} does not match fullVersion {full}; set fullVersion to null to resolve it again{}",
        would_be(.newest.as_ref())
    )]
    HintMismatch {
        /// The hint.
        hint: VersionPrefix,
        /// The full version.
        full: KubernetesVersion,
        /// What the hint would be resolved to.
        newest: Option<KubernetesVersion>,
    },
    /// An older version.
    #[error("{to} is older than {from}: a cluster is never taken back to an older version")]
    Downgrade {
        /// What the cluster has.
        from: KubernetesVersion,
        /// What was asked.
        to: KubernetesVersion,
    },
    /// More than one minor ahead.
    #[error("{to} is {distance} of {from}: go there one minor at a time, {next} next")]
    SkippedMinor {
        /// What the cluster has.
        from: KubernetesVersion,
        /// What was asked.
        to: KubernetesVersion,
        /// How far that is.
        distance: String,
        /// The minor to go to first.
        next: MinorVersion,
    },
    /// Another major.
    #[error("{to} is another major than {from}, and no path leads there")]
    OtherMajor {
        /// What the cluster has.
        from: KubernetesVersion,
        /// What was asked.
        to: KubernetesVersion,
    },
    /// A minor on the way has no release.
    #[error("there is no path from {from} to {to}: no release of {missing}; there are {}", listed(.known))]
    NoPath {
        /// What the cluster has.
        from: KubernetesVersion,
        /// What was asked.
        to: KubernetesVersion,
        /// The minor without a release.
        missing: MinorVersion,
        /// The releases that there are.
        known: Vec<KubernetesVersion>,
    },
    /// Workers are too old for what the control plane is to become.
    #[error(
        "workers of {workers} cannot speak to API servers of {to}, which is {distance}; they have to be replaced first"
    )]
    WorkersTooOld {
        /// What the oldest workers have.
        workers: KubernetesVersion,
        /// What the control plane would have.
        to: KubernetesVersion,
        /// How far that is.
        distance: String,
    },
}

fn stated(passed: &[(KubernetesVersion, ReleaseState)]) -> String {
    listed(passed.iter().map(|(version, state)| format!("{version} is {state}")))
}

fn would_be(newest: Option<&KubernetesVersion>) -> String {
    newest.map(|version| format!(" (to {version})")).unwrap_or_default()
}
