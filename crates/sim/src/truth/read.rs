//! The few fields that are read of each kind. What may be missing, or null, is an `Option`.

mod inside;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub(super) use inside::*;

pub(super) type Strings = BTreeMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) generation: Option<i64>,
    pub(super) finalizers: Option<Vec<IgnoredAny>>,
    pub(super) annotations: Option<Strings>,
    pub(super) owner_references: Option<Vec<Named>>,
}

impl Metadata {
    /// Somebody says by an annotation that nobody may touch it.
    pub(super) fn is_paused(&self) -> bool {
        self.annotations.as_ref().is_some_and(|all| all.contains_key(windlass_api::annotation::PAUSED.name))
    }
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

/// What says in a field whose it is.
#[derive(Debug, Deserialize)]
pub(super) struct OfCluster {
    pub(super) spec: OfClusterSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfClusterSpec {
    pub(super) cluster_name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClusterObject {
    pub(super) metadata: Metadata,
    pub(super) spec: Option<ClusterSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterSpec {
    pub(super) control_plane_ref: Option<Named>,
    pub(super) paused: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tkc {
    pub(super) metadata: Metadata,
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
    pub(super) addons: Option<BTreeMap<Box<str>, TkcAddon>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TkcAddon {
    pub(super) name: Box<str>,
    pub(super) status: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Update {
    pub(super) metadata: Metadata,
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
    pub(super) status: Option<MachineStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MachineSpec {
    pub(super) version: Option<Box<str>>,
    #[serde(rename = "providerID")]
    pub(super) provider_id: Option<Box<str>>,
    pub(super) bootstrap: Option<Bootstrap>,
    pub(super) infrastructure_ref: Option<Named>,
    pub(super) deletion: Option<DeletionSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionSpec {
    pub(super) node_drain_timeout_seconds: Option<i64>,
    pub(super) node_volume_detach_timeout_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct MachineStatus {
    pub(super) phase: Option<String>,
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) deletion: Option<DeletionStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionStatus {
    pub(super) node_drain_start_time: Option<Timestamp>,
    pub(super) wait_for_node_volume_detach_start_time: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bootstrap {
    pub(super) config_ref: Option<Named>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Pool {
    pub(super) spec: PoolSpec,
}

#[derive(Debug, Deserialize)]
pub(super) struct PoolSpec {
    pub(super) replicas: Option<u32>,
    pub(super) template: PoolTemplate,
    pub(super) rollout: Option<Rollout>,
}

/// How machines are rolled, in pools and in control planes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Rollout {
    pub(super) strategy: Option<RolloutStrategy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RolloutStrategy {
    #[serde(rename = "type")]
    pub(super) type_: Option<Box<str>>,
    pub(super) rolling_update: Option<RollingUpdate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RollingUpdate {
    pub(super) max_surge: Option<Amount>,
    pub(super) max_unavailable: Option<Amount>,
}

/// A number, or a share.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Count(u32),
    Share(String),
}

impl Amount {
    /// How many of so many. A share that is no number is nothing.
    pub(super) fn of(&self, whole: u32, rounds_up: bool) -> u32 {
        match self {
            Self::Count(count) => *count,
            Self::Share(text) => {
                let percent: u64 = text.trim_end_matches('%').parse().unwrap_or_default();
                let hundredths = percent.saturating_mul(u64::from(whole));
                let count = if rounds_up { hundredths.div_ceil(100) } else { hundredths / 100 };
                u32::try_from(count).unwrap_or(u32::MAX)
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ControlPlane {
    pub(super) spec: ControlPlaneSpec,
    pub(super) status: Option<ControlPlaneStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ControlPlaneSpec {
    pub(super) replicas: Option<u32>,
    pub(super) version: Option<Box<str>>,
    pub(super) rollout: Option<Rollout>,
    pub(super) kubeadm_config_spec: Option<KubeadmConfigSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KubeadmConfigSpec {
    pub(super) cluster_configuration: Option<ClusterConfiguration>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ControlPlaneStatus {
    pub(super) version: Option<Box<str>>,
}

/// The part of kubeadm's configuration that all machines of a control plane share.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterConfiguration {
    pub(super) kubernetes_version: Option<String>,
    pub(super) etcd: Option<EtcdConfiguration>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct EtcdConfiguration {
    pub(super) external: Option<IgnoredAny>,
}

/// What kubeadm kept of API servers, once.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterStatus<T> {
    pub(super) api_endpoints: Option<BTreeMap<String, T>>,
}

impl<T> Default for ClusterStatus<T> {
    fn default() -> Self {
        Self { api_endpoints: None }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ConfigMap {
    pub(super) data: Option<Strings>,
}

/// A Secret, whose contents are none of our business, but whether they change.
#[derive(Debug, Deserialize)]
pub(super) struct Secret {
    pub(super) metadata: Metadata,
    pub(super) data: Option<Box<RawValue>>,
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
    pub(super) reason: Option<Box<str>>,
    pub(super) message: Option<Box<str>>,
}

/// The condition of that type.
pub(super) fn condition<'a>(conditions: Option<&'a Vec<Condition>>, type_: &str) -> Option<&'a Condition> {
    conditions?.iter().find(|condition| condition.type_ == type_)
}

/// Why the condition of that type is as it is.
pub(super) fn reason(conditions: Option<&Vec<Condition>>, type_: &str) -> Option<Box<str>> {
    condition(conditions, type_)?.reason.clone().filter(|reason| !reason.is_empty())
}

/// Whether the condition of that type is true.
pub(super) fn is_true(conditions: Option<&Vec<Condition>>, type_: &str) -> bool {
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == type_ && condition.status == "True"))
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
