//! From what a person typed to a release, and which changes of release are allowed.
//!
//! Admission asks before anything is stored and the planner asks again before an update begins: the same rules, the same
//! sentences.

use windlass_api::kind::tanzu::Distribution;
use windlass_api::version::{KubernetesVersion, MinorDistance, MinorVersion, VersionError, VersionPrefix};

use crate::release::Release;

/// Something with the version of a release: the release itself, or only its version where that is all that is known.
pub trait Versioned {
    /// The version of the distribution.
    fn version(&self) -> &KubernetesVersion;
}

impl Versioned for Release {
    fn version(&self) -> &KubernetesVersion {
        &self.distribution
    }
}

impl Versioned for KubernetesVersion {
    fn version(&self) -> &KubernetesVersion {
        self
    }
}

impl<T: Versioned> Versioned for &T {
    fn version(&self) -> &KubernetesVersion {
        (*self).version()
    }
}

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
    /// No release has the version.
    #[error("there is no release {version}; there are {}", listed(.known))]
    NoRelease {
        /// The version.
        version: KubernetesVersion,
        /// The releases that there are.
        known: Vec<KubernetesVersion>,
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
}

fn listed(versions: &[KubernetesVersion]) -> String {
    if versions.is_empty() {
        return "none at all".to_owned();
    }
    versions.iter().map(KubernetesVersion::as_str).collect::<Vec<_>>().join(", ")
}

fn would_be(newest: Option<&KubernetesVersion>) -> String {
    newest.map(|version| format!(" (to {version})")).unwrap_or_default()
}

/// The newest release that begins with the hint. A pre-release is chosen only if the hint names one.
pub fn newest<'r, R: Versioned>(hint: &VersionPrefix, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let asks_for_pre_release = hint.as_str().split('+').next().is_some_and(|numbers| numbers.contains('-'));
    releases
        .iter()
        .filter(|release| hint.matches(release.version()))
        .filter(|release| asks_for_pre_release || release.version().pre_release().is_none())
        .max_by(|left, right| left.version().cmp(right.version()))
        .ok_or_else(|| Refusal::NoMatch { hint: hint.clone(), known: known(releases) })
}

/// The release of exactly this version.
pub fn exact<'r, R: Versioned>(version: &KubernetesVersion, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let found = releases.iter().find(|release| release.version() == version);
    found.ok_or_else(|| Refusal::NoRelease { version: version.clone(), known: known(releases) })
}

/// The release that a cluster's `spec.distribution` asks for: the full version if there is one, and else the newest that
/// the hint matches. Whoever stores the answer as `fullVersion` makes it last.
pub fn requested<'r, R: Versioned>(asked: &Distribution, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let hint: Option<VersionPrefix> = asked.version.as_deref().map(str::parse).transpose().map_err(Refusal::Hint)?;
    let full: Option<KubernetesVersion> =
        asked.full_version.as_deref().map(str::parse).transpose().map_err(Refusal::FullVersion)?;
    match (hint, full) {
        (None, None) => Err(Refusal::Nothing { known: known(releases) }),
        (Some(hint), None) => newest(&hint, releases),
        (Some(hint), Some(full)) if !hint.matches(&full) => {
            let newest = newest(&hint, releases).ok().map(|release| release.version().clone());
            Err(Refusal::HintMismatch { hint, full, newest })
        }
        (_, Some(full)) => exact(&full, releases),
    }
}

/// Whether a cluster may go from one version to another in one update: never back, and no minor is skipped.
pub fn change(from: &KubernetesVersion, to: &KubernetesVersion) -> Result<(), Refusal> {
    let ends = || (from.clone(), to.clone());
    match to.distance_from(from) {
        MinorDistance::OtherMajor => {
            let (from, to) = ends();
            Err(Refusal::OtherMajor { from, to })
        }
        _ if to < from => {
            let (from, to) = ends();
            Err(Refusal::Downgrade { from, to })
        }
        distance if distance.is_within(0, 1) => Ok(()),
        distance => {
            let (from, to) = ends();
            let next = from.minor().next().unwrap_or(to.minor());
            Err(Refusal::SkippedMinor { from, to, distance: distance.to_string(), next })
        }
    }
}

/// The releases to go through on the way from one version to another, the last of which is `to`: the newest patch of each
/// minor in between. Empty if there is nothing to do.
pub fn path<'r, R: Versioned>(
    from: &KubernetesVersion,
    to: &KubernetesVersion,
    releases: &'r [R],
) -> Result<Vec<&'r R>, Refusal> {
    if from == to {
        return Ok(Vec::new());
    }
    match change(from, to) {
        Ok(()) | Err(Refusal::SkippedMinor { .. }) => {}
        Err(refusal) => return Err(refusal),
    }
    let last = exact(to, releases)?;
    let mut hops = Vec::new();
    let mut minor = from.minor().next();
    while let Some(between) = minor.filter(|minor| *minor < to.minor()) {
        let hop = newest(&between.into(), releases).map_err(|_| Refusal::NoPath {
            from: from.clone(),
            to: to.clone(),
            missing: between,
            known: known(releases),
        })?;
        hops.push(hop);
        minor = between.next();
    }
    hops.push(last);
    Ok(hops)
}

/// The versions that there are, in order.
fn known<R: Versioned>(releases: &[R]) -> Vec<KubernetesVersion> {
    let mut known: Vec<KubernetesVersion> = releases.iter().map(|release| release.version().clone()).collect();
    known.sort();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases() -> Vec<KubernetesVersion> {
        let texts = [
            "v1.16.8+vmware.1-guest.1",
            "v1.15.5+vmware.1-guest.1",
            "v1.15.10+vmware.1-guest.1",
            "v1.16.7+vmware.1-guest.1",
            "v1.17.4+vmware.1-guest.1",
            "v1.18.0-rc.1+vmware.1-guest.1",
            "v1.19.1+vmware.1-guest.1",
        ];
        texts.map(|text| text.parse().unwrap()).into()
    }

    const KNOWN: &str = "v1.15.5+vmware.1-guest.1, v1.15.10+vmware.1-guest.1, v1.16.7+vmware.1-guest.1, \
                         v1.16.8+vmware.1-guest.1, v1.17.4+vmware.1-guest.1, v1.18.0-rc.1+vmware.1-guest.1, \
                         v1.19.1+vmware.1-guest.1";

    /// What `version` and `fullVersion` are resolved to, or the refusal.
    fn check(version: Option<&str>, full: Option<&str>, answer: &str) {
        let asked = Distribution { version: version.map(str::to_owned), full_version: full.map(str::to_owned) };
        let releases = releases();
        let found = requested(&asked, &releases).map_or_else(|refusal| refusal.to_string(), ToString::to_string);
        assert_eq!(found, answer, "{version:?} {full:?}");
    }

    #[test]
    fn a_hint_is_resolved_to_the_newest_release_that_begins_with_it() {
        check(Some("v1.16"), None, "v1.16.8+vmware.1-guest.1");
        check(Some("v1.16.7"), None, "v1.16.7+vmware.1-guest.1");
        check(Some("v1.15"), None, "v1.15.10+vmware.1-guest.1");
        check(Some("v1"), None, "v1.19.1+vmware.1-guest.1");
        check(Some("v1.15.1"), None, &format!("no release begins with v1.15.1; there are {KNOWN}"));
    }

    #[test]
    fn a_pre_release_is_chosen_only_when_it_is_named() {
        check(Some("v1.18"), None, &format!("no release begins with v1.18; there are {KNOWN}"));
        check(Some("v1.18.0-rc"), None, "v1.18.0-rc.1+vmware.1-guest.1");
        check(None, Some("v1.18.0-rc.1+vmware.1-guest.1"), "v1.18.0-rc.1+vmware.1-guest.1");
    }

    #[test]
    fn a_full_version_stays_what_it_is() {
        check(Some("v1.16"), Some("v1.16.7+vmware.1-guest.1"), "v1.16.7+vmware.1-guest.1");
        check(None, Some("v1.16.9"), &format!("there is no release v1.16.9; there are {KNOWN}"));
        check(
            Some("v1.17"),
            Some("v1.16.7+vmware.1-guest.1"),
            "spec.distribution.version v1.17 does not match fullVersion v1.16.7+vmware.1-guest.1; set fullVersion to null \
             to resolve it again (to v1.17.4+vmware.1-guest.1)",
        );
        check(None, None, &format!("spec.distribution: neither version nor fullVersion is set; there are {KNOWN}"));
    }

    fn check_change(from: &str, to: &str, refusal: &str) {
        let answer = change(&from.parse().unwrap(), &to.parse().unwrap());
        assert_eq!(answer.err().map(|refusal| refusal.to_string()).unwrap_or_default(), refusal, "{from} to {to}");
    }

    #[test]
    fn a_cluster_never_goes_back_and_skips_no_minor() {
        check_change("v1.15.5", "v1.15.5", "");
        check_change("v1.15.5", "v1.15.10", "");
        check_change("v1.15.5", "v1.16.0", "");
        check_change(
            "v1.16.8",
            "v1.16.7",
            "v1.16.7 is older than v1.16.8: a cluster is never taken back to an older version",
        );
        check_change(
            "v1.16.7",
            "v1.15.10",
            "v1.15.10 is older than v1.16.7: a cluster is never taken back to an older version",
        );
        check_change(
            "v1.15.5",
            "v1.17.4",
            "v1.17.4 is 2 minors ahead of v1.15.5: go there one minor at a time, 1.16 next",
        );
        check_change("v1.15.5", "v2.0.0", "v2.0.0 is another major than v1.15.5, and no path leads there");
    }

    fn check_path(from: &str, to: &str, hops: Result<&[&str], &str>) {
        let releases = releases();
        let found = path(&from.parse().unwrap(), &to.parse().unwrap(), &releases)
            .map(|hops| hops.into_iter().map(ToString::to_string).collect::<Vec<_>>())
            .map_err(|refusal| refusal.to_string());
        let wanted = hops.map(|hops| hops.iter().map(ToString::to_string).collect()).map_err(str::to_owned);
        assert_eq!(found, wanted, "{from} to {to}");
    }

    #[test]
    fn a_path_takes_one_minor_at_a_time() {
        let [from, to] = ["v1.15.5+vmware.1-guest.1", "v1.17.4+vmware.1-guest.1"];
        check_path(from, to, Ok(&["v1.16.8+vmware.1-guest.1", to]));
        check_path(from, from, Ok(&[]));
        check_path(from, "v1.16.7+vmware.1-guest.1", Ok(&["v1.16.7+vmware.1-guest.1"]));
        check_path(
            to,
            "v1.19.1+vmware.1-guest.1",
            Err(&format!(
                "there is no path from {to} to v1.19.1+vmware.1-guest.1: no release of 1.18; there are {KNOWN}"
            )),
        );
    }
}
