//! Clusters of a class: `Cluster.spec.topology`, from which Cluster API derives every other object of the cluster, and the
//! `ClusterClass` that says how.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Condition;
use super::cluster_api::Rollout;
use super::wcp::TemplateMetadata;

/// What a cluster of a class is asked to be. Of such a cluster it is all that we write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// The class.
    #[serde(default)]
    pub class_ref: ClassReference,
    /// The version of Kubernetes. People may also ask by a hint, or by the version of a release, which is then resolved.
    #[serde(default)]
    pub version: String,
    /// The control plane.
    #[serde(default, skip_serializing_if = "ControlPlaneTopology::is_default")]
    pub control_plane: ControlPlaneTopology,
    /// The pools of workers.
    #[serde(default, skip_serializing_if = "WorkersTopology::is_default")]
    pub workers: WorkersTopology,
    /// What the class can be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

impl Topology {
    /// What the class is told under a name.
    pub fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.iter().find(|variable| variable.name == name).map(|variable| &variable.value)
    }
}

/// A class, which may be in another namespace than the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReference {
    /// Its name.
    pub name: String,
    /// Its namespace, if not the cluster's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The control plane of a topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneTopology {
    /// Labels and annotations of its objects and machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// How many machines; nothing where somebody else says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// What the class is told for this part only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

impl ControlPlaneTopology {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The pools of workers of a topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkersTopology {
    /// The pools, each of which becomes a `MachineDeployment`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_deployments: Vec<MachineDeploymentTopology>,
}

impl WorkersTopology {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A pool of workers of a topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDeploymentTopology {
    /// Which sort of worker of the class.
    #[serde(default)]
    pub class: String,
    /// The name of the pool.
    #[serde(default)]
    pub name: String,
    /// Labels and annotations of its objects and machines; also those that hold the pool back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// How many machines; nothing where somebody else says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// How they are rolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// What the class is told for this part only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// What a class is told for one part of a topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableOverrides {
    /// In place of what the whole topology says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Variable>,
}

/// Something that a class is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it is told; the class says of which shape.
    #[serde(default)]
    pub value: Value,
}

/// How clusters of a class are made. Written by whoever designs clusters; read by us, who never write one.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterClass",
    plural = "clusterclasses",
    namespaced,
    status = "ClusterClassStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassSpec {
    /// What clusters need once.
    #[serde(default)]
    pub infrastructure: ClassTemplate,
    /// What their control planes are made from.
    #[serde(default)]
    pub control_plane: ControlPlaneClass,
    /// The sorts of workers.
    #[serde(default)]
    pub workers: WorkersClass,
    /// What the class can be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<ClassVariable>,
    /// The versions that clusters may have, ascending and without a gap: an upgrade over several minors goes through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_versions: Vec<String>,
    /// Who else says through which versions an upgrade goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<ClassUpgrade>,
}

/// A part of a class that is one template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassTemplate {
    /// The template.
    #[serde(default)]
    pub template_ref: TemplateReference,
}

/// A template of a class, in the namespace of the class. Other than in a cluster's own references its version is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateReference {
    /// Its group and version.
    #[serde(default)]
    pub api_version: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// What control planes of a class are made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneClass {
    /// Labels and annotations, for a part that has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The template of the control plane.
    #[serde(default)]
    pub template_ref: TemplateReference,
    /// The template of its machines' infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_infrastructure: Option<ClassTemplate>,
}

/// The sorts of workers of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkersClass {
    /// Each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_deployments: Vec<MachineDeploymentClass>,
}

/// A sort of workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineDeploymentClass {
    /// The name that topologies ask for it by.
    #[serde(default)]
    pub class: String,
    /// Labels and annotations, for a pool that has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The template of what kubeadm is told.
    #[serde(default)]
    pub bootstrap: ClassTemplate,
    /// The template of the infrastructure.
    #[serde(default)]
    pub infrastructure: ClassTemplate,
}

/// Something that a class can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassVariable {
    /// Its name.
    pub name: String,
    /// Whether every topology must say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// Who says through which versions an upgrade of a class goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassUpgrade {
    /// Somebody outside of Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalUpgrade>,
}

/// Somebody outside of Cluster API who plans upgrades.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalUpgrade {
    /// The handler that is asked, with a dot and the name of its `ExtensionConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_upgrade_plan_extension: Option<String>,
}

/// How a class is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatus {
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `VariablesReady`, `RefVersionsUpToDate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
