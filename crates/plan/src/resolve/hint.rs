//! From a version, or the beginning of one, to a release.

use windlass_api::kind::tanzu::Distribution;
use windlass_api::version::{KubernetesVersion, MinorDistance, VersionPrefix};

use super::{Refusal, Versioned, known};

/// The newest release that begins with the hint, and is for hints. A pre-release is chosen only if the hint names one.
pub fn newest<'r, R: Versioned>(hint: &VersionPrefix, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let asks_for_pre_release = hint.as_str().split('+').next().is_some_and(|numbers| numbers.contains('-'));
    let fits = |release: &&R| {
        hint.matches(release.version()) && (asks_for_pre_release || release.version().pre_release().is_none())
    };
    let matching = || releases.iter().filter(fits);
    let offered = matching().filter(|release| release.state().is_for_hints());
    let newest = offered.max_by(|left, right| left.version().cmp(right.version()));
    newest.ok_or_else(|| {
        let mut passed: Vec<_> = matching().map(|release| (release.version().clone(), release.state())).collect();
        passed.sort_by(|(left, _), (right, _)| left.cmp(right));
        if passed.is_empty() {
            Refusal::NoMatch { hint: hint.clone(), known: known(releases) }
        } else {
            Refusal::PassedOver { hint: hint.clone(), passed }
        }
    })
}

/// The release of exactly this version, whatever its state.
pub fn exact<'r, R: Versioned>(version: &KubernetesVersion, releases: &'r [R]) -> Result<&'r R, Refusal> {
    let found = releases.iter().find(|release| release.version() == version);
    found.ok_or_else(|| Refusal::NoRelease { version: version.clone(), known: known(releases) })
}

/// The release that a cluster's `spec.distribution` asks for: the full version if there is one, and else the newest that
/// the hint matches. Whoever stores the answer as `fullVersion` makes it last.
///
/// A cluster that has a release keeps it, whatever became of the release since: `current` is the version that the cluster
/// was resolved to before, if it was.
pub fn requested<'r, R: Versioned>(
    asked: &Distribution,
    current: Option<&KubernetesVersion>,
    releases: &'r [R],
) -> Result<&'r R, Refusal> {
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
        (_, Some(full)) => offered(exact(&full, releases)?, current),
    }
}

/// The release, if a cluster may be led to it, or has it.
pub(super) fn offered<'r, R: Versioned>(release: &'r R, current: Option<&KubernetesVersion>) -> Result<&'r R, Refusal> {
    if current == Some(release.version()) || release.state().is_for_the_asking() {
        return Ok(release);
    }
    Err(Refusal::NotOffered { version: release.version().clone(), state: release.state() })
}

/// Whether something may go from one version to another at all: never back, and never to another major.
pub fn not_back(from: &KubernetesVersion, to: &KubernetesVersion) -> Result<(), Refusal> {
    let (from, to) = (from.clone(), to.clone());
    match to.distance_from(&from) {
        MinorDistance::OtherMajor => Err(Refusal::OtherMajor { from, to }),
        _ if to < from => Err(Refusal::Downgrade { from, to }),
        MinorDistance::Same | MinorDistance::Ahead(_) | MinorDistance::Behind(_) => Ok(()),
    }
}

/// Whether a control plane may go from one version to another in one update: never back, and no minor is skipped.
pub fn change(from: &KubernetesVersion, to: &KubernetesVersion) -> Result<(), Refusal> {
    not_back(from, to)?;
    let distance = to.distance_from(from);
    if distance.is_within(0, 1) {
        return Ok(());
    }
    let next = from.minor().next().unwrap_or(to.minor());
    Err(Refusal::SkippedMinor { from: from.clone(), to: to.clone(), distance: distance.to_string(), next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::ReleaseState;

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

    fn asked(version: Option<&str>, full: Option<&str>) -> Distribution {
        Distribution { version: version.map(str::to_owned), full_version: full.map(str::to_owned) }
    }

    /// What `version` and `fullVersion` are resolved to, or the refusal.
    fn check(version: Option<&str>, full: Option<&str>, answer: &str) {
        let releases = releases();
        let found = requested(&asked(version, full), None, &releases);
        let found = found.map_or_else(|refusal| refusal.to_string(), ToString::to_string);
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

    struct Stated(KubernetesVersion, ReleaseState);

    impl Versioned for Stated {
        fn version(&self) -> &KubernetesVersion {
            &self.0
        }

        fn state(&self) -> ReleaseState {
            self.1
        }
    }

    /// What a cluster at `current` gets of releases that are numbered apart from Kubernetes.
    fn check_stated(version: Option<&str>, full: Option<&str>, current: Option<&str>, answer: &str) {
        let stated = |text: &str, state| Stated(text.parse().unwrap(), state);
        let releases = [
            stated("21.0.0", ReleaseState::Deprecated),
            stated("21.1.0", ReleaseState::Active),
            stated("21.2.0", ReleaseState::Preview),
            stated("22.0.0", ReleaseState::Wip),
        ];
        let current = current.map(|text| text.parse().unwrap());
        let found = requested(&asked(version, full), current.as_ref(), &releases);
        let found = found.map_or_else(|refusal| refusal.to_string(), |release| release.0.to_string());
        assert_eq!(found, answer, "{version:?} {full:?} at {current:?}");
    }

    #[test]
    fn a_hint_leads_to_active_releases_only_and_a_preview_has_to_be_named_in_full() {
        check_stated(Some("v21"), None, None, "v21.1.0");
        check_stated(None, Some("v21.2.0"), None, "v21.2.0");
        check_stated(
            Some("v21.0"),
            None,
            None,
            "no release that begins with v21.0 is for new clusters: v21.0.0 is deprecated",
        );
        let refusal = |state| format!("is {state}: clusters that have it keep it, and no other is led to it");
        check_stated(None, Some("v21.0.0"), None, &format!("release v21.0.0 {}", refusal("deprecated")));
        check_stated(None, Some("v22.0.0"), Some("v21.1.0"), &format!("release v22.0.0 {}", refusal("wip")));
    }

    #[test]
    fn a_cluster_keeps_the_release_that_it_has_whatever_became_of_it() {
        check_stated(None, Some("v21.0.0"), Some("v21.0.0"), "v21.0.0");
        check_stated(Some("v21"), Some("v21.0.0"), Some("v21.0.0"), "v21.0.0");
        check_stated(None, Some("v22.0.0"), Some("v22.0.0"), "v22.0.0");
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
        check_change("v1.24.9+vmware.1", "v1.24.9+vmware.2", "");
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
        check_change("v1.24.9", "v1.25.0", "");
        let older = |to: &str, from: &str| {
            format!("{to} is older than {from}: a cluster is never taken back to an older version")
        };
        check_change(
            "v1.24.9",
            "v1.26.0",
            "v1.26.0 is 2 minors ahead of v1.24.9: go there one minor at a time, 1.25 next",
        );
        check_change("v1.25.0", "v1.24.9", &older("v1.24.9", "v1.25.0"));
        check_change("v1.24.9", "v1.24.8", &older("v1.24.8", "v1.24.9"));
        check_change("v1.24.9+vmware.2", "v1.24.9+vmware.1", &older("v1.24.9+vmware.1", "v1.24.9+vmware.2"));
        check_change("v1.15.5", "v2.0.0", "v2.0.0 is another major than v1.15.5, and no path leads there");
    }
}
