//! Packages: what they are called, and what a cluster's objects for them are called.
//!
//! A `Package` is named by its reference name, a dot and its version: `antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced`.
//! Both parts have dots, so the text alone does not say where one ends; [`PackageName`] does.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::child::{fitted, looks_hashed};
use super::rule::Rule;
use super::{ClusterName, NameError, NameLimit, ObjectName};
use crate::text::{quoted, travels_as_text};
use crate::version::{KubernetesVersion, VersionError};

/// How many words with dots between them a reference name has at least: Carvel's rule.
const REF_NAME_WORDS_MIN: usize = 3;

/// The name that all versions of a package share: `antrea.tanzu.vmware.com`.
///
/// It does not itself end in a version: otherwise two packages could have one name between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageRefName(Box<str>);

impl PackageRefName {
    /// The name, if it is one.
    pub fn new(text: &str) -> Result<Self, PackageNameError> {
        Rule::Subdomain.check("the name of a package", text)?;
        if text.split('.').count() < REF_NAME_WORDS_MIN {
            return Err(PackageNameError::TooFewWords { quoted: quoted(text) });
        }
        if split(text).is_some() {
            return Err(PackageNameError::EndsInVersion { quoted: quoted(text) });
        }
        Ok(Self(text.into()))
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What people call the package: the first of the words.
    pub fn short(&self) -> &str {
        self.0.split_once('.').map_or(&*self.0, |(short, _)| short)
    }
}

impl FromStr for PackageRefName {
    type Err = PackageNameError;

    fn from_str(text: &str) -> Result<Self, PackageNameError> {
        Self::new(text)
    }
}

impl fmt::Display for PackageRefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One version of a package, as its `Package` object is named.
///
/// The order is by reference name, then by version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageName {
    /// The name that all versions share.
    pub ref_name: PackageRefName,
    /// The version, which is written without a `v`.
    pub version: KubernetesVersion,
}

impl PackageName {
    /// As in the label of a Secret with its values: `---` for `+`, and no longer than a label may be. What is cut off is lost:
    /// people search by it, and nobody is told apart by it.
    pub fn label(&self) -> String {
        let text = self.to_string().replace('+', "---");
        let kept: String = text.chars().take(NameLimit::LabelValue.max_bytes()).collect();
        kept.trim_end_matches(['.', '-']).to_owned()
    }
}

impl FromStr for PackageName {
    type Err = PackageNameError;

    fn from_str(text: &str) -> Result<Self, PackageNameError> {
        let (ref_name, version) = split(text).ok_or_else(|| match unsplit(text) {
            Some(source) => PackageNameError::Version { quoted: quoted(text), source },
            None => PackageNameError::NoVersion { quoted: quoted(text) },
        })?;
        Ok(Self { ref_name: PackageRefName::new(ref_name)?, version })
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ref_name, self.version.bare())
    }
}

travels_as_text!(PackageRefName, PackageName);

/// A text that does not name a package.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackageNameError {
    /// Some of it cannot be in any name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// `antrea.com`
    #[error(
        "{quoted} is not the name of a package: it has fewer than {REF_NAME_WORDS_MIN} words; accepted is for example antrea.tanzu.vmware.com"
    )]
    TooFewWords {
        /// The text.
        quoted: String,
    },
    /// `antrea.tanzu.vmware.com.1.7.2`, where a version has no place.
    #[error(
        "{quoted} is not the name of a package: it ends in a version; accepted is for example antrea.tanzu.vmware.com"
    )]
    EndsInVersion {
        /// The text.
        quoted: String,
    },
    /// `antrea.tanzu.vmware.com`, where a version should be.
    #[error(
        "{quoted} does not name one version of a package; accepted is for example antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1"
    )]
    NoVersion {
        /// The text.
        quoted: String,
    },
    /// `antrea.tanzu.vmware.com.1.7`
    #[error(
        "{quoted} does not name one version of a package; accepted is for example antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1"
    )]
    Version {
        /// The text.
        quoted: String,
        /// What is wrong with its end.
        #[source]
        source: VersionError,
    },
}

/// The reference name and the version in the name of a package: the first dot that has enough words before it, and a version
/// as it is written in names behind it.
///
/// There is never a second one: three numbers are not the end of longer ones, and a pre-release with three numbers at its end
/// belongs to the version that it follows.
fn split(text: &str) -> Option<(&str, KubernetesVersion)> {
    ends(text).find_map(|(ref_name, end)| {
        let version: KubernetesVersion = end.parse().ok()?;
        let as_in_names = version.bare().to_string() == end;
        as_in_names.then_some((ref_name, version))
    })
}

/// Why the first that could be a version is none.
fn unsplit(text: &str) -> Option<VersionError> {
    ends(text).next().and_then(|(_, end)| end.parse::<KubernetesVersion>().err())
}

/// Every place where a version could begin: before it the reference name, behind it a digit.
fn ends(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices('.').skip(REF_NAME_WORDS_MIN - 1).filter_map(|(dot, _)| {
        let (ref_name, end) = (text.get(..dot)?, text.get(dot + 1..)?);
        end.starts_with(|first: char| first.is_ascii_digit()).then_some((ref_name, end))
    })
}

/// What a cluster has for each of its packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackagePart {
    /// The `PackageInstall`: in the workload cluster, but for that of kapp-controller, which is in the cluster's namespace of
    /// the management cluster.
    Install,
    /// The Secret with the values as the package reads them; it is in both clusters.
    DataValues,
    /// The copy of what the values are made of: a Secret, or an object of a kind of its own; in the cluster's namespace.
    Values,
}

/// An object that a cluster has for one of its packages.
///
/// The names are the ones that the tools of Tanzu look for: `my-tkc-antrea`, `my-tkc-antrea-data-values`,
/// `my-tkc-antrea-package`. In one namespace with several clusters they are not enough to tell objects apart: the cluster `a`
/// with a package `b-c` and the cluster `a-b` with a package `c` would share theirs. There a name is plain only if it reads
/// back, as for every child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageChild<'a> {
    /// The cluster.
    pub cluster: &'a ClusterName,
    /// The package.
    pub package: &'a PackageRefName,
    /// What it is of the package.
    pub part: PackagePart,
}

impl PackageChild<'_> {
    /// The name.
    pub fn name(&self) -> ObjectName {
        let (cluster, short) = (self.cluster.as_str(), self.package.short());
        let stem = format!("{cluster}-{short}");
        let (suffix, tag) = match self.part {
            // A workload cluster has those of no other, and the only one beside those of other clusters is kapp-controller's.
            PackagePart::Install => return fitted(stem, true, NameLimit::Object, &["package", cluster, short]),
            PackagePart::DataValues => ("-data-values", "package data values"),
            PackagePart::Values => ("-package", "package values"),
        };
        let reads_back = read_stem(&stem) == Some((cluster, short)) && !looks_hashed(&stem);
        fitted(format!("{stem}{suffix}"), reads_back, NameLimit::Object, &[tag, cluster, short])
    }
}

/// The packages with a dash in their short names that come with releases. A name that ends in one of these is of that package;
/// any other ends in a package without a dash.
const DASHED: [&str; 17] = [
    "ako-operator",
    "aws-ebs-csi-driver",
    "azuredisk-csi-driver",
    "azurefile-csi-driver",
    "external-csi-snapshot-webhook",
    "gateway-api",
    "guest-cluster-auth-service",
    "kapp-controller",
    "kubevip-cloud-provider",
    "load-balancer-and-ingress-service",
    "metrics-server",
    "oracle-cpi",
    "secretgen-controller",
    "tkg-storageclass",
    "vsphere-cpi",
    "vsphere-csi",
    "vsphere-pv-csi",
];

/// The cluster and the package whose objects' names begin so.
fn read_stem(stem: &str) -> Option<(&str, &str)> {
    let dashed = DASHED.iter().filter_map(|short| Some((stem.strip_suffix(short)?.strip_suffix('-')?, *short)));
    dashed.max_by_key(|(_, short)| short.len()).or_else(|| stem.rsplit_once('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ref_name: &str, short: &str, version: &str) {
        let name: PackageName = text.parse().unwrap();
        assert_eq!(name.ref_name.as_str(), ref_name, "{text}");
        assert_eq!(name.ref_name.short(), short, "{text}");
        assert_eq!(name.version.bare().to_string(), version, "{text}");
        assert_eq!(name.to_string(), text);
    }

    #[test]
    fn the_name_of_a_package_is_read_as_its_two_parts() {
        check(
            "antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced",
            "antrea.tanzu.vmware.com",
            "antrea",
            "1.7.2+vmware.1-tkg.1-advanced",
        );
        check(
            "kapp-controller.tanzu.vmware.com.0.41.5+vmware.1-tkg.1",
            "kapp-controller.tanzu.vmware.com",
            "kapp-controller",
            "0.41.5+vmware.1-tkg.1",
        );
        check("3scale.example.2.io.1.0.0-rc.1.2.3", "3scale.example.2.io", "3scale", "1.0.0-rc.1.2.3");
        check("a.b.c.7.1.2.3", "a.b.c.7", "a", "1.2.3");
        check("a.1.2.3.4.5", "a.1.2", "a", "3.4.5");
    }

    fn refused(text: &str, complaint: &str) {
        assert_eq!(text.parse::<PackageName>().unwrap_err().to_string(), complaint);
    }

    #[test]
    fn a_text_that_names_no_version_of_a_package_is_refused_with_the_reason() {
        let accepted = "does not name one version of a package; accepted is for example antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1";
        for text in ["", "antrea", "antrea.tanzu.vmware.com", "antrea.tanzu.vmware.com.v1.7.2", "a.1.7.2"] {
            refused(text, &format!("{text:?} {accepted}"));
        }
        let short: PackageNameError = "antrea.tanzu.vmware.com.1.7".parse::<PackageName>().unwrap_err();
        let cause = std::error::Error::source(&short).unwrap().to_string();
        assert!(cause.contains("it needs three numbers"), "{cause}");
        refused("a.b.c.1.7.2_vmware.1", &format!("\"a.b.c.1.7.2_vmware.1\" {accepted}"));
        assert!("A.b.c.1.7.2".parse::<PackageName>().unwrap_err().to_string().contains("'A' cannot be in it"));
    }

    #[test]
    fn a_reference_name_has_three_words_and_no_version() {
        let complaint = |text: &str| PackageRefName::new(text).unwrap_err().to_string();
        assert!(complaint("antrea.com").contains("fewer than 3 words"));
        assert!(complaint("antrea.tanzu.vmware.com.1.7.2-rc").contains("it ends in a version"));
        assert!(complaint("antrea.tanzu.vmware.com+1").contains("'+' cannot be in it"));
    }

    #[test]
    fn the_label_of_a_package_fits() {
        let label = |text: &str| text.parse::<PackageName>().unwrap().label();
        assert_eq!(label("antrea.tanzu.vmware.com.1.7.2+vmware.1"), "antrea.tanzu.vmware.com.1.7.2---vmware.1");
        assert_eq!(
            label("load-balancer-and-ingress-service.tanzu.vmware.com.1.12.1+vmware.1-tkg.1"),
            "load-balancer-and-ingress-service.tanzu.vmware.com.1.12.1---vmw"
        );
        assert_eq!(
            label("load-balancer-and-ingress-service.tanzu.vmware.com.1.123.1+vmware.1-tkg.1"),
            "load-balancer-and-ingress-service.tanzu.vmware.com.1.123.1---vm"
        );
    }

    fn child(cluster: &str, package: &str, part: PackagePart) -> String {
        let (cluster, package) = (ClusterName::new(cluster).unwrap(), PackageRefName::new(package).unwrap());
        PackageChild { cluster: &cluster, package: &package, part }.name().to_string()
    }

    #[test]
    fn objects_for_packages_have_the_names_that_others_look_for() {
        for (package, short) in [
            ("antrea.tanzu.vmware.com", "antrea"),
            ("kapp-controller.tanzu.vmware.com", "kapp-controller"),
            ("vsphere-cpi.tanzu.vmware.com", "vsphere-cpi"),
        ] {
            assert_eq!(child("my-wl", package, PackagePart::Install), format!("my-wl-{short}"));
            assert_eq!(child("my-wl", package, PackagePart::DataValues), format!("my-wl-{short}-data-values"));
            assert_eq!(child("my-wl", package, PackagePart::Values), format!("my-wl-{short}-package"));
        }
        assert_eq!(child("wl", "my-own.example.com", PackagePart::Install), "wl-my-own");
    }

    #[test]
    fn clusters_of_one_namespace_do_not_share_values() {
        let ours = child("wl", "kapp-controller.tanzu.vmware.com", PackagePart::DataValues);
        let theirs = child("wl-kapp", "controller.tanzu.vmware.com", PackagePart::DataValues);
        assert_eq!(ours, "wl-kapp-controller-data-values");
        assert!(theirs.starts_with("wl-kapp-controller-data-values-x"), "{theirs}");
    }
}
