//! Which releases a cluster could be updated to: of its own minor and of the next, and newer than what it has.

use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::reason::Reason;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::catalogue::Catalogue;
use super::compatibility::Fact;
use super::query::{self, Query};

/// Whether there is something to update to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updates {
    /// There is: these, oldest first.
    Available(Vec<KubernetesVersion>),
    /// There is not.
    UpToDate,
    /// It cannot be told, because it is not known what the cluster has.
    Unknown {
        /// What is wrong with what says so.
        why: String,
    },
}

/// The releases that a cluster could be updated to, by its own selectors. `current` is the name or the version of the release
/// that it has; what the query says about versions does not matter.
pub fn updates(current: &str, query: &Query, catalogue: &Catalogue) -> Updates {
    let current: KubernetesVersion = match current.parse() {
        Ok(current) => current,
        Err(error) => return Updates::Unknown { why: error.to_string() },
    };
    let minors = [Some(current.minor()), current.minor().next()].into_iter().flatten();
    let mut newer: Vec<KubernetesVersion> = minors
        .flat_map(|minor| query::all(&query.with_version(&VersionPrefix::from(minor)), catalogue))
        .map(|release| release.version.clone())
        .filter(|version| *version > current)
        .collect();
    newer.sort();
    if newer.is_empty() { Updates::UpToDate } else { Updates::Available(newer) }
}

impl Updates {
    /// The condition that says so on a cluster.
    pub fn condition(&self) -> Fact {
        let (status, reason, message) = match self {
            Self::Available(versions) => {
                let texts: Vec<&str> = versions.iter().map(KubernetesVersion::as_str).collect();
                (ConditionStatus::True, None, format!("[{}]", texts.join(" ")))
            }
            Self::UpToDate => (ConditionStatus::False, Some(Reason::AlreadyUpToDate), String::new()),
            Self::Unknown { why } => (ConditionStatus::Unknown, Some(Reason::CannotParseTKR), why.clone()),
        };
        Fact { type_: ConditionType::UpdatesAvailable, status, reason, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::query::tests::{catalogue, query, release};

    /// The condition of a cluster that has a release, with a selector of images.
    fn check(current: &str, os_images: &str, wanted: &str) {
        let catalogue = catalogue([
            release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]),
            release("v1.24.9+vmware.1-tkg.2", &[], &["ubuntu"]),
            release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu", "photon"]),
            release("v1.25.7+vmware.1-tkg.1", &[], &["ubuntu"]),
            release("v1.25.8+vmware.1-tkg.1", &["incompatible"], &["ubuntu"]),
            release("v1.26.1+vmware.1-tkg.1", &[], &["ubuntu"]),
        ]);
        let fact = updates(current, &query("v1", os_images, &[os_images]), &catalogue).condition();
        let reason = fact.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
        let found = format!("{} {}{reason} {}", fact.type_, fact.status, fact.message);
        assert_eq!(found.trim_end(), wanted, "{current} {os_images}");
    }

    #[test]
    fn updates_are_newer_and_at_most_one_minor_ahead() {
        check(
            "v1.24.9---vmware.1-tkg.1",
            "os-name=ubuntu",
            "UpdatesAvailable True [v1.24.9+vmware.1-tkg.2 v1.24.10+vmware.1-tkg.1 v1.25.7+vmware.1-tkg.1]",
        );
        check("v1.24.10+vmware.1-tkg.1", "os-name=ubuntu", "UpdatesAvailable True [v1.25.7+vmware.1-tkg.1]");
        check("v1.24.9+vmware.1-tkg.1", "os-name=photon", "UpdatesAvailable True [v1.24.10+vmware.1-tkg.1]");
        check("v1.26.1+vmware.1-tkg.1", "os-name=ubuntu", "UpdatesAvailable False AlreadyUpToDate");
    }

    #[test]
    fn what_could_not_be_resolved_is_not_offered() {
        check("v1.24.9+vmware.1-tkg.1", "", "UpdatesAvailable True [v1.24.9+vmware.1-tkg.2 v1.25.7+vmware.1-tkg.1]");
    }

    #[test]
    fn without_a_release_nothing_can_be_told() {
        let unknown = updates("my-own", &Query::default(), &Catalogue::default()).condition();
        assert_eq!((unknown.status, unknown.reason), (ConditionStatus::Unknown, Some(Reason::CannotParseTKR)));
        assert!(unknown.message.starts_with("\"my-own\" is not a version"), "{}", unknown.message);
    }
}
