//! `TanzuKubernetesCluster`: a workload cluster in one object.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;
use super::cluster_update::WaitingFor;

/// What a workload cluster is asked to be.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "run.tanzu.vmware.com",
    version = "v1alpha1",
    kind = "TanzuKubernetesCluster",
    namespaced,
    status = "TanzuKubernetesClusterStatus",
    shortname = "tkc",
    category = "windlass",
    doc = "A workload cluster: its machines, its release and its network.",
    printcolumn(name = "Control Plane", type_ = "integer", json_path = ".spec.topology.controlPlane.count"),
    printcolumn(name = "Worker", type_ = "integer", json_path = ".spec.topology.workers.count"),
    printcolumn(name = "Distribution", type_ = "string", json_path = ".spec.distribution.fullVersion"),
    printcolumn(name = "Running", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Waiting For", type_ = "string", json_path = ".status.waitingFor"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        priority = 1
    ),
    printcolumn(
        name = "Updates Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpdatesAvailable")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct TanzuKubernetesClusterSpec {
    /// How many machines of which sort.
    pub topology: Topology,
    /// Which release.
    pub distribution: Distribution,
    /// The network inside of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

/// How many machines of which sort.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// The machines that run the API, the controllers and etcd.
    pub control_plane: Machines,
    /// The machines that run everything else.
    pub workers: Machines,
}

/// Some machines that are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machines {
    /// How many.
    #[schemars(range(min = 0, max = 1000))]
    pub count: u32,
    /// The `VirtualMachineClass`: how much of everything each has.
    pub class: String,
    /// The `StorageClass` of their disks.
    pub storage_class: String,
}

/// Which release a cluster has. Whoever changes `version` sets `fullVersion` to null, so that it is resolved again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// A hint: the beginning of the version of a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The release, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_version: Option<String>,
}

/// What else can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The network inside of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// The network inside of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Who connects the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<Cni>,
    /// The addresses of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<CidrBlocks>,
    /// The addresses of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<CidrBlocks>,
    /// The domain of the names of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_domain: Option<String>,
}

/// Who connects the pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cni {
    /// `calico` or `antrea`.
    pub name: String,
}

/// Ranges of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CidrBlocks {
    /// Each as `192.0.2.0/16`.
    pub cidr_blocks: Vec<String>,
}

/// How a cluster is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TanzuKubernetesClusterStatus {
    /// The whole in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The distribution that all machines have. While an update runs it is still the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The update that is running, or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    /// What the cluster waits for, in one line; nothing when it waits for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// All that it waits for and what is behind it, while no update is running: the record of an update has its own. And what is
    /// not as it should be although nothing waits for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitingFor>,
    /// The generation that all this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The add-ons, by what they are for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addons: BTreeMap<String, AddonStatus>,
    /// Facts that others can wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The whole of a cluster in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It is being made.
    Creating,
    /// It could not be made.
    Failed,
    /// It is as it was asked to be.
    Running,
    /// It is as it was asked to be, and something in it does not work.
    Unhealthy,
    /// It is being changed.
    Updating,
    /// A change failed; a person has to look.
    UpdateFailed,
    /// It is being removed.
    Deleting,
}

impl Phase {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Unhealthy => "unhealthy",
            Self::Updating => "updating",
            Self::UpdateFailed => "updateFailed",
            Self::Deleting => "deleting",
        }
    }
}

/// How an add-on is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonStatus {
    /// Its name.
    pub name: String,
    /// Whether it is in the cluster.
    pub status: AddonPhase,
    /// The version that is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error_message: Option<String>,
}

/// Whether an add-on is in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AddonPhase {
    /// Not yet: mostly because the workload cluster cannot be reached yet.
    Pending,
    /// Its objects are as they should be.
    Applied,
    /// Its objects could not be made so.
    Error,
    /// Somebody else installed it.
    Unmanaged,
}
