//! The beginning of a version: what a person types to mean "the newest that begins like this".

use std::fmt;
use std::iter::successors;
use std::str::FromStr;

use super::parse::{Parts, VersionError, Wanted};
use super::{KubernetesVersion, MinorVersion, Spelled};

/// A version or the beginning of one, cut where a token ends: `v1`, `v1.15`, `v1.15.1`, `v1.15.1+vmware`, …
///
/// As a hint it stands for every version that it [matches](Self::matches); as a label on a release it makes such a
/// hint a question that the API server can answer.
///
/// A pre-release matches the hint that its release would match: `v1.25` matches `v1.25.0-rc.1`. Whether it may be chosen
/// is decided by whoever chooses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionPrefix {
    /// In the canonical spelling, so that it is a prefix of the text of a version.
    text: Box<str>,
}

impl VersionPrefix {
    /// Whether the version begins with this prefix, and with the whole of its last token: `v1.15.1` does not match
    /// `v1.15.10`.
    pub fn matches(&self, version: &KubernetesVersion) -> bool {
        let rest = version.as_str().strip_prefix(self.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    }

    /// Whether a version could begin with both: one of them is the beginning of the other.
    pub fn agrees(&self, other: &Self) -> bool {
        let begins = |with: &Self, whole: &Self| {
            let rest = whole.as_str().strip_prefix(with.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        begins(self, other) || begins(other, self)
    }

    /// Whether this is the whole of the version, and not only its beginning.
    pub fn is_all_of(&self, version: &KubernetesVersion) -> bool {
        self.as_str() == version.as_str()
    }

    /// The canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// As the key of a label on a release: `v1.24.9---vmware`.
    pub fn label(&self) -> impl fmt::Display {
        Spelled { text: &self.text, plus: "---" }
    }
}

impl FromStr for VersionPrefix {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let complain = |problem| VersionError::new(Wanted::Prefix, text, problem);
        let text = Parts::of(text).and_then(|parts| parts.canonical()).map_err(complain)?;
        Ok(Self { text })
    }
}

impl From<KubernetesVersion> for VersionPrefix {
    fn from(version: KubernetesVersion) -> Self {
        Self { text: version.text }
    }
}

impl From<MinorVersion> for VersionPrefix {
    fn from(minor: MinorVersion) -> Self {
        Self { text: format!("v{minor}").into_boxed_str() }
    }
}

impl fmt::Display for VersionPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// All prefixes of a canonical text, from the whole down to its first token.
pub(super) fn of(text: &str) -> impl Iterator<Item = VersionPrefix> {
    successors(Some(text), |text| text.rsplit_once(['.', '-', '+']).map(|(shorter, _)| shorter))
        .map(|text| VersionPrefix { text: text.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hint: &str, version: &str, matches: bool) {
        let prefix: VersionPrefix = hint.parse().unwrap();
        assert_eq!(prefix.matches(&version.parse().unwrap()), matches, "{hint} and {version}");
    }

    #[test]
    fn two_hints_agree_where_one_begins_with_the_whole_of_the_other() {
        let check = |one: &str, other: &str, agree: bool| {
            let (one, other): (VersionPrefix, VersionPrefix) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!((one.agrees(&other), other.agrees(&one)), (agree, agree), "{one} {other}");
        };
        check("v1.24", "v1.24.9+vmware.1", true);
        check("v1.24.9---vmware.1-tkg.1-rc.2", "v1.24.9+vmware.1", true);
        check("v1.24.9", "v1.24.9", true);
        check("v1.2", "v1.24", false);
        check("v1.24.9+vmware.1", "v1.24.9+vmware.10", false);
    }

    #[test]
    fn a_hint_matches_at_the_end_of_a_token_only() {
        check("v1.15.1", "v1.15.1+vmware.1-tkg.1", true);
        check("v1.15.1", "v1.15.10+vmware.1-tkg.1", false);
        check("v1.15", "v1.15.10", true);
        check("v1.15", "v1.150.0", false);
        check("v1.1", "v1.15.1", false);
        check("v1", "v1.15.1", true);
        check("v1", "v10.15.1", false);
        check("1.15", "v1.15.1", true);
        check("v1.16.7", "v1.16.7+vmware.1-guest.1", true);
        check("v1.16.7+vmware.1-guest.1", "v1.16.7+vmware.1-guest.1", true);
        check("v1.16.7---vmware.1", "v1.16.7+vmware.1-guest.1", true);
        check("v1.16.7_vmware.1", "v1.16.7+vmware.1-guest.1", true);
        check("v1.16.7+vmware.1", "v1.16.7+vmware.10", false);
        check("v1.16.7+vm", "v1.16.7+vmware.1", false);
        check("v1.16.7+vmware.1-guest.1", "v1.16.7", false);
        check("v1.25", "v1.25.0-rc.1", true);
        check("v1.25.0-rc", "v1.25.0-rc.1", true);
        check("v1.25.0-rc", "v1.25.0", false);
    }

    #[test]
    fn a_release_has_one_label_for_each_prefix_of_its_version() {
        let version: KubernetesVersion = "v1.17.9---vmware.2-tkg.3".parse().unwrap();
        let labels: Vec<String> = version.prefixes().map(|prefix| prefix.label().to_string()).collect();
        assert_eq!(
            labels,
            [
                "v1.17.9---vmware.2-tkg.3",
                "v1.17.9---vmware.2-tkg",
                "v1.17.9---vmware.2",
                "v1.17.9---vmware",
                "v1.17.9",
                "v1.17",
                "v1",
            ]
        );
    }

    #[test]
    fn the_tokens_of_build_metadata_are_what_is_between_dots_and_dashes() {
        let version: KubernetesVersion = "v1.24.9+vmware.1-tkg.2.ab123fed".parse().unwrap();
        let prefixes: Vec<String> = version.prefixes().map(|prefix| prefix.to_string()).collect();
        let metadata = ["vmware.1-tkg.2.ab123fed", "vmware.1-tkg.2", "vmware.1-tkg", "vmware.1", "vmware"];
        let wanted = metadata.map(|metadata| format!("v1.24.9+{metadata}"));
        assert_eq!(prefixes[..wanted.len()], wanted);
    }

    #[test]
    fn the_label_of_a_short_hint_has_its_v() {
        assert_eq!("1.24".parse::<VersionPrefix>().unwrap().label().to_string(), "v1.24");
        assert_eq!(VersionPrefix::from(MinorVersion { major: 1, minor: 24 }).to_string(), "v1.24");
    }
}
