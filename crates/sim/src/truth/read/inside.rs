//! The few fields that are read of what is in a workload cluster, or beside it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use windlass_api::version::KubernetesVersion;

use super::{Condition, Metadata, RollingUpdate, Strings};

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Node {
    pub(in crate::truth) spec: Option<NodeSpec>,
    pub(in crate::truth) status: Option<NodeStatus>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::truth) struct NodeSpec {
    #[serde(rename = "providerID")]
    pub(in crate::truth) provider_id: Option<Box<str>>,
    pub(in crate::truth) unschedulable: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct NodeStatus {
    pub(in crate::truth) node_info: Option<NodeInfo>,
    pub(in crate::truth) conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct NodeInfo {
    pub(in crate::truth) kubelet_version: String,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Pod {
    pub(in crate::truth) metadata: Metadata,
    pub(in crate::truth) spec: PodSpec,
    pub(in crate::truth) status: Option<PodStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct PodStatus {
    pub(in crate::truth) phase: Option<Box<str>>,
    pub(in crate::truth) conditions: Option<Vec<Condition>>,
    pub(in crate::truth) container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct ContainerStatus {
    pub(in crate::truth) state: Option<ContainerState>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct ContainerState {
    pub(in crate::truth) waiting: Option<Waiting>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Waiting {
    pub(in crate::truth) reason: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Budget {
    #[serde(default)]
    pub(in crate::truth) spec: BudgetSpec,
    pub(in crate::truth) status: Option<BudgetStatus>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::truth) struct BudgetSpec {
    pub(in crate::truth) selector: Option<Selector>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct Selector {
    pub(in crate::truth) match_labels: Option<Strings>,
    pub(in crate::truth) match_expressions: Option<Vec<Expression>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(in crate::truth) struct Expression {
    pub(in crate::truth) key: String,
    pub(in crate::truth) operator: String,
    pub(in crate::truth) values: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct BudgetStatus {
    pub(in crate::truth) disruptions_allowed: Option<i64>,
    pub(in crate::truth) disrupted_pods: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Attachment {
    pub(in crate::truth) spec: AttachmentSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct AttachmentSpec {
    pub(in crate::truth) node_name: Box<str>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Definition {
    pub(in crate::truth) spec: DefinitionSpec,
    pub(in crate::truth) status: Option<DefinitionStatus>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct DefinitionSpec {
    #[serde(default)]
    pub(in crate::truth) versions: Vec<DefinitionVersion>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct DefinitionVersion {
    pub(in crate::truth) name: String,
    #[serde(default)]
    pub(in crate::truth) served: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct DefinitionStatus {
    pub(in crate::truth) stored_versions: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct PodSpec {
    pub(in crate::truth) node_name: Option<Box<str>>,
    pub(in crate::truth) node_selector: Option<Strings>,
    #[serde(default)]
    pub(in crate::truth) containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Container {
    #[serde(default)]
    pub(in crate::truth) image: String,
}

/// An object that may have a template for pods.
#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Templated {
    pub(in crate::truth) metadata: Metadata,
    pub(in crate::truth) spec: Option<TemplatedSpec>,
    pub(in crate::truth) status: Option<Observed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct Observed {
    pub(in crate::truth) observed_generation: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct TemplatedSpec {
    pub(in crate::truth) template: Option<PodTemplate>,
    /// Of a `Deployment`.
    pub(in crate::truth) strategy: Option<Strategy>,
    /// Of others.
    pub(in crate::truth) update_strategy: Option<Strategy>,
}

/// How pods are replaced.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct Strategy {
    #[serde(rename = "type")]
    type_: Option<Box<str>>,
    rolling_update: Option<RollingUpdate>,
}

impl Strategy {
    pub(in crate::truth) fn is(&self, type_: &str) -> bool {
        self.type_.as_deref() == Some(type_)
    }

    /// No pod goes before another has come in its place.
    pub(in crate::truth) fn keeps_all(&self) -> bool {
        let unavailable = self.rolling_update.as_ref().and_then(|update| update.max_unavailable.as_ref());
        self.is("RollingUpdate") && unavailable.is_some_and(|unavailable| unavailable.of(100, true) == 0)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::truth) struct PodTemplate {
    pub(in crate::truth) spec: Option<PodSpec>,
}

/// What is no object in reality: a record in the store.
#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Record<T> {
    pub(in crate::truth) record: T,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Member {
    pub(in crate::truth) learner: bool,
    pub(in crate::truth) started: bool,
    pub(in crate::truth) leader: bool,
    pub(in crate::truth) version: Option<KubernetesVersion>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::truth) struct Trouble {
    #[serde(default)]
    pub(in crate::truth) cut_off: bool,
    #[serde(default)]
    pub(in crate::truth) alarms: BTreeSet<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::truth) struct Power {
    pub(in crate::truth) on: bool,
    pub(in crate::truth) kubelet: KubernetesVersion,
    /// Why kubeadm has given up there, if it has.
    #[serde(default)]
    pub(in crate::truth) failure: Option<Box<str>>,
}
