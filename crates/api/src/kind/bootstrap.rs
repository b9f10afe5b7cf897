//! How a machine becomes a node: the kubeadm bootstrap provider of Cluster API.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Condition;
use super::wcp::TemplateMetadata;

/// The group of the provider.
pub const GROUP: &str = "bootstrap.cluster.x-k8s.io";

/// Where a machine finds what it is told for `kubeadm init`.
pub const INIT_FILE: &str = "/run/kubeadm/kubeadm.yaml";
/// Where it finds what it is told for `kubeadm join`.
pub const JOIN_FILE: &str = "/run/kubeadm/kubeadm-join-config.yaml";

/// What a machine reads when it first boots, as far as anybody here does: the files that are to be written. There are keys among
/// them, so it is not shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CloudConfig {
    /// The files, in order.
    #[serde(default)]
    pub write_files: Vec<CloudFile>,
}

/// A file that a machine writes when it first boots.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CloudFile {
    /// Where.
    pub path: String,
    /// What is in it.
    #[serde(default)]
    pub content: String,
    /// How that is packed; empty for plain text.
    #[serde(default)]
    pub encoding: String,
}

/// What kubeadm is told on a machine. The first machine has an `initConfiguration`, all others a `joinConfiguration`.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfig",
    namespaced,
    status = "KubeadmConfigStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigSpec {
    /// What the cluster is like; told to the first machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_configuration: Option<ClusterConfiguration>,
    /// How the first machine begins the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_configuration: Option<InitConfiguration>,
    /// How a machine joins the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_configuration: Option<JoinConfiguration>,
    /// What else people say: files, users, commands before and after kubeadm. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What the cluster is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfiguration {
    /// Where the images of Kubernetes come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// Where the image of etcd comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<Etcd>,
    /// Where the image of `CoreDNS` comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<ImageMeta>,
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Where etcd is: on the machines of the control plane, or elsewhere. A cluster stays with what it began with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Etcd {
    /// On the machines of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<ImageMeta>,
    /// Elsewhere. Written by people; we only see that it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Value>,
}

/// Where an image comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageMeta {
    /// The registry, or the part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// The tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How the first machine begins the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitConfiguration {
    /// How its node registers.
    #[serde(default)]
    pub node_registration: NodeRegistration,
    /// Phases of kubeadm that are left out: `addon/kube-proxy`, as kube-proxy is ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_phases: Vec<String>,
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a machine joins the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinConfiguration {
    /// How its node registers.
    #[serde(default)]
    pub node_registration: NodeRegistration,
    /// Present on machines of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Says by being there that a machine joins the control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinControlPlane {
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a node registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRegistration {
    /// Arguments of the kubelet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubelet_extra_args: Vec<Argument>,
    /// What else people say. It is handed on as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl NodeRegistration {
    /// The argument by which a kubelet labels its node.
    pub const NODE_LABELS: &str = "node-labels";
    /// The argument by which a kubelet taints its node.
    pub const NODE_TAINTS: &str = "register-with-taints";

    /// The labels that the kubelet gives its node: `key=value` pairs with commas between them.
    pub fn node_labels(&self) -> Option<&str> {
        self.argument(Self::NODE_LABELS)
    }

    /// The value of an argument of the kubelet.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.kubelet_extra_args.iter().find(|arg| arg.name == name).map(|arg| arg.value.as_str())
    }
}

/// An argument of a program, without the dashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// How far the provider is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigStatus {
    /// What the v1beta2 contract asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<BootstrapInitialization>,
    /// The Secret with what the machine reads when it boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What the v1beta2 contract asks of a bootstrap configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapInitialization {
    /// The Secret is there.
    #[serde(default)]
    pub data_secret_created: bool,
}

/// What bootstrap configurations are cloned from.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "bootstrap.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmConfigTemplate",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct KubeadmConfigTemplateSpec {
    /// The configuration to be.
    pub template: KubeadmConfigTemplateResource,
}

/// The configuration to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KubeadmConfigTemplateResource {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What kubeadm is told.
    pub spec: KubeadmConfigSpec,
}
