//! What is known of one cluster before an update touches it: data, and nothing that could ask for more.
//!
//! Whoever fills it in says of each part either what was read or why it was not. A part that has no objects is an empty list,
//! and no [`Gap`].

mod objects;
mod quantity;

use jiff::Timestamp;
use serde::Serialize;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;

pub use objects::{
    AddressPool, Addresses, Ahead, ApiService, ApiUse, Budget, Certificate, CertificateOf, CertificateSecret, Client,
    Definition, DefinitionVersion, HealthCheck, Hold, HoldOn, Image, ImageState, Keeper, Machine, Member, Node,
    Package, PackageKind, Pod, PullFailure, Quota, Selection, Surge, UnreadKind, Update, UpdateState, Volume, Webhook,
};
pub use quantity::Quantity;

/// What is known of one cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The cluster.
    pub cluster: NamespacedName,
    /// When it was read, by the clock of whoever read it.
    pub at: Timestamp,
    /// Which machines would be replaced.
    pub rolls: Rolls,
    /// What the cluster has.
    pub from: Known<Versions>,
    /// What it is to have.
    pub to: Known<Versions>,
    /// The packages that come with that.
    pub packages: Known<Vec<Package>>,
    /// The core packages that come before any machine, in another version than they have; none where packages are bound to nodes.
    pub ahead: Known<Vec<Ahead>>,
    /// The packages that somebody else has brought in, each by its name and what it is for.
    pub unmanaged: Known<Vec<String>>,
    /// What its owner chose that the release does not have, in words.
    pub not_offered: Known<Vec<String>>,
    /// The machines.
    pub machines: Known<Vec<Machine>>,
    /// How many machines more than now there are at the worst, by role.
    pub surges: Known<Vec<Surge>>,
    /// The health checks of machines.
    pub health_checks: Known<Vec<HealthCheck>>,
    /// The quotas of the namespace that the machines are in, one for each resource.
    pub quotas: Known<Vec<Quota>>,
    /// Where addresses of machines and pods come from.
    pub address_pools: Known<Vec<AddressPool>>,
    /// The certificates that the cluster cannot do without.
    pub certificates: Known<Vec<Certificate>>,
    /// The Secrets without which no machine can join.
    pub certificate_secrets: Known<Vec<CertificateSecret>>,
    /// The updates on record, oldest first.
    pub updates: Known<Vec<Update>>,
    /// Who holds what.
    pub holds: Known<Vec<Hold>>,
    /// What keeps the cluster's own object as a repository has it, if something does.
    pub keepers: Known<Vec<Keeper>>,
    /// The members of etcd.
    pub members: Known<Vec<Member>>,
    /// The nodes.
    pub nodes: Known<Vec<Node>>,
    /// The pods.
    pub pods: Known<Vec<Pod>>,
    /// The budgets of pods.
    pub budgets: Known<Vec<Budget>>,
    /// The volumes.
    pub volumes: Known<Vec<Volume>>,
    /// The webhooks of the workload cluster.
    pub webhooks: Known<Vec<Webhook>>,
    /// The APIs of the workload cluster that others serve.
    pub api_services: Known<Vec<ApiService>>,
    /// The definitions of custom resources in the workload cluster.
    pub definitions: Known<Vec<Definition>>,
    /// Objects, of kinds that may go.
    pub objects: Known<Vec<ApiUse>>,
    /// Objects as they were last applied from a manifest.
    pub manifests: Known<Vec<ApiUse>>,
    /// Who writes objects in which version of their kind.
    pub clients: Known<Vec<Client>>,
    /// Kinds that lose a version some day, and whose objects were not read.
    pub unread_kinds: Vec<UnreadKind>,
    /// What selects nodes by a label, or tolerates a taint.
    pub selections: Known<Vec<Selection>>,
}

impl Evidence {
    /// The evidence of somebody who has read nothing.
    pub fn nothing(cluster: NamespacedName, at: Timestamp, rolls: Rolls) -> Self {
        Self {
            cluster,
            at,
            rolls,
            from: nobody("the release of the cluster"),
            to: nobody("the release that is asked for"),
            packages: nobody("the packages of the release"),
            ahead: nobody("the packages of the cluster"),
            unmanaged: nobody("the packages of the cluster"),
            not_offered: nobody("the choices of the owner"),
            machines: nobody("Machines"),
            surges: nobody("MachineDeployments"),
            health_checks: nobody("MachineHealthChecks"),
            quotas: nobody("ResourceQuotas"),
            address_pools: nobody("pools of addresses"),
            certificates: nobody("the dates of certificates"),
            certificate_secrets: nobody("Secrets"),
            updates: nobody("ClusterUpdates"),
            holds: nobody("what is held"),
            keepers: nobody("the object of the cluster"),
            members: nobody("the members of etcd"),
            nodes: nobody("Nodes"),
            pods: nobody("Pods"),
            budgets: nobody("PodDisruptionBudgets"),
            volumes: nobody("PersistentVolumes"),
            webhooks: nobody("webhook configurations"),
            api_services: nobody("APIServices"),
            definitions: nobody("CustomResourceDefinitions"),
            objects: nobody("objects"),
            manifests: nobody("the manifests that were applied"),
            clients: nobody("the clients that write objects"),
            unread_kinds: Vec::new(),
            selections: nobody("what selects nodes"),
        }
    }
}

fn nobody<T>(what: &str) -> Known<T> {
    Known::unread(what, "nobody looked")
}

/// What was read, or why it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Known<T> {
    /// It was read. An empty list says that there is nothing.
    Read(T),
    /// It was not.
    Unread(Gap),
}

impl<T> Known<T> {
    /// Something that was not read.
    pub fn unread(what: &str, why: &str) -> Self {
        Self::Unread(Gap::new(what, why))
    }

    /// What was read, or what is missing.
    pub fn as_result(&self) -> Result<&T, &Gap> {
        match self {
            Self::Read(read) => Ok(read),
            Self::Unread(gap) => Err(gap),
        }
    }

    /// What was read, if it was.
    pub fn read(&self) -> Option<&T> {
        self.as_result().ok()
    }

    /// The same, by reference.
    pub fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Read(read) => Known::Read(read),
            Self::Unread(gap) => Known::Unread(gap.clone()),
        }
    }

    /// The same, made of what was read.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Read(read) => Known::Read(make(read)),
            Self::Unread(gap) => Known::Unread(gap),
        }
    }
}

/// Something that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// What: `ResourceQuotas`.
    pub what: String,
    /// Why not.
    pub why: String,
    /// How it can be known.
    pub way_out: String,
}

impl Gap {
    /// Something that whoever may read it could have read.
    pub fn new(what: &str, why: &str) -> Self {
        let way_out = format!("windlass snapshot take, as somebody who may read {what}");
        Self { what: what.to_owned(), why: why.to_owned(), way_out }
    }
}

/// Which machines would be replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rolls {
    /// Those of the control plane.
    pub control_plane: bool,
    /// The workers.
    pub workers: bool,
}

impl Rolls {
    /// Every machine.
    pub const ALL: Self = Self { control_plane: true, workers: true };
    /// None.
    pub const NONE: Self = Self { control_plane: false, workers: false };

    /// Whether any machine would be.
    pub fn any(self) -> bool {
        self.control_plane || self.workers
    }

    /// Whether machines of this role would be.
    pub fn replaces(self, control_plane: bool) -> bool {
        if control_plane { self.control_plane } else { self.workers }
    }
}

/// The versions of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Of the whole.
    pub distribution: KubernetesVersion,
    /// Of Kubernetes in it.
    pub kubernetes: KubernetesVersion,
    /// The tag of etcd's image; `None` leaves it to kubeadm.
    pub etcd: Option<String>,
}
