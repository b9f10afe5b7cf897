//! What others do to machines while we roll them: Cluster API's health checks, which replace machines that are slow to join,
//! and its rules of draining. Both are written by people; read by us, who say in advance what they will do to an update.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use super::Condition;
use super::cluster_api::Amount;

/// Which machines are replaced because something is wrong with them.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineHealthCheck",
    namespaced,
    status = "MachineHealthCheckStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// The cluster of the machines.
    #[serde(default)]
    pub cluster_name: String,
    /// Which machines.
    #[serde(default)]
    pub selector: LabelSelector,
    /// When something is wrong with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// Whether it is replaced then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
}

/// When something is wrong with a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthChecks {
    /// It has no node after so long. Ten minutes where nothing is said, and 0 for never: an update whose machines take longer
    /// to join would not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout_seconds: Option<u32>,
    /// Its node has one of these conditions for too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_node_conditions: Vec<UnhealthyCondition>,
    /// It has one of these conditions itself for too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_machine_conditions: Vec<UnhealthyCondition>,
}

/// A condition that something is wrong with whoever has it for too long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyCondition {
    /// What it is about.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// For how long.
    #[serde(default)]
    pub timeout_seconds: u32,
}

/// Whether a machine is replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remediation {
    /// Only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<RemediationTrigger>,
}

/// When machines are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationTrigger {
    /// As long as something is wrong with no more of them than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_less_than_or_equal_to: Option<Amount>,
    /// As long as something is wrong with so many of them, as `[3-5]`; the other is then not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_in_range: Option<String>,
}

/// What a health check sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// The generation that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many machines it looks at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_machines: Option<u32>,
    /// How many of them are well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_healthy: Option<u32>,
    /// How many more it may replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediations_allowed: Option<u32>,
    /// The names of the machines that it looks at, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// `RemediationAllowed`, `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How pods leave a machine that is removed.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDrainRule",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
pub struct MachineDrainRuleSpec {
    /// How.
    #[serde(default)]
    pub drain: Drain,
    /// From which machines: all of the namespace where none are said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<DrainedMachines>,
    /// Which pods: all where none are said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<DrainedPods>,
}

/// How pods leave a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// `Drain`, `Skip`, or `WaitCompleted`: nobody evicts them, and the machine stays until they have ended by themselves.
    #[serde(default)]
    pub behavior: String,
    /// Those with a lower number go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
}

/// Machines that a rule of draining is for. Both must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainedMachines {
    /// By their own labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// By those of their cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<LabelSelector>,
}

/// Pods that a rule of draining is for. Both must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainedPods {
    /// By their own labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// By those of their namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}
