//! Clusters of a class: `Cluster.spec.topology`, from which Cluster API derives every other object of the cluster, and the
//! `ClusterClass` that says how.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Condition;
use super::cluster_api::{ReadinessGate, Rollout};
use super::machine_deletion::MachineDeletion;
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
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneTopology {
    /// Labels and annotations of its objects and machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// How many machines; nothing where somebody else says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// When all of them are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<ControlPlaneRolloutTopology>,
    /// How long each of them may take to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Conditions of others that must hold before one of them is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Taints of their nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Value>,
    /// What the class is told for this part only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// When the machines of the control plane of a topology are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPlaneRolloutTopology {
    /// Machines that are older than this are replaced, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
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
#[serde(rename_all = "camelCase")]
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
    /// Where they should be, among the places that the infrastructure tells apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// How long each of them must have been ready before it can be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<u32>,
    /// Which of them go first, and how long each may take to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<PoolDeletion>,
    /// Conditions of others that must hold before one of them is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Taints of their nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Value>,
    /// What the class is told for this part only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Which machines of a pool go first, and how long each may take to go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolDeletion {
    /// `Random`, `Newest` or `Oldest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// How long.
    #[serde(flatten)]
    pub machine: MachineDeletion,
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
    /// What the templates are changed by, for each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<ClassPatch>,
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
    /// How long a machine may take to go, for a topology that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
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
#[serde(rename_all = "camelCase")]
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
    /// How they are rolled, for a pool that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Where they should be, for a pool that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// How long each of them must have been ready, for a pool that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<u32>,
    /// Which of them go first, for a pool that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<PoolDeletion>,
}

/// Something that a class can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassVariable {
    /// Its name.
    pub name: String,
    /// Whether every topology must say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Of which shape it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<VariableSchema>,
}

/// Of which shape something is that a class can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableSchema {
    /// As in a definition of a kind; with what is meant where nothing is said.
    #[serde(default, rename = "openAPIV3Schema")]
    pub open_api_v3_schema: Value,
}

/// A change of templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassPatch {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// When it is made: a Go template that says `true`; always where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_if: Option<String>,
    /// What is changed in which templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<PatchDefinition>,
    /// Somebody outside of Cluster API who makes the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Value>,
}

/// What is changed in which templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchDefinition {
    /// In which.
    #[serde(default)]
    pub selector: PatchSelector,
    /// What, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_patches: Vec<JsonPatch>,
}

/// Which templates are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelector {
    /// Those of this group and version.
    #[serde(default)]
    pub api_version: String,
    /// Those of this kind.
    #[serde(default)]
    pub kind: String,
    /// Those that a class refers to from here.
    #[serde(default)]
    pub match_resources: PatchMatch,
}

/// From where a class refers to the templates that are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchMatch {
    /// From its control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// From its infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_cluster: Option<bool>,
    /// From its sorts of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deployment_class: Option<PatchMatchPools>,
}

/// From which sorts of workers a class refers to the templates that are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchMatchPools {
    /// Their names; with a star at the beginning or the end for all that end or begin so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// One change, as RFC 6902 has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JsonPatch {
    /// `add`, `replace` or `remove`.
    #[serde(default)]
    pub op: String,
    /// Where.
    #[serde(default)]
    pub path: String,
    /// To what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// To what, if the cluster says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<JsonPatchValue>,
}

/// What a change gets from the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonPatchValue {
    /// The value of a variable, or a part of it: `os.arch`, `builtin.cluster.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// What a Go template gives, read as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
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
    /// What clusters can tell the class, and who says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Value>,
    /// `VariablesReady`, `RefVersionsUpToDate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
