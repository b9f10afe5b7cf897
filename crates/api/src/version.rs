//! Versions of Kubernetes, and of the distributions that are made of it.
//!
//! The same version is spelled in several ways, because `+` is allowed in neither labels nor names nor image tags:
//!
//! | spelling | where | written by |
//! |---|---|---|
//! | `v1.24.9+vmware.1-tkg.1` | fields, the canonical one | `Display` |
//! | `1.24.9+vmware.1-tkg.1` | versions of packages | [`KubernetesVersion::bare`] |
//! | `v1.24.9---vmware.1-tkg.1` | names and labels of releases | [`KubernetesVersion::label`] |
//! | `v1.24.9_vmware.1-tkg.1` | tags of images, the label of a node | [`KubernetesVersion::tag`] |
//! | `21-0-0` | names of release `ConfigMap`s, after the kind | [`KubernetesVersion::dashed`] |
//!
//! `FromStr` reads the first four; the last is not recognised as a version unless it is asked for.
//!
//! **Every version that parses has every spelling, and every spelling leads back to it.** This is why the grammar is
//! narrower than Semantic Versioning: pre-release and build metadata are runs of lower-case letters and digits with single
//! dots or dashes between them. A run of dashes could be a disguised `+`, and an upper-case letter cannot be in a name.
//!
//! Two things that look like versions are not read as such: the version of an add-on (`0.1-63-ge899b1f`), which is only
//! ever compared for equality, and the name of a machine image (`photon-k8sd-v1.16.7-vmware.1-guest.1`), in which build
//! metadata looks like a pre-release.

pub mod facts;
mod minor;
mod order;
mod parse;
mod prefix;

use std::fmt;
use std::str::FromStr;

pub use minor::{MinorDistance, MinorVersion};
pub use parse::{VersionError, VersionProblem};
pub use prefix::VersionPrefix;

use crate::text::travels_as_text;
use parse::{Parts, Wanted};

/// A complete version: `v1.24.9`, `v1.24.9-rc.2`, `v1.16.7+vmware.1-guest.1`.
///
/// The order is total, and equal versions are equal texts. Numbers come first, then the pre-release as in Semantic
/// Versioning (`v1.24.9-rc.2` is before `v1.24.9`), then the build metadata token by token: `tkg.2` is before `tkg.10`.
/// Build metadata has no pre-releases: `+vmware.1-tkg.1` is before `+vmware.1-tkg.1-rc.2`, as it is for the resolver of
/// Tanzu releases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KubernetesVersion {
    /// The canonical spelling. The parts are read from it: it has at most one `+`, and the first `-` before that begins the
    /// pre-release.
    text: Box<str>,
    minor: MinorVersion,
    patch: u64,
}

travels_as_text!(KubernetesVersion, VersionPrefix);

impl KubernetesVersion {
    /// Reads the spelling in the name of a release ConfigMap: `21-0-0`, as [`KubernetesVersion::dashed`] writes it.
    pub fn from_dashed(text: &str) -> Result<Self, VersionError> {
        let complain = |problem| VersionError::new(Wanted::DashedVersion, text, problem);
        Parts::of_dashed(text).and_then(Self::from_parts).map_err(complain)
    }

    /// The canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.minor.major
    }

    /// The first two numbers, which is what skew between components is measured in.
    pub fn minor(&self) -> MinorVersion {
        self.minor
    }

    /// The third number.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// What follows the numbers after a dash: `rc.2`.
    pub fn pre_release(&self) -> Option<&str> {
        self.without_build().split_once('-').map(|(_, pre_release)| pre_release)
    }

    /// What follows a plus: `vmware.1-guest.1`.
    pub fn build(&self) -> Option<&str> {
        self.text.split_once('+').map(|(_, build)| build)
    }

    /// How many minors this version is from another.
    pub fn distance_from(&self, base: &Self) -> MinorDistance {
        self.minor.distance_from(base.minor)
    }

    /// All prefixes that match this version, from the whole down to `v1`.
    pub fn prefixes(&self) -> impl Iterator<Item = VersionPrefix> {
        prefix::of(&self.text)
    }

    /// As in names and labels: `v1.24.9---vmware.1-tkg.1`. It is a DNS subdomain of at most 63 characters.
    pub fn label(&self) -> impl fmt::Display {
        Spelled { text: &self.text, plus: "---" }
    }

    /// As in tags of images and in the label of a node: `v1.24.9_vmware.1-tkg.1`.
    pub fn tag(&self) -> impl fmt::Display {
        Spelled { text: &self.text, plus: "_" }
    }

    /// Without the `v`: `1.24.9+vmware.1-tkg.1`.
    pub fn bare(&self) -> impl fmt::Display {
        Spelled { text: self.text.trim_start_matches('v'), plus: "+" }
    }

    /// As in the name of a release ConfigMap: `21-0-0`, and `21-0-0-rc.1` for a pre-release.
    pub fn dashed(&self) -> impl fmt::Display {
        Dashed(self)
    }

    fn without_build(&self) -> &str {
        self.text.split_once('+').map_or(&*self.text, |(head, _)| head)
    }

    fn from_parts(parts: Parts<'_>) -> Result<Self, VersionProblem> {
        let [Some(major), Some(minor), Some(patch)] = parts.numbers else {
            return Err(VersionProblem::TooFewNumbers);
        };
        Ok(Self { text: parts.canonical()?, minor: MinorVersion { major, minor }, patch })
    }
}

impl FromStr for KubernetesVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let complain = |problem| VersionError::new(Wanted::Version, text, problem);
        Parts::of(text).and_then(Self::from_parts).map_err(complain)
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A canonical text with something else for its plus.
struct Spelled<'a> {
    text: &'a str,
    plus: &'static str,
}

impl fmt::Display for Spelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.split_once('+') {
            None => f.write_str(self.text),
            Some((head, build)) => write!(f, "{head}{}{build}", self.plus),
        }
    }
}

/// Dashes between the three numbers. The rest keeps its dots, or it could not be read back.
struct Dashed<'a>(&'a KubernetesVersion);

impl fmt::Display for Dashed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KubernetesVersion { minor: MinorVersion { major, minor }, patch, .. } = self.0;
        write!(f, "{major}-{minor}-{patch}")?;
        if let Some(pre_release) = self.0.pre_release() {
            write!(f, "-{pre_release}")?;
        }
        if let Some(build) = self.0.build() {
            write!(f, "---{build}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` is read as the version whose spellings are given: canonical, bare, label, tag, dashed.
    fn check(text: &str, spellings: [&str; 5]) {
        let version: KubernetesVersion = text.parse().unwrap();
        let written = [
            version.to_string(),
            version.bare().to_string(),
            version.label().to_string(),
            version.tag().to_string(),
            version.dashed().to_string(),
        ];
        assert_eq!(written, spellings, "{text}");
    }

    #[test]
    fn every_spelling_is_read_and_written() {
        let guest = [
            "v1.16.7+vmware.1-guest.1",
            "1.16.7+vmware.1-guest.1",
            "v1.16.7---vmware.1-guest.1",
            "v1.16.7_vmware.1-guest.1",
            "1-16-7---vmware.1-guest.1",
        ];
        for text in &guest[..4] {
            check(text, guest);
        }
        check("1.16.7_vmware.1-guest.1", guest);
        check("1.16.7---vmware.1-guest.1", guest);
        check(
            "v1.24.9---vmware.1-tkg.1-rc.2",
            [
                "v1.24.9+vmware.1-tkg.1-rc.2",
                "1.24.9+vmware.1-tkg.1-rc.2",
                "v1.24.9---vmware.1-tkg.1-rc.2",
                "v1.24.9_vmware.1-tkg.1-rc.2",
                "1-24-9---vmware.1-tkg.1-rc.2",
            ],
        );
        check(
            "v1.22.0+vmware.1-tkg.3",
            [
                "v1.22.0+vmware.1-tkg.3",
                "1.22.0+vmware.1-tkg.3",
                "v1.22.0---vmware.1-tkg.3",
                "v1.22.0_vmware.1-tkg.3",
                "1-22-0---vmware.1-tkg.3",
            ],
        );
        check("21.0.0", ["v21.0.0", "21.0.0", "v21.0.0", "v21.0.0", "21-0-0"]);
        check(
            "v1.25.0-rc.1+k3s1",
            ["v1.25.0-rc.1+k3s1", "1.25.0-rc.1+k3s1", "v1.25.0-rc.1---k3s1", "v1.25.0-rc.1_k3s1", "1-25-0-rc.1---k3s1"],
        );
    }

    #[test]
    fn the_versions_of_etcd_dns_and_packages_are_read_too() {
        for text in ["v3.3.15_vmware.6", "v1.6.2_vmware.6", "2.6.2+vmware.2-tkg.1-rc.2", "0.41.5+vmware.1-tkg.1-rc.2"] {
            text.parse::<KubernetesVersion>().unwrap();
        }
    }

    #[test]
    fn the_parts_can_be_asked_for() {
        let version: KubernetesVersion = "v1.25.0-rc.1+vmware.1-tkg.2".parse().unwrap();
        assert_eq!(version.major(), 1);
        assert_eq!(version.minor().to_string(), "1.25");
        assert_eq!(version.patch(), 0);
        assert_eq!(version.pre_release(), Some("rc.1"));
        assert_eq!(version.build(), Some("vmware.1-tkg.2"));

        let plain: KubernetesVersion = "v1.25.0+a-b".parse().unwrap();
        assert_eq!(plain.pre_release(), None, "a dash in the build metadata begins no pre-release");
    }

    #[test]
    fn a_config_map_suffix_is_a_version_only_when_asked_for() {
        assert_eq!(KubernetesVersion::from_dashed("21-0-0").unwrap().as_str(), "v21.0.0");
        assert!("21-0-0".parse::<KubernetesVersion>().is_err());
        assert!(KubernetesVersion::from_dashed("21.0.0").is_err());
        assert!(KubernetesVersion::from_dashed("v21-0-0").is_err());
    }

    #[test]
    fn a_version_travels_as_its_canonical_text() {
        let version: KubernetesVersion = serde_json::from_str(r#""1.16.7_vmware.1""#).unwrap();
        assert_eq!(serde_json::to_string(&version).unwrap(), r#""v1.16.7+vmware.1""#);

        let refusal = serde_json::from_str::<KubernetesVersion>(r#""v1.16""#).unwrap_err().to_string();
        assert!(refusal.starts_with(r#""v1.16" is not a version: "#), "{refusal}");
    }
}
