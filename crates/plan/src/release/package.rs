//! The packages of a release: which, in which exact version, what for, and with which values.

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_api::name::ObjectName;
use windlass_api::version::KubernetesVersion;

/// One version of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageVersion {
    /// The name that all its versions share: `antrea.tanzu.vmware.com`.
    pub ref_name: String,
    /// The version. As a constraint it is written [bare](KubernetesVersion::bare).
    pub version: KubernetesVersion,
}

impl PackageVersion {
    /// What the names of what belongs to it are made of: `antrea`.
    pub fn short_name(&self) -> &str {
        self.ref_name.split_once('.').map_or(&self.ref_name, |(short, _)| short)
    }

    /// The name of the `Package`: `antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.ref_name, self.version.bare())
    }
}

/// A package that a cluster gets with a release.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRelease {
    /// What it is for.
    pub slot: PackageSlot,
    /// Which package.
    pub package: PackageVersion,
    /// Where its values come from.
    pub values: PackageValues,
}

/// What a package is for. The order is that of bringing them in: what installs packages, what connects pods, nodes and
/// volumes, and then all others as the release lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PackageSlot {
    /// What installs the others. It is installed from the management cluster, and before them.
    Kapp,
    /// What connects pods.
    Cni,
    /// What connects nodes with the infrastructure.
    Cpi,
    /// What connects volumes.
    Csi,
    /// Any other.
    Additional {
        /// Its place among them.
        position: usize,
    },
}

impl PackageSlot {
    /// Whether a cluster cannot do without it: an error of one of these stops the others, and an error of another does not.
    pub fn is_core(self) -> bool {
        match self {
            Self::Kapp | Self::Cni | Self::Cpi | Self::Csi => true,
            Self::Additional { .. } => false,
        }
    }

    /// The field of a `ClusterBootstrapTemplate`: `spec.cni`.
    pub(crate) fn field(self) -> String {
        match self {
            Self::Kapp => "spec.kapp".to_owned(),
            Self::Cni => "spec.cni".to_owned(),
            Self::Cpi => "spec.cpi".to_owned(),
            Self::Csi => "spec.csi".to_owned(),
            Self::Additional { position } => format!("spec.additionalPackages[{position}]"),
        }
    }
}

/// Where the values of a package come from. What is in a Secret is not here.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PackageValues {
    /// It has none.
    None,
    /// From the release itself.
    Inline(Map<String, Value>),
    /// From a Secret beside the template.
    Secret(ObjectName),
    /// From an object beside the template, of which a controller makes a Secret.
    Provider {
        /// Its group.
        api_group: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: ObjectName,
    },
}
