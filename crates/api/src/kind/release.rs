//! Releases as objects of their own: `TanzuKubernetesRelease`, the images that it comes with, and the packages that a cluster
//! gets with it.

use std::collections::BTreeMap;

use kube_core::ObjectMeta;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Condition;

/// The group of the kinds.
pub const GROUP: &str = "run.tanzu.vmware.com";

/// What a release is made of. Nobody changes it once it is there.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha3",
    kind = "TanzuKubernetesRelease",
    status = "ReleaseStatus",
    shortname = "tkr",
    category = "windlass",
    doc = "A release: versions of Kubernetes and its components, the images and the packages that belong to them.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Kubernetes", type_ = "string", json_path = ".spec.kubernetes.version", priority = 1),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(
        name = "Compatible",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Compatible")].status"#
    ),
    printcolumn(name = "Created", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct TanzuKubernetesReleaseSpec {
    /// The version of the whole; no other release has the same.
    pub version: String,
    /// Kubernetes and what it cannot do without.
    pub kubernetes: KubernetesSpec,
    /// The images of machines that the release can be on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os_images: Vec<LocalReference>,
    /// The packages that a cluster of this release can have: the full names of `Package` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_packages: Option<Vec<LocalReference>>,
}

/// Kubernetes and what it cannot do without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesSpec {
    /// Its version. Several releases may have the same.
    pub version: String,
    /// Where its images come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<ContainerImage>,
    /// What holds the namespaces of a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<ContainerImage>,
    /// `CoreDNS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coredns: Option<ContainerImage>,
    /// What answers for the address of the API.
    #[serde(default, rename = "kube-vip", skip_serializing_if = "Option::is_none")]
    pub kube_vip: Option<ContainerImage>,
}

/// The image of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerImage {
    /// Where it comes from, if not from where all the others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// Its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
}

/// An object in the same place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// Its name.
    pub name: String,
}

/// Whether a release, or an image, can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseStatus {
    /// `Compatible`, `Valid`, `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What is on the disk of a machine.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha3",
    kind = "OSImage",
    status = "ReleaseStatus",
    shortname = "osimg",
    category = "windlass",
    doc = "An operating system with Kubernetes on it, as machines boot it.",
    printcolumn(name = "K8s Version", type_ = "string", json_path = ".spec.kubernetesVersion"),
    printcolumn(name = "OS Name", type_ = "string", json_path = ".spec.os.name"),
    printcolumn(name = "OS Version", type_ = "string", json_path = ".spec.os.version"),
    printcolumn(name = "Arch", type_ = "string", json_path = ".spec.os.arch"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.image.type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct OSImageSpec {
    /// The version of Kubernetes on it.
    pub kubernetes_version: String,
    /// The operating system.
    pub os: OperatingSystem,
    /// How a provider finds it.
    pub image: MachineImage,
}

/// An operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatingSystem {
    /// `linux`, `windows`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `ubuntu`, `photon`.
    pub name: String,
    /// `2004`.
    pub version: String,
    /// `amd64`.
    pub arch: String,
}

/// How a provider finds an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineImage {
    /// `ami`, `azure`, `docker`, `ova`, `vmop`.
    #[serde(rename = "type")]
    pub type_: String,
    /// What the provider is told; what is in it depends on the type.
    #[serde(rename = "ref")]
    #[schemars(schema_with = "super::free_object")]
    pub reference: Map<String, Value>,
}

/// The packages that a cluster gets with a release, and the values that they get.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha3",
    kind = "ClusterBootstrapTemplate",
    plural = "clusterbootstraptemplates",
    namespaced,
    shortname = "cbt",
    category = "windlass",
    doc = "The packages that clusters of a release get. It has the name of the release.",
    printcolumn(name = "CNI", type_ = "string", json_path = ".spec.cni.refName"),
    printcolumn(name = "CSI", type_ = "string", json_path = ".spec.csi.refName"),
    printcolumn(name = "CPI", type_ = "string", json_path = ".spec.cpi.refName"),
    printcolumn(name = "Kapp", type_ = "string", json_path = ".spec.kapp.refName"),
    printcolumn(
        name = "Additional Packages",
        type_ = "string",
        json_path = ".spec.additionalPackages[*].refName",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBootstrapTemplateSpec {
    /// The packages.
    #[serde(flatten)]
    pub packages: BootstrapPackages,
}

/// The packages that a cluster has.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha3",
    kind = "ClusterBootstrap",
    plural = "clusterbootstraps",
    namespaced,
    status = "ClusterBootstrapStatus",
    shortname = "cb",
    category = "windlass",
    doc = "The packages of one cluster. It has the name of the cluster.",
    printcolumn(name = "CNI", type_ = "string", json_path = ".spec.cni.refName"),
    printcolumn(name = "CSI", type_ = "string", json_path = ".spec.csi.refName"),
    printcolumn(name = "CPI", type_ = "string", json_path = ".spec.cpi.refName"),
    printcolumn(name = "Kapp", type_ = "string", json_path = ".spec.kapp.refName"),
    printcolumn(
        name = "Additional Packages",
        type_ = "string",
        json_path = ".spec.additionalPackages[*].refName",
        priority = 1
    ),
    printcolumn(name = "Resolved TKR", type_ = "string", json_path = ".status.resolvedTKR"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBootstrapSpec {
    /// The packages.
    #[serde(flatten)]
    pub packages: BootstrapPackages,
}

/// Packages by what they are for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapPackages {
    /// Nobody touches them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// What connects pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<BootstrapPackage>,
    /// What connects volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi: Option<BootstrapPackage>,
    /// What connects nodes with the infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpi: Option<BootstrapPackage>,
    /// What installs the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kapp: Option<BootstrapPackage>,
    /// All others, in the order in which they are brought in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_packages: Vec<BootstrapPackage>,
}

/// A package, and the values that it gets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapPackage {
    /// The full name of the `Package`: `antrea.tanzu.vmware.com.1.7.2+vmware.1-tkg.1-advanced`.
    pub ref_name: String,
    /// Where its values come from. At most one of the three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_from: Option<ValuesFrom>,
}

/// Where the values of a package come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesFrom {
    /// From here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::free_object")]
    pub inline: Option<Map<String, Value>>,
    /// From a Secret of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<String>,
    /// From an object that its own controller makes a Secret of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<ProviderReference>,
}

/// An object that values are made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReference {
    /// Its group.
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// How far the packages of a cluster are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterBootstrapStatus {
    /// The release whose packages these are.
    #[serde(default, rename = "resolvedTKR", skip_serializing_if = "Option::is_none")]
    pub resolved_tkr: Option<String>,
    /// One for each package: `Antrea-ReconcileSucceeded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A `ConfigMap` of a release: what it says about objects of one kind. Its name is the kind and the version, `machinepool-21-0-0`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseConfigMap {
    /// Its name, and the version as a label.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What it says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Nothing should be here; what is, is noticed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub binary_data: BTreeMap<String, Value>,
}
