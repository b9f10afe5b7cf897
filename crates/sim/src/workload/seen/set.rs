//! What has pods: sets of them, and Jobs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Amount, Condition, Meta, Template, Truth};

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct DaemonSet {
    pub(in crate::workload) metadata: Meta,
    pub(in crate::workload) spec: DaemonSetSpec,
    #[serde(default)]
    pub(in crate::workload) status: DaemonSetStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::workload) struct DaemonSetSpec {
    pub(in crate::workload) template: Template,
    #[serde(default)]
    pub(in crate::workload) update_strategy: Strategy,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct DaemonSetStatus {
    pub(in crate::workload) current_number_scheduled: i64,
    pub(in crate::workload) desired_number_scheduled: i64,
    pub(in crate::workload) number_available: i64,
    pub(in crate::workload) number_misscheduled: i64,
    pub(in crate::workload) number_ready: i64,
    pub(in crate::workload) number_unavailable: i64,
    pub(in crate::workload) observed_generation: i64,
    pub(in crate::workload) updated_number_scheduled: i64,
}

/// How pods are replaced by newer ones.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct Strategy {
    #[serde(rename = "type")]
    pub(in crate::workload) type_: Box<str>,
    pub(in crate::workload) rolling_update: RollingUpdate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct RollingUpdate {
    pub(in crate::workload) max_surge: Option<Amount>,
    pub(in crate::workload) max_unavailable: Option<Amount>,
    /// The pods of a `StatefulSet` below this number stay as they are.
    pub(in crate::workload) partition: i64,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct Deployment {
    pub(in crate::workload) metadata: Meta,
    pub(in crate::workload) spec: DeploymentSpec,
    #[serde(default)]
    pub(in crate::workload) status: DeploymentStatus,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct DeploymentSpec {
    #[serde(default = "one")]
    pub(in crate::workload) replicas: i64,
    pub(in crate::workload) selector: Box<RawValue>,
    pub(in crate::workload) template: Template,
    #[serde(default)]
    pub(in crate::workload) strategy: Strategy,
    /// A new template waits.
    #[serde(default)]
    pub(in crate::workload) paused: bool,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct DeploymentStatus {
    pub(in crate::workload) available_replicas: i64,
    pub(in crate::workload) observed_generation: i64,
    pub(in crate::workload) ready_replicas: i64,
    pub(in crate::workload) replicas: i64,
    pub(in crate::workload) unavailable_replicas: i64,
    pub(in crate::workload) updated_replicas: i64,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct ReplicaSet {
    pub(in crate::workload) metadata: Meta,
    pub(in crate::workload) spec: ReplicaSetSpec,
    #[serde(default)]
    pub(in crate::workload) status: ReplicaSetStatus,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct ReplicaSetSpec {
    #[serde(default = "one")]
    pub(in crate::workload) replicas: i64,
    pub(in crate::workload) template: Template,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct ReplicaSetStatus {
    pub(in crate::workload) available_replicas: i64,
    pub(in crate::workload) fully_labeled_replicas: i64,
    pub(in crate::workload) observed_generation: i64,
    pub(in crate::workload) ready_replicas: i64,
    pub(in crate::workload) replicas: i64,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct StatefulSet {
    pub(in crate::workload) metadata: Meta,
    pub(in crate::workload) spec: StatefulSetSpec,
    #[serde(default)]
    pub(in crate::workload) status: StatefulSetStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::workload) struct StatefulSetSpec {
    #[serde(default = "one")]
    pub(in crate::workload) replicas: i64,
    #[serde(default)]
    pub(in crate::workload) service_name: Box<str>,
    #[serde(default)]
    pub(in crate::workload) pod_management_policy: Box<str>,
    #[serde(default)]
    pub(in crate::workload) update_strategy: Strategy,
    pub(in crate::workload) template: Template,
    #[serde(default)]
    pub(in crate::workload) volume_claim_templates: Vec<Box<RawValue>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct StatefulSetStatus {
    pub(in crate::workload) available_replicas: i64,
    pub(in crate::workload) collision_count: i64,
    pub(in crate::workload) current_replicas: i64,
    pub(in crate::workload) current_revision: Box<str>,
    pub(in crate::workload) observed_generation: i64,
    pub(in crate::workload) ready_replicas: i64,
    pub(in crate::workload) replicas: i64,
    pub(in crate::workload) update_revision: Box<str>,
    pub(in crate::workload) updated_replicas: i64,
}

#[derive(Debug, Deserialize)]
pub(in crate::workload) struct Job {
    pub(in crate::workload) metadata: Meta,
    pub(in crate::workload) spec: JobSpec,
    #[serde(default)]
    pub(in crate::workload) status: JobStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::workload) struct JobSpec {
    #[serde(default = "one")]
    pub(in crate::workload) parallelism: i64,
    /// Without it one pod that ends well is enough.
    #[serde(default)]
    pub(in crate::workload) completions: Option<i64>,
    #[serde(default = "six")]
    pub(in crate::workload) backoff_limit: i64,
    #[serde(default)]
    pub(in crate::workload) active_deadline_seconds: Option<i64>,
    #[serde(default)]
    pub(in crate::workload) suspend: bool,
    pub(in crate::workload) template: Template,
}

/// What Kubernetes gives a Job that does not say how often it is tried again.
fn six() -> i64 {
    6
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::workload) struct JobStatus {
    pub(in crate::workload) active: i64,
    pub(in crate::workload) ready: i64,
    pub(in crate::workload) succeeded: i64,
    pub(in crate::workload) failed: i64,
    pub(in crate::workload) start_time: Option<Timestamp>,
    conditions: Vec<Condition>,
}

impl JobStatus {
    /// Whether nothing will be tried any more.
    pub(in crate::workload) fn ended(&self) -> bool {
        let ends = |condition: &Condition| matches!(&*condition.type_, "Complete" | "Failed");
        self.conditions.iter().any(|condition| ends(condition) && condition.status == Truth::True)
    }
}
