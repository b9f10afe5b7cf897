//! A management cluster and its workload clusters, read once and kept: what a rehearsal of a real update starts from.
//!
//! Only reads are made. What is secret is replaced by stand-ins as it arrives. A snapshot is kept as a folder of files that
//! people can read.

mod diff;
mod folder;
mod kinds;
mod redact;
mod restore;
mod summary;
mod take;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;
use windlass_controller::hooks;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::workload::Alarm;

pub use diff::{Change, Changed, Field, SnapshotDiff};
pub use folder::{LoadError, SaveError};
pub use restore::RestoreError;
pub use summary::{ClusterSummary, SnapshotSummary};
pub use take::{TakeError, take};

/// What was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// When.
    pub taken_at: Timestamp,
    /// By which program, and its version.
    pub taken_by: String,
    /// The objects of the management cluster, by kind and name.
    pub management: Vec<Value>,
    /// The workload clusters.
    pub workloads: BTreeMap<NamespacedName, WorkloadSnapshot>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// What was read of a workload cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSnapshot {
    /// Its objects, by kind and name.
    pub objects: Vec<Value>,
    /// The members of its etcd, as far as they were seen.
    pub members: Vec<EtcdMember>,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Its id.
    pub id: u64,
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It does not count in the quorum yet.
    pub learner: bool,
    /// It answers.
    pub healthy: bool,
    /// It leads.
    pub leader: bool,
    /// The version that it runs, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<KubernetesVersion>,
    /// What it warns of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub alarms: BTreeSet<Alarm>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// What: `machines of the management cluster`, `the workload cluster default/my-tkc`.
    pub what: String,
    /// Why not.
    pub why: String,
    /// What somebody can do about it.
    pub way_out: String,
}

/// Where programs leave the manifest that they applied. A snapshot has its version, kind and name.
pub(crate) const MANIFESTS: [&str; 2] = ["kubectl.kubernetes.io/last-applied-configuration", "kapp.k14s.io/original"];

/// What a snapshot has of a certificate in a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateDates {
    /// The entry of the Secret that it is in.
    pub key: String,
    /// Whose it is.
    pub subject: String,
    /// From when on it is good.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
}

impl Snapshot {
    /// How clusters of a class are held there until their packages are in: where Cluster API is told to ask us, by hooks.
    pub fn hold_by(&self) -> HoldBy {
        let is_ours =
            |object: &&Value| object["kind"] == "ExtensionConfig" && object["metadata"]["name"] == hooks::CONFIG;
        if self.management.iter().any(|object| is_ours(&object)) { HoldBy::Hooks } else { HoldBy::Pause }
    }

    /// The objects that are only kept, with the cluster that they are of where it is no management cluster: a World has none
    /// of them. Webhooks and API services of others are among them: they are data to judge by, and are never called.
    pub fn only_data(&self) -> impl Iterator<Item = (Option<&NamespacedName>, &Value)> {
        let infrastructure = kinds::Infrastructure::among(&self.management);
        let rows = infrastructure.with_management();
        let is_only_data = |object: &&Value| kinds::is_only_data(&rows, object);
        let management: Vec<&Value> = self.management.iter().filter(is_only_data).collect();
        let management = management.into_iter().map(|object| (None, object));
        let workloads = self.workloads.iter().flat_map(|(cluster, workload)| {
            kinds::only_data(kinds::workload(), &workload.objects).map(move |object| (Some(cluster), object))
        });
        management.chain(workloads)
    }
}

/// The name in paths of a kind that is read of management clusters; `None` if it is not read.
pub(crate) fn management_plural(kind: &str) -> Option<String> {
    plural(kinds::management(), kind)
}

/// The name in paths of a kind that is read of workload clusters; `None` if it is not read.
pub(crate) fn workload_plural(kind: &str) -> Option<String> {
    plural(kinds::workload(), kind)
}

fn plural(rows: &[kinds::Row], kind: &str) -> Option<String> {
    rows.iter().map(kinds::Row::resource).find(|row| row.kind == kind).map(|row| row.plural)
}

/// Where an object stands among others: group and kind, then namespace and name.
pub(crate) fn place(object: &Value) -> [&str; 4] {
    let metadata = &object["metadata"];
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let [kind, namespace, name] =
        [&object["kind"], &metadata["namespace"], &metadata["name"]].map(|value| value.as_str().unwrap_or_default());
    [group, kind, namespace, name]
}

/// Puts objects into the order in which they are kept.
fn sort(objects: &mut [Value]) {
    objects.sort_by(|a, b| place(a).cmp(&place(b)));
}
