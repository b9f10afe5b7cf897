//! The infrastructure provider: what a cluster needs once, a machine, and a template for machines.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;

/// The group of the provider.
pub const GROUP: &str = "infrastructure.cluster.vmware.com";

/// What a cluster needs once: the address of its API.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.vmware.com",
    version = "v1alpha2",
    kind = "WCPCluster",
    namespaced,
    status = "WCPClusterStatus",
    doc = "What a cluster needs once: the address of its API.",
    label("cluster.x-k8s.io/v1beta2", "v1alpha2"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.controlPlaneEndpoint.host"),
    printcolumn(name = "Provisioned", type_ = "boolean", json_path = ".status.initialization.provisioned"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct WCPClusterSpec {
    /// Where the API is. Given by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
}

/// Where an API is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// An address or a name.
    #[serde(default)]
    pub host: String,
    /// A port.
    #[serde(default)]
    pub port: u16,
}

/// How far the provider is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WCPClusterStatus {
    /// What the v1beta2 contract asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// The places for machines that fail by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A place for machines that fails by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Its name, by which a Machine asks for it.
    pub name: String,
    /// Whether machines of a control plane may be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// What else the provider says of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// What the v1beta2 contract asks of a provider's kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Initialization {
    /// It is there.
    #[serde(default)]
    pub provisioned: bool,
}

/// What a machine is made from.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.vmware.com",
    version = "v1alpha2",
    kind = "WCPMachine",
    namespaced,
    status = "WCPMachineStatus",
    doc = "A virtual machine.",
    label("cluster.x-k8s.io/v1beta2", "v1alpha2"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.imageName"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.className"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.vmState"),
    printcolumn(name = "Failure Domain", type_ = "string", json_path = ".status.failureDomain", priority = 1),
    printcolumn(name = "Provider ID", type_ = "string", json_path = ".spec.providerID", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct WCPMachineSpec {
    /// The `VirtualMachineImage` of its disk.
    pub image_name: String,
    /// The `VirtualMachineClass`.
    pub class_name: String,
    /// The `StorageClass` of its disks.
    pub storage_class: String,
    /// What tells it from all other machines. Given by the provider.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// How far a machine is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WCPMachineStatus {
    /// What the v1beta2 contract asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// What the machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_state: Option<VmState>,
    /// Where it is, among the failure domains of its cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What a virtual machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VmState {
    /// It exists, and is off.
    Created,
    /// It is on, and boots.
    PoweredOn,
    /// It has booted.
    Ready,
}

/// An address, and of which sort it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    /// `InternalIP`, `Hostname`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The address.
    pub address: String,
}

/// What machines are cloned from.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.vmware.com",
    version = "v1alpha2",
    kind = "WCPMachineTemplate",
    namespaced,
    doc = "What machines are cloned from.",
    label("cluster.x-k8s.io/v1beta2", "v1alpha2"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.template.spec.imageName"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.template.spec.className"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct WCPMachineTemplateSpec {
    /// The machine to be.
    pub template: WCPMachineTemplateResource,
}

/// The machine to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WCPMachineTemplateResource {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What it is made from.
    pub spec: WCPMachineSpec,
}

/// What a class makes the infrastructure of its clusters from.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.vmware.com",
    version = "v1alpha2",
    kind = "WCPClusterTemplate",
    namespaced,
    doc = "What a class makes the infrastructure of its clusters from.",
    label("cluster.x-k8s.io/v1beta2", "v1alpha2"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct WCPClusterTemplateSpec {
    /// The infrastructure to be.
    pub template: WCPClusterTemplateResource,
}

/// The infrastructure to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WCPClusterTemplateResource {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What a cluster needs once. Where the API is, the provider says.
    #[serde(default)]
    pub spec: WCPClusterSpec,
}

/// Labels and annotations of what is made from a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// The labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
