//! Cluster API v1beta2: what we read of its kinds, and what we own in them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSystemInfo;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use super::machine_deletion::{MachineDeletion, MachineDeletionStatus};
use super::topology::Topology;
use super::wcp::{Address, Endpoint, FailureDomain, TemplateMetadata};
use super::{Condition, ContractReference};

/// The group of the kinds.
pub const GROUP: &str = "cluster.x-k8s.io";

/// A workload cluster as Cluster API sees it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    namespaced,
    status = "ClusterStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Nobody may touch what belongs to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Where the API is. Copied from the infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<Endpoint>,
    /// What the cluster needs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractReference>,
    /// Who rolls the machines of the control plane; nobody where they stand for themselves. Once there, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractReference>,
    /// What Cluster API derives everything else from, if the cluster is of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Conditions of others that must hold before the cluster is available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub availability_gates: Vec<ReadinessGate>,
    /// The network inside of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<serde_json::Value>,
}

/// How a cluster is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// `Pending`, `Provisioning`, `Provisioned`, `Deleting`, `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What has ever been reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ClusterInitialization>,
    /// How far the control plane is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<Progress>,
    /// How far the workers are, all pools together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Progress>,
    /// The places for machines that fail by themselves. Copied from the infrastructure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<FailureDomain>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What a cluster has ever reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInitialization {
    /// What it needs once is there.
    #[serde(default)]
    pub infrastructure_provisioned: bool,
    /// Its API has answered.
    #[serde(default)]
    pub control_plane_initialized: bool,
}

/// How far a part of a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many machines there should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<u32>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// How many of them are as they should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<u32>,
    /// How many of them are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<u32>,
    /// How many of them can be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<u32>,
    /// Every version that a machine has. Controllers before 1.14 of Cluster API do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
    /// The versions that are still ahead while a topology is upgraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_plan: Vec<UpgradeStep>,
}

/// How many machines have a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionCount {
    /// The version.
    pub version: String,
    /// How many machines.
    #[serde(default)]
    pub replicas: u32,
}

/// A version that an upgrade goes through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeStep {
    /// The version.
    pub version: String,
}

/// A machine: infrastructure, bootstrap and node in one.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Machine",
    namespaced,
    status = "MachineStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// The cluster that it is for.
    #[serde(default)]
    pub cluster_name: String,
    /// The version of Kubernetes that it should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What tells the machine from all others. Copied from the infrastructure.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// How it becomes a node.
    #[serde(default)]
    pub bootstrap: Bootstrap,
    /// What it is made from.
    #[serde(default)]
    pub infrastructure_ref: ContractReference,
    /// Where it should be, among the places that the infrastructure tells apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Taints of its node; handed on as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<serde_json::Value>,
    /// How long it must have been ready before it can be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<u32>,
    /// Conditions of others that must hold before it is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
    /// How long it may take to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
}

/// A condition of somebody else that must hold before a machine is ready, or a cluster available.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// Its type.
    pub condition_type: String,
    /// `Positive`, or `Negative` for one that must not hold. Positive where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polarity: Option<String>,
}

/// How a machine becomes a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// Who writes what the machine reads when it boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret in which that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// How a machine is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// `Pending`, `Provisioning`, `Provisioned`, `Running`, `Deleting`, `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Its node in the workload cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeReference>,
    /// Where it is, among the failure domains of its cluster. Copied from the infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// What runs on that node, as its kubelet says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeSystemInfo>,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// What has ever been reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachineInitialization>,
    /// Since when it goes through which step of its removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionStatus>,
    /// When its phase last changed, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Facts that others can wait for: `Ready`, `NodeHealthy`, `Deleting` …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What a machine has ever reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineInitialization {
    /// The infrastructure is there.
    #[serde(default)]
    pub infrastructure_provisioned: bool,
    /// What it reads when it boots is there.
    #[serde(default)]
    pub bootstrap_data_secret_created: bool,
}

/// A node of the workload cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReference {
    /// Its name.
    pub name: String,
}

/// A number of machines that are alike.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineSet",
    namespaced,
    status = "MachineSetStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// The cluster that they are for.
    #[serde(default)]
    pub cluster_name: String,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Which machines are counted.
    #[serde(default)]
    pub selector: LabelSelector,
    /// What they are like.
    #[serde(default)]
    pub template: MachineTemplate,
    /// Which of them go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<SetDeletion>,
}

/// Which machines of a set go first when there are too many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetDeletion {
    /// `Random`, `Newest` or `Oldest`; at random, that is by name, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// How many machines that something is wrong with are replaced at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetRemediation {
    /// That many; all of them where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<Amount>,
}

/// Which objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// All of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// What machines of a set are like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineTemplate {
    /// Their labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The rest. The references are to templates.
    #[serde(default)]
    pub spec: MachineSpec,
}

/// How a set of machines is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// Of a `MachineDeployment`: `ScalingUp`, `ScalingDown`, `Running`, `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How the machines are selected, as text; for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// How many there are.
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
    /// Every version that a machine has. Controllers before 1.14 of Cluster API do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCount>,
    /// The generation that this was counted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A pool of machines that is rolled from one set to the next.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDeployment",
    namespaced,
    status = "MachineSetStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// The cluster that it is for.
    #[serde(default)]
    pub cluster_name: String,
    /// How many machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Which machines are counted.
    #[serde(default)]
    pub selector: LabelSelector,
    /// What they are like. A change of it rolls them.
    #[serde(default)]
    pub template: MachineTemplate,
    /// Nobody rolls them, whatever changes. Written by people; we leave it as it is and say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// How they are rolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Which of them go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<SetDeletion>,
    /// How those are replaced that something is wrong with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<SetRemediation>,
}

/// When and how machines are rolled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// Machines that are older than this are replaced, as RFC 3339. People set it to replace all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// In which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// In which way machines are rolled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// The two numbers of a rolling update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// The two numbers of a rolling update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many machines more than asked for there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Amount>,
    /// How many machines fewer than asked for there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Amount>,
}

/// A number of machines. We write counts; people also write shares, and their objects must be readable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// So many.
    Count(u32),
    /// A share of all: `25%`.
    Share(String),
}

impl Amount {
    /// How many that is of a whole, a part of a machine counted as one: for machines that are added.
    pub fn of_rounded_up(&self, whole: u32) -> Option<u32> {
        self.hundredths_of(whole).map(|hundredths| hundredths.div_ceil(100)).and_then(|count| count.try_into().ok())
    }

    /// How many that is of a whole, a part of a machine not counted: for machines that are missing.
    pub fn of_rounded_down(&self, whole: u32) -> Option<u32> {
        self.hundredths_of(whole).map(|hundredths| hundredths / 100).and_then(|count| count.try_into().ok())
    }

    fn hundredths_of(&self, whole: u32) -> Option<u64> {
        match self {
            Self::Count(count) => Some(u64::from(*count) * 100),
            Self::Share(text) => {
                let percent: u32 = text.strip_suffix('%')?.parse().ok()?;
                Some(u64::from(percent) * u64::from(whole))
            }
        }
    }
}

impl From<u32> for Amount {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, whole: u32, up_and_down: Option<(u32, u32)>) {
        let amount: Amount = serde_json::from_str(text).unwrap();
        assert_eq!(amount.of_rounded_up(whole).zip(amount.of_rounded_down(whole)), up_and_down, "{text} of {whole}");
        assert_eq!(serde_json::to_string(&amount).unwrap(), text);
    }

    #[test]
    fn an_amount_is_a_count_or_a_share() {
        check("1", 10, Some((1, 1)));
        check(r#""25%""#, 10, Some((3, 2)));
        check(r#""0%""#, 10, Some((0, 0)));
        check(r#""100%""#, u32::MAX, Some((u32::MAX, u32::MAX)));
        check(r#""4294967295%""#, u32::MAX, None);
        check(r#""some""#, 10, None);
    }
}
