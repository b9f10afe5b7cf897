//! What is in a snapshot, in numbers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use windlass_api::label;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;

use super::{EtcdMember, Gap, Snapshot, place};

/// What is in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSummary {
    /// When it was taken.
    #[schemars(with = "String")]
    pub taken_at: Timestamp,
    /// By what.
    pub taken_by: String,
    /// The clusters.
    pub clusters: Vec<ClusterSummary>,
    /// How many objects the management cluster has of each kind.
    pub management: BTreeMap<String, usize>,
    /// How many objects the workload clusters have of each kind, together.
    pub workloads: BTreeMap<String, usize>,
    /// The kinds that are only kept, and how many objects they have: no World has them.
    pub only_data: BTreeMap<String, usize>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// A cluster in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Which.
    pub cluster: NamespacedName,
    /// The oldest version of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many machines its control plane has.
    pub control_plane: usize,
    /// How many workers it has.
    pub workers: usize,
    /// How many nodes were seen; none where it could not be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// How many pods were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<usize>,
    /// The members of its etcd.
    pub members: Vec<EtcdMember>,
}

impl Snapshot {
    /// What is in it, in numbers.
    pub fn summary(&self) -> SnapshotSummary {
        let workloads = self.workloads.values().flat_map(|workload| &workload.objects);
        let of_kind = self.management.iter().filter(|object| object["kind"] == "Cluster");
        SnapshotSummary {
            taken_at: self.taken_at,
            taken_by: self.taken_by.clone(),
            clusters: of_kind.filter_map(|cluster| self.cluster(cluster)).collect(),
            management: counts(&self.management),
            workloads: counts(workloads),
            only_data: counts(self.only_data().map(|(_, object)| object)),
            gaps: self.gaps.clone(),
        }
    }

    fn cluster(&self, cluster: &Value) -> Option<ClusterSummary> {
        let [_, _, namespace, name] = place(cluster);
        let of_cluster = |machine: &&Value| {
            let [group, kind, beside, _] = place(machine);
            (group, kind, beside) == ("cluster.x-k8s.io", "Machine", namespace)
                && machine["spec"]["clusterName"] == name
        };
        let machines: Vec<&Value> = self.management.iter().filter(of_cluster).collect();
        let is_control_plane = |machine: &&&Value| !machine["metadata"]["labels"][label::CONTROL_PLANE.name].is_null();
        let control_plane = machines.iter().filter(is_control_plane).count();
        let versions = machines.iter().filter_map(|machine| machine["spec"]["version"].as_str());
        let versions = versions.filter_map(|text| text.parse::<KubernetesVersion>().ok());
        let cluster = NamespacedName { namespace: namespace.parse().ok()?, name: name.parse().ok()? };
        let workload = self.workloads.get(&cluster);
        let count = |kind: &str| {
            workload.map(|workload| workload.objects.iter().filter(|object| object["kind"] == kind).count())
        };
        Some(ClusterSummary {
            version: versions.min().map(|version| version.to_string()),
            control_plane,
            workers: machines.len() - control_plane,
            nodes: count("Node"),
            pods: count("Pod"),
            members: workload.map(|workload| workload.members.clone()).unwrap_or_default(),
            cluster,
        })
    }
}

/// How many there are of each kind.
fn counts<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}
