//! Names: checked once, where they come in, and types from then on.
//!
//! The rules are those of Kubernetes (DNS-1123). Where a name is also the value of a label, its type has the shorter limit,
//! so that no later step finds out that it does not fit.

mod child;
mod hash;
mod package;
mod rule;
mod update_id;

use std::fmt;
use std::str::FromStr;

pub use child::{Child, ClusterSecret, NameLimit, Role, kept_release_name, replacement_name};
pub use package::{PackageChild, PackageName, PackageNameError, PackagePart, PackageRefName};
pub use rule::{NameError, NameProblem};
pub use update_id::{UpdateId, UpdateIdError};

use crate::text::travels_as_text;
use crate::version::{KubernetesVersion, VersionError};
use rule::Rule;

macro_rules! names {
    ($($(#[$attribute:meta])* $name:ident = $what:literal, $rule:expr;)+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The name, if it is one.
            pub fn new(text: &str) -> Result<Self, NameError> {
                $rule.check($what, text)?;
                Ok(Self(text.into()))
            }

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        travels_as_text!($name);
    )+};
}

names! {
    /// A workload cluster. It is the value of the label `cluster.x-k8s.io/cluster-name` and the beginning of most names
    /// that belong to the cluster.
    ClusterName = "a cluster name", Rule::Label;
    /// A namespace.
    Namespace = "a namespace", Rule::Label;
    /// A pool of workers.
    PoolName = "a pool name", Rule::Label;
    /// An add-on, as its annotation on a machine image ends: `pvcsi`.
    AddonName = "the name of an add-on", Rule::Label;
    /// A release as an object: a `TanzuKubernetesRelease` (`v1.24.9---vmware.1-tkg.1`), a `VirtualMachineImage`
    /// (`photon-k8sd-v1.16.7-vmware.1-guest.1`) or a set of `ConfigMap`s. Clusters carry it as a label.
    ReleaseName = "a release name", Rule::LabelSubdomain;
    /// An `OSImage`. Clusters and machines carry it as a label.
    OsImageName = "the name of an OS image", Rule::LabelSubdomain;
    /// A `ClusterClass`.
    ClusterClassName = "the name of a class of clusters", Rule::Subdomain;
    /// A Machine of Cluster API, with its infrastructure machine and its bootstrap configuration.
    MachineName = "a machine name", Rule::Subdomain;
    /// A Node of a workload cluster.
    NodeName = "a node name", Rule::Subdomain;
    /// A `VirtualMachineImage`.
    ImageName = "an image name", Rule::Subdomain;
    /// A `VirtualMachineClass`: how much of everything a machine has.
    MachineClassName = "the name of a machine class", Rule::Subdomain;
    /// A `StorageClass`.
    StorageClassName = "the name of a storage class", Rule::Subdomain;
    /// Any object whose kind has no type of name of its own.
    ObjectName = "the name of an object", Rule::Subdomain;
    /// What tells an object from an earlier one of the same name. Given by the API server, and not ours to interpret.
    Uid = "a uid", Rule::Opaque;
}

impl ReleaseName {
    /// The version of a release that is named after it, as a `TanzuKubernetesRelease` is: `v1.24.9---vmware.1-tkg.1`.
    pub fn version(&self) -> Result<KubernetesVersion, VersionError> {
        self.0.parse()
    }
}

impl From<&KubernetesVersion> for ReleaseName {
    /// The name of the release of a version. The label form of a version is always such a name.
    fn from(version: &KubernetesVersion) -> Self {
        Self(version.label().to_string().into_boxed_str())
    }
}

/// Every kind of name is one of an object.
macro_rules! object_names {
    ($($name:ident),+) => {$(
        impl From<$name> for ObjectName {
            fn from(name: $name) -> Self {
                Self(name.0)
            }
        }
    )+};
}
object_names!(
    ClusterName,
    Namespace,
    PoolName,
    ReleaseName,
    OsImageName,
    ClusterClassName,
    MachineName,
    NodeName,
    ImageName,
    MachineClassName,
    StorageClassName
);

/// An object within its namespace: `default/my-tkc`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// The namespace that it is in.
    pub namespace: Namespace,
    /// Its name there.
    pub name: ObjectName,
}

impl FromStr for NamespacedName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let Some((namespace, name)) = text.split_once('/') else {
            return Err(NameError::without_namespace(text));
        };
        Ok(Self { namespace: namespace.parse()?, name: name.parse()? })
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

travels_as_text!(NamespacedName);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, complaint: &str) {
        assert_eq!(text.parse::<NamespacedName>().unwrap_err().to_string(), complaint);
    }

    #[test]
    fn a_namespaced_name_has_both_of_its_parts() {
        let name: NamespacedName = "default/my-tkc".parse().unwrap();
        assert_eq!((name.namespace.as_str(), name.name.as_str()), ("default", "my-tkc"));
        assert_eq!(name.to_string(), "default/my-tkc");

        check(
            "my-tkc",
            r#""my-tkc" is not a namespaced name: it names no namespace; accepted are a namespace and a name with "/" between them"#,
        );
        check(
            "Default/my-tkc",
            r#""Default" is not a namespace: 'D' cannot be in it; accepted are 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends"#,
        );
        check(
            "default/my/tkc",
            r#""my/tkc" is not the name of an object: '/' cannot be in it; accepted are 1 to 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends and around each ".""#,
        );
    }

    #[test]
    fn a_name_travels_as_text_and_is_checked_on_arrival() {
        let name: ClusterName = serde_json::from_str(r#""my-tkc""#).unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), r#""my-tkc""#);
        assert!(serde_json::from_str::<ClusterName>(r#""my.tkc""#).is_err());
    }
}
