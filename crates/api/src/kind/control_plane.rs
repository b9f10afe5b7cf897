//! A control plane that Cluster API rolls: the kubeadm control-plane provider.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use super::bootstrap::KubeadmConfigSpec;
use super::cluster_api::{ReadinessGate, RolloutStrategy, VersionCount};
use super::machine_deletion::MachineDeletion;
use super::wcp::TemplateMetadata;
use super::{Condition, ContractReference};

/// The group of the provider.
pub const GROUP: &str = "controlplane.cluster.x-k8s.io";

/// The machines of a control plane. A change of version, template or configuration replaces them one by one, so the three
/// are written together, or the machines are replaced twice.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmControlPlane",
    namespaced,
    status = "KubeadmControlPlaneStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneSpec {
    /// How many machines: an odd number, as each has a member of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// The version of Kubernetes that they should have.
    #[serde(default)]
    pub version: String,
    /// What they are like.
    #[serde(default)]
    pub machine_template: ControlPlaneMachineTemplate,
    /// What kubeadm is told on them.
    #[serde(default)]
    pub kubeadm_config_spec: KubeadmConfigSpec,
    /// When and how they are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<ControlPlaneRollout>,
    /// How often a machine is replaced that something is wrong with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<ControlPlaneRemediation>,
    /// How they are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNaming>,
}

/// How often a machine of a control plane is replaced that something is wrong with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneRemediation {
    /// So often in a row; without end where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry: Option<u32>,
    /// No sooner after the last time than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_period_seconds: Option<u32>,
    /// A machine that was well for so long has nothing to do with the one that it replaced. An hour where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_healthy_period_seconds: Option<u32>,
}

/// How machines are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineNaming {
    /// A Go template over the cluster's name, the control plane's and five characters:
    /// `{{ .kubeadmControlPlane.name }}-{{ .random }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// What the machines of a control plane are like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneMachineTemplate {
    /// Their labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The rest.
    #[serde(default)]
    pub spec: ControlPlaneMachineSpec,
}

/// What a machine of a control plane is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneMachineSpec {
    /// The template that its infrastructure is cloned from.
    #[serde(default)]
    pub infrastructure_ref: ContractReference,
    /// Conditions of others that must hold before it is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// How long it may take to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Taints of its node; handed on as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<serde_json::Value>,
}

/// When and how the machines of a control plane are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPlaneRollout {
    /// Before what happens they are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RolloutBefore>,
    /// Machines that are older than this are replaced, as RFC 3339. People set it to replace all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// In which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// Before what happens machines are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutBefore {
    /// So many days before their certificates expire: an update that nobody asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_expiry_days: Option<u32>,
}

/// How a control plane is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneStatus {
    /// The generation that this was found out for. Until it is the object's own, the counts are of an older wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The oldest version that a machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Every version that a machine has. Controllers before 1.14 of Cluster API do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
    /// How the machines are selected, as text; for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// How many machines there are.
    #[serde(default)]
    pub replicas: u32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: u32,
    /// How many of them can be relied on.
    #[serde(default)]
    pub available_replicas: u32,
    /// How many of them are as they should be.
    #[serde(default)]
    pub up_to_date_replicas: u32,
    /// What has ever been reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ControlPlaneInitialization>,
    /// The last machine that was replaced because something was wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediation: Option<LastRemediation>,
    /// `Available`, `EtcdClusterHealthy`, `ControlPlaneComponentsHealthy`, `MachinesUpToDate`, `RollingOut` …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A machine that was replaced because something was wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRemediation {
    /// The machine.
    #[serde(default)]
    pub machine: String,
    /// When, as RFC 3339.
    #[serde(default)]
    pub time: String,
    /// How often the ones before it had been, in a row.
    #[serde(default)]
    pub retry_count: u32,
}

/// What a control plane has ever reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneInitialization {
    /// Its API has answered.
    #[serde(default)]
    pub control_plane_initialized: bool,
}

/// What a topology makes its control plane from. Version and count are not in it: they are the topology's.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmControlPlaneTemplate",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct KubeadmControlPlaneTemplateSpec {
    /// The control plane to be.
    #[serde(default)]
    pub template: KubeadmControlPlaneTemplateResource,
}

/// The control plane to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KubeadmControlPlaneTemplateResource {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The rest.
    #[serde(default)]
    pub spec: KubeadmControlPlaneTemplateResourceSpec,
}

/// The part of a control plane that its topology does not say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneTemplateResourceSpec {
    /// What kubeadm is told on its machines.
    #[serde(default)]
    pub kubeadm_config_spec: KubeadmConfigSpec,
    /// When and how they are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<ControlPlaneRollout>,
}
