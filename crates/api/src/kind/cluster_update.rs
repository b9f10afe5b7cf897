//! `ClusterUpdate`: our record of one update.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;
use crate::annotation;
use crate::key::KeyError;
use crate::name::{UpdateId, UpdateIdError};

/// What is changed, and from what. Written once, before the first write of the update, and never changed.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "ClusterUpdate",
    namespaced,
    status = "ClusterUpdateStatus",
    shortname = "cu",
    category = "windlass",
    doc = "One update of a workload cluster: what it changes, how far it is, what it waits for, and how it ended.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Change", type_ = "string", json_path = ".spec.cause.summary"),
    printcolumn(name = "Stage", type_ = "string", json_path = ".status.stage"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Waiting For", type_ = "string", json_path = ".status.waitingFor[0].message"),
    printcolumn(name = "From", type_ = "string", json_path = ".spec.from.distribution", priority = 1),
    printcolumn(name = "To", type_ = "string", json_path = ".spec.to.distribution", priority = 1),
    printcolumn(name = "Id", type_ = "string", json_path = ".spec.id", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpdateSpec {
    /// The cluster, which is in the same namespace.
    pub cluster: String,
    /// Which update of the cluster it is; its creation was number 0.
    pub ordinal: u64,
    /// What tells the update from all others.
    pub id: String,
    /// What the cluster was.
    pub from: UpdateEnd,
    /// What the cluster is to be.
    pub to: UpdateEnd,
    /// The digest of what the update may do.
    pub envelope_digest: String,
    /// Why there is an update at all. The digest does not cover it: it is what was seen when the update began.
    #[serde(default)]
    pub cause: Cause,
    /// Who agreed to it, where that was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
}

/// Who agreed to an update: to its envelope, and to no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    /// Who.
    pub by: String,
    /// When that was acted on, as RFC 3339.
    pub at: String,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl ClusterUpdate {
    /// What machines, Jobs and templates of the update are named and marked by: the id of another one where that was adopted,
    /// and its own otherwise.
    pub fn id(&self) -> Result<UpdateId, ClusterUpdateIdError> {
        let none = BTreeMap::new();
        let adopted = annotation::ADOPT.get(self.metadata.annotations.as_ref().unwrap_or(&none))?;
        adopted.map_or_else(|| Ok(self.spec.id.parse()?), Ok)
    }
}

/// The id of an update cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ClusterUpdateIdError {
    /// The one that it has itself.
    #[error("spec.id")]
    Own(#[from] UpdateIdError),
    /// The one that it was told to adopt.
    #[error(transparent)]
    Adopted(#[from] KeyError),
}

/// Why there is an update: what differed when it began, and who asked for that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// All of it in a line: `class best-effort-small -> best-effort-large (owner): 3 control-plane machines`.
    #[serde(default)]
    pub summary: String,
    /// The fields that differed, those that replace machines first, and not all of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeRecord>,
}

/// A field that differed when an update began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRecord {
    /// The stage in which it is changed.
    pub stage: String,
    /// What the object is to the cluster: `control-plane/0`, `workers/default`.
    pub role: String,
    /// The field.
    pub field: String,
    /// What it was; nothing if it was not there, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is to be; nothing if it is not to be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Who asked for it.
    pub origin: ChangeOrigin,
}

/// Who asked for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChangeOrigin {
    /// Whoever owns the cluster.
    Owner,
    /// The release.
    Release,
    /// Nobody but this version of Windlass, which has other defaults.
    Windlass,
}

/// One end of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnd {
    /// The distribution version. Where machines differ it is the oldest.
    pub distribution: String,
    /// The version of Kubernetes in it.
    pub kubernetes: String,
    /// The digest of what the release says, by which it is kept for the cluster; nothing if nobody knows it any more. An update
    /// goes on with what the release said when it began, whatever becomes of its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The machines of the control plane.
    pub control_plane: super::tanzu::Machines,
    /// The workers of a cluster that has one pool of them.
    pub workers: super::tanzu::Machines,
    /// The pools of workers of a cluster that may have several, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolEnd>,
    /// The pools whose machines keep the version that they have, because this end is only a hop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_pools: Vec<String>,
    /// What would be made otherwise now, for no reason that is named above: an image has another name, or Windlass has other
    /// defaults. By role: `control-plane/0`, `workers/default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outdated: Vec<String>,
    /// What Windlass decides of how nodes register, where neither the owner nor the release does. An update goes on with what it
    /// was begun with, whichever Windlass goes on with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, String>,
}

/// A pool of workers at one end of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolEnd {
    /// Its name.
    pub name: String,
    /// Its machines.
    #[serde(flatten)]
    pub machines: super::tanzu::Machines,
}

/// How far an update is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpdateStatus {
    /// The whole in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<UpdateState>,
    /// The stage that is being worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What it waits for. Never empty while it runs and does nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<WaitingFor>,
    /// When each stage began and ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    /// When it began, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When each pool of workers that is not at rest last moved. A pool that stands still for too long fails the update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<PoolProgressRecord>,
    /// What was written for it, in the order in which it was begun. Of very many the oldest are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Each attempt to replace the control plane, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An update in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateState {
    /// It goes on.
    Running,
    /// It is done.
    Succeeded,
    /// It gave up; a person has to look.
    Failed,
    /// Somebody wanted it to be given up, and it was: the cluster is what it was when the update began.
    Aborted,
}

/// Something that an update waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// The stage that waits.
    pub stage: String,
    /// Why, in one word.
    pub reason: String,
    /// The object that it waits for, as `Kind/name`.
    pub object: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when it waits for this object for this reason, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What a person can do about it; nothing where waiting is all there is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
    /// What is behind it, each because of the next. The last is the cause, with what a person can do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// Until when it is waited for, as RFC 3339; nothing where there is no end to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

/// Something that was written for an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// What the object is to the cluster, as in the envelope: `control-plane/Job`.
    pub id: String,
    /// The stage.
    pub stage: String,
    /// `create`, `apply` or `delete`.
    pub verb: String,
    /// The object, as `Kind/name`.
    pub object: String,
    /// When it was begun, as RFC 3339.
    pub started_at: String,
    /// When it was over, as RFC 3339; nothing while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// What came of it; nothing while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepOutcome {
    /// It was made, or found to be made already.
    Done,
    /// It could not be made.
    Failed,
    /// The world was not as it was planned for; it was planned anew.
    Outdated,
}

/// An attempt to replace the control plane: a pod of the Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRecord {
    /// Which attempt of the update it is, from 1 on.
    pub number: u32,
    /// The pod.
    pub pod: String,
    /// When it began, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// The exit code, when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it said at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// When a pool of workers last moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolProgressRecord {
    /// Which pool.
    pub pool: String,
    /// A digest of how many machines it has, which, and how far each of them is.
    pub fingerprint: String,
    /// When it became so, as RFC 3339.
    pub moved_at: String,
}

/// When a stage began and ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageRecord {
    /// Which stage.
    pub stage: String,
    /// When it began, as RFC 3339; nothing if there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}
