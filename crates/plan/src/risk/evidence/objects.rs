//! The objects that risks are found in, with the fields that decide them and no others.

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::kind::cluster_api::Amount;
use windlass_api::version::KubernetesVersion;

use super::{Gap, Known, Quantity};
use crate::inventory::Alarm;

/// A package that comes with a release.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The images that its pods are run from.
    pub images: Vec<Image>,
    /// The kinds of its objects.
    pub kinds: Vec<PackageKind>,
}

/// A package that is in another version before any machine is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// Its name.
    pub name: String,
    /// It connects pods.
    pub is_network: bool,
    /// The version that it has.
    pub from: String,
    /// The version that comes.
    pub to: String,
}

/// An image that pods of a package are run from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its whole name.
    pub name: String,
    /// Whether it is there.
    pub state: ImageState,
}

/// Whether an image is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ImageState {
    /// It is.
    There,
    /// It is not: it was looked for there.
    Missing(String),
    /// Nobody asked the registry.
    NotAsked,
}

/// The kind of an object of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageKind {
    /// The version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name of the object.
    pub object: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// It is one of the control plane.
    pub control_plane: bool,
    /// Its node, if it has one.
    pub node: Option<String>,
    /// It is on the way out.
    pub deleting: bool,
    /// What Cluster API says it is doing: `Running`.
    pub phase: String,
}

/// How many machines of a role there are more than now, at the worst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Surge {
    /// Whose: `the control plane`, `the pool workers`.
    pub role: String,
    /// So many: those that come before others go, and those by which it grows.
    pub machines: u32,
    /// The processors of each, where its class says so.
    pub cpus: Option<Quantity>,
    /// The memory of each, where its class says so.
    pub memory: Option<Quantity>,
    /// Why so many.
    pub why: String,
}

/// A health check of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// Its name, with the namespace.
    pub name: String,
    /// The machines that it looks after.
    pub machines: Vec<String>,
}

/// A resource of a quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// The quota, with the namespace.
    pub name: String,
    /// The resource: `count/machines.cluster.x-k8s.io`.
    pub resource: String,
    /// How much there may be.
    pub hard: Quantity,
    /// How much there is.
    pub used: Known<Quantity>,
}

/// Where addresses come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressPool {
    /// Its object, or the field that has it.
    pub name: String,
    /// What gets them: `ranges of pods`, `addresses of machines`.
    pub what: String,
    /// How many there are.
    pub addresses: Known<Addresses>,
    /// What to type, or which field to change, for more.
    pub way_out: String,
}

/// How many addresses there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Addresses {
    /// In all.
    pub total: u64,
    /// So many of them are taken.
    pub used: u64,
}

/// A certificate, or those of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Where that is said, as `Kind ns/name`.
    pub object: String,
    /// Whose it is: the name of the machine, or the subject of the certificate.
    pub name: String,
    /// What it is for.
    pub of: CertificateOf,
    /// When it ends.
    pub expires: Known<Timestamp>,
    /// It is made anew with its machine, and that machine would be replaced.
    pub renewed: bool,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CertificateOf {
    /// A machine of the control plane has it, among others.
    Machine,
    /// It signs all others.
    Authority,
    /// Windlass shows it to the API of the cluster.
    Kubeconfig,
}

/// A Secret without which no machine can join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSecret {
    /// Its name, with the namespace.
    pub name: String,
    /// Who owns it, as `Kind/name`; `None` if it is not there.
    pub owners: Option<Vec<String>>,
    /// The Cluster that is there now is among them.
    pub lasts: bool,
}

/// An update on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    /// The name of the `ClusterUpdate`.
    pub name: String,
    /// The distribution that it leads to.
    pub to: String,
    /// How it goes, or went.
    pub state: UpdateState,
    /// What it waits for, or why it failed.
    pub because: Vec<String>,
}

/// How an update goes, or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateState {
    /// It goes on.
    Running,
    /// It is done.
    Succeeded,
    /// It gave up.
    Failed,
    /// Somebody had it given up.
    Aborted,
}

/// Something that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// What is held, as `Kind ns/name`.
    pub object: String,
    /// How: `spec.paused is true`.
    pub how: String,
    /// How much of the cluster that is.
    pub on: HoldOn,
    /// What would end it.
    pub way_out: String,
}

/// How much of a cluster is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HoldOn {
    /// All of it.
    Cluster,
    /// A pool: its machines stay as they are.
    Pool,
    /// A machine, once it is on the way out: whoever holds it may let go by himself.
    Machine,
}

/// What keeps an object as a repository has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Keeper {
    /// The object, as `Kind ns/name`.
    pub object: String,
    /// The tool: `Argo CD`.
    pub tool: String,
    /// What of it has the object: `the Application fleet`.
    pub of: String,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// The node that it runs on; empty while it has not started.
    pub name: String,
    /// It answers.
    pub healthy: bool,
    /// It does not vote yet.
    pub learner: bool,
    /// The version that it runs, where that is known.
    pub version: Option<KubernetesVersion>,
    /// What it warns of.
    pub alarms: Known<Vec<Alarm>>,
}

impl Member {
    /// What people know it by.
    pub fn shown(&self) -> String {
        if self.name.is_empty() { format!("{:x}", self.id) } else { self.name.clone() }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// It is one of the control plane.
    pub control_plane: bool,
    /// The version of its kubelet, where it says one.
    pub kubelet: Option<KubernetesVersion>,
    /// What is wrong with it: `it is not ready: …`, `it is short of memory`.
    pub unwell: Vec<String>,
    /// Nothing new is put on it.
    pub cordoned: bool,
    /// How long its machine waits for pods to leave before it goes without; `None` if it waits for ever.
    pub drain_timeout_seconds: Option<u64>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Its name, with the namespace.
    pub name: String,
    /// The node that it is on.
    pub node: Option<String>,
    /// Who made it and will make another, as `Kind/name`.
    pub owner: Option<String>,
    /// The package of Windlass that it is part of.
    pub package: Option<String>,
    /// It stays when its node is drained: a `DaemonSet` has it, its kubelet runs it by itself, or a label says so.
    pub stays: bool,
    /// It has ended.
    pub ended: bool,
    /// It has not begun to run.
    pub pending: bool,
    /// Why it is not ready; `None` if it is.
    pub not_ready: Option<String>,
    /// Its volumes that are gone with its node.
    pub scratch: Vec<String>,
    /// The names of its claims.
    pub claims: Vec<String>,
    /// The images that it cannot get.
    pub pull_failures: Vec<PullFailure>,
}

/// An image that a pod cannot get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PullFailure {
    /// The image.
    pub image: String,
    /// What the kubelet says: `ErrImagePull: not found`.
    pub why: String,
}

/// A budget of pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Its name, with the namespace.
    pub name: String,
    /// The pods that it is for, by name with the namespace.
    pub pods: Vec<String>,
    /// How many must be available.
    pub min_available: Option<Amount>,
    /// How many may not be.
    pub max_unavailable: Option<Amount>,
    /// How many pods there should be, where its controller says so.
    pub expected: Option<u32>,
    /// Pods that are not ready may go whatever the others do.
    pub lets_unready_go: bool,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// The claim that has it, with the namespace.
    pub claim: Option<String>,
    /// It is a part of one node: `local`, `hostPath`.
    pub on_node: Option<String>,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its configuration, as `Kind name`.
    pub configuration: String,
    /// Its own name.
    pub name: String,
    /// A request is refused when it does not answer.
    pub fails_closed: bool,
    /// How long it may take to answer.
    pub timeout_seconds: u64,
    /// What nodes need to join and to live that it is asked about: `nodes`, `leases`.
    pub node_resources: Vec<String>,
    /// Who answers: a service with its namespace, or an address.
    pub answers: String,
    /// How many ready pods that service has; `None` where it is no service of this cluster.
    pub ready_pods: Known<Option<u32>>,
}

/// An API that others serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiService {
    /// Its name: `v1beta1.metrics.k8s.io`.
    pub name: String,
    /// Why it is not available; `None` if it is.
    pub unavailable: Option<String>,
}

/// The definition of a custom resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The versions that objects may be stored in.
    pub stored: Vec<String>,
    /// The versions that it has.
    pub versions: Vec<DefinitionVersion>,
}

/// A version of a custom resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionVersion {
    /// Its name.
    pub name: String,
    /// Objects can be read in it.
    pub served: bool,
    /// Objects are stored in it.
    pub storage: bool,
}

/// An object and the version of its kind that it is, or was written, in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiUse {
    /// The object, as `Kind ns/name`.
    pub object: String,
    /// The version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
}

/// A kind whose objects were not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadKind {
    /// The kind.
    pub kind: String,
    /// Why not.
    pub gap: Gap,
}

/// Who writes objects in which version of their kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The name that it writes under.
    pub name: String,
    /// The version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// An object that it wrote, as `Kind ns/name`.
    pub object: String,
    /// When it did so last.
    pub last: Option<Timestamp>,
}

/// Something that selects nodes by a label, or tolerates a taint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// The object, as `Kind ns/name`.
    pub object: String,
    /// The label or taint.
    pub key: String,
    /// It tolerates a taint; it selects by a label otherwise.
    pub tolerates: bool,
}
