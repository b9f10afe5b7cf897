//! The few fields that are read of each kind. What may be missing, or null, is an `Option`.

use std::collections::BTreeMap;

use serde::Deserialize;
use windlass_api::version::KubernetesVersion;

pub(super) type Strings = BTreeMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) generation: Option<i64>,
    pub(super) annotations: Option<Strings>,
    pub(super) owner_references: Option<Vec<Named>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    pub(super) kind: String,
    pub(super) name: String,
}

/// `{"metadata": …}`, of whatever kind.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Owned {
    pub(super) metadata: Metadata,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tkc {
    pub(super) spec: TkcSpec,
    pub(super) status: Option<TkcStatus>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TkcSpec {
    pub(super) topology: TkcTopology,
    pub(super) distribution: TkcDistribution,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TkcTopology {
    pub(super) control_plane: TkcMachines,
}

#[derive(Debug, Deserialize)]
pub(super) struct TkcMachines {
    pub(super) count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TkcDistribution {
    pub(super) full_version: Option<Box<str>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct TkcStatus {
    pub(super) phase: Option<Box<str>>,
    pub(super) version: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Update {
    pub(super) spec: UpdateSpec,
    pub(super) status: Option<UpdateStatus>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UpdateSpec {
    pub(super) cluster: String,
    pub(super) ordinal: u64,
    pub(super) id: Box<str>,
    pub(super) from: UpdateEnd,
    pub(super) to: UpdateEnd,
}

#[derive(Debug, Deserialize)]
pub(super) struct UpdateEnd {
    pub(super) distribution: Box<str>,
    pub(super) kubernetes: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct UpdateStatus {
    pub(super) state: Option<Box<str>>,
    pub(super) stage: Option<Box<str>>,
    pub(super) failure: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Machine {
    pub(super) metadata: Metadata,
    pub(super) spec: MachineSpec,
    pub(super) status: Option<Phased>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineSpec {
    pub(super) version: Option<Box<str>>,
    pub(super) bootstrap: Option<Bootstrap>,
    pub(super) infrastructure_ref: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bootstrap {
    pub(super) config_ref: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Phased {
    pub(super) phase: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Pool {
    pub(super) spec: PoolSpec,
}

#[derive(Debug, Deserialize)]
pub(super) struct PoolSpec {
    pub(super) template: PoolTemplate,
}

#[derive(Debug, Deserialize)]
pub(super) struct PoolTemplate {
    pub(super) spec: MachineSpec,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) status: Option<JobStatus>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct JobStatus {
    pub(super) failed: Option<u32>,
    pub(super) conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) status: String,
}

/// Whether the condition of that type is true.
pub(super) fn is_true(conditions: Option<&Vec<Condition>>, type_: &str) -> bool {
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == type_ && condition.status == "True"))
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) status: Option<NodeStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeStatus {
    pub(super) node_info: Option<NodeInfo>,
    pub(super) conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeInfo {
    pub(super) kubelet_version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    pub(super) spec: PodSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub(super) node_name: Option<Box<str>>,
    pub(super) node_selector: Option<Strings>,
    #[serde(default)]
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Container {
    #[serde(default)]
    pub(super) image: String,
}

/// An object that may have a template for pods.
#[derive(Debug, Deserialize)]
pub(super) struct Templated {
    pub(super) metadata: Metadata,
    pub(super) spec: Option<TemplatedSpec>,
    pub(super) status: Option<Observed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Observed {
    pub(super) observed_generation: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct TemplatedSpec {
    pub(super) template: Option<PodTemplate>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PodTemplate {
    pub(super) spec: Option<PodSpec>,
}

/// What is on a machine image, in its annotation.
#[derive(Debug, Deserialize)]
pub(super) struct Image {
    pub(super) distribution: ImageDistribution,
}

#[derive(Debug, Deserialize)]
pub(super) struct ImageDistribution {
    pub(super) version: Box<str>,
}

/// What is no object in reality: a record in the store.
#[derive(Debug, Deserialize)]
pub(super) struct Record<T> {
    pub(super) record: T,
}

#[derive(Debug, Deserialize)]
pub(super) struct Member {
    pub(super) learner: bool,
    pub(super) started: bool,
    pub(super) leader: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Power {
    pub(super) on: bool,
    pub(super) kubelet: KubernetesVersion,
}
