//! What every controller has at hand.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::DynamicObject;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::machine_health::{MachineDrainRule, MachineHealthCheck};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};
use windlass_api::kind::wcp::{WCPCluster, WCPMachine};
use windlass_api::name::{NameError, NamespacedName};
use windlass_api::{annotation, label};
use windlass_runtime::cache::Cache;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Ctx, Outcome};

use super::cluster::Pace;
use super::infrastructure::provided::Others;
use super::job::Processes;
use super::kubeadm_control_plane::{Components, Wire};
use super::machine::Nodes;
use super::topology::Applied;
use crate::door::{DoorError, Doors};
use crate::durations::{self, Durations, Spread};
use crate::fault::Faults;
use crate::program::Programs;
use crate::workload::Workloads;

/// One turn of a controller.
pub(super) type Turn = Ctx<Context>;

/// What every controller has at hand.
pub(super) struct Context {
    pub client: Client,
    pub workloads: Workloads,
    pub doors: Arc<dyn Doors>,
    pub clock: Clock,
    pub seed: Seed,
    pub durations: Durations,
    pub faults: Faults,
    pub caches: Caches,
    pub nodes: Nodes,
    pub components: Components,
    pub wire: Wire,
    pub applied: Applied,
    pub pace: Pace,
    pub processes: Processes,
    /// Who answers what Cluster API asks.
    pub programs: Arc<dyn Programs>,
    /// Who looks for a place for a machine where there are limits does so alone.
    pub placing: Arc<tokio::sync::Mutex<()>>,
}

/// What the watches have seen.
#[derive(Clone)]
pub(super) struct Caches {
    pub clusters: Cache<Cluster>,
    pub machines: Cache<Machine>,
    pub machine_sets: Cache<MachineSet>,
    pub machine_deployments: Cache<MachineDeployment>,
    pub control_planes: Cache<KubeadmControlPlane>,
    /// As they are on the wire, like all templates.
    pub control_plane_templates: Cache<DynamicObject>,
    pub cluster_classes: Cache<ClusterClass>,
    pub extensions: Cache<ExtensionConfig>,
    pub health_checks: Cache<MachineHealthCheck>,
    pub drain_rules: Cache<MachineDrainRule>,
    pub bootstraps: Cache<KubeadmConfig>,
    /// As they are on the wire: what is cloned from them must lose nothing.
    pub bootstrap_templates: Cache<DynamicObject>,
    pub cluster_infrastructures: Cache<WCPCluster>,
    /// As above.
    pub cluster_templates: Cache<DynamicObject>,
    pub machine_infrastructures: Cache<WCPMachine>,
    /// As above.
    pub infrastructure_templates: Cache<DynamicObject>,
    /// The infrastructure of other providers.
    pub others: Others,
    pub images: Cache<VirtualMachineImage>,
    pub machine_classes: Cache<VirtualMachineClass>,
    pub storage_classes: Cache<StorageClass>,
    pub quotas: Cache<ResourceQuota>,
    /// Those that belong to clusters.
    pub secrets: Cache<Secret>,
    pub jobs: Cache<Job>,
    /// Those that belong to Jobs.
    pub pods: Cache<Pod>,
}

/// Why an object could not be brought forward.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// An API refused, or could not be reached.
    #[error("{verb} {object}")]
    Api {
        /// What was attempted.
        verb: &'static str,
        /// With what, as `Kind namespace/name`.
        object: String,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API of a workload cluster does not open.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// A name that belongs to somebody else.
    #[error("create {object}: there is one already, which belongs to somebody else")]
    Taken {
        /// The object, as `Kind namespace/name`.
        object: String,
    },
    /// Something in an object that is not a name where one should be.
    #[error("read the names in {object}")]
    Name {
        /// The object, as `namespace/name`.
        object: String,
        /// What is wrong.
        #[source]
        source: NameError,
    },
    /// Text that cannot be written or read.
    #[error("{what}: {why}")]
    Text {
        /// What was attempted.
        what: String,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// The object has changed since it was read: whoever changed it will be heard of.
    pub(super) fn is_conflict(&self) -> bool {
        self.reason() == Some("Conflict")
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.reason() == Some("NotFound")
    }

    pub(super) fn already_exists(&self) -> bool {
        self.reason() == Some("AlreadyExists")
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Api { source, .. } => match &**source {
                kube::Error::Api(status) => Some(&status.reason),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Context {
    /// Now, in whole seconds as objects have it.
    pub(super) fn now(&self) -> Time {
        Time(Timestamp::from_second(self.clock.now().as_second()).unwrap_or(Timestamp::MIN))
    }

    /// How long a thing of this name takes.
    pub(super) fn takes(&self, spread: Spread, what: &str, meta: &ObjectMeta) -> Duration {
        durations::of(spread, self.seed, &format!("{what} {}", path(meta)))
    }

    /// How long it still is until something that began then and takes so long is over; `None` if it is.
    pub(super) fn remaining(&self, began: Timestamp, takes: Duration) -> Option<Duration> {
        let due = began.checked_add(takes).unwrap_or(Timestamp::MAX);
        let left: SignedDuration = due.duration_since(self.clock.now());
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// The Cluster that an object says it belongs to, by its label.
    pub(super) fn cluster_of(&self, meta: &ObjectMeta) -> Option<Arc<Cluster>> {
        let name = cluster_name(meta)?;
        self.caches.clusters.get(&Key { namespace: meta.namespace.clone(), name: name.to_owned() })
    }
}

/// The Cluster that an object says it belongs to.
pub(super) fn cluster_name(meta: &ObjectMeta) -> Option<&str> {
    meta.labels.as_ref()?.get(label::CLUSTER_NAME.name).map(String::as_str)
}

/// Whether the object itself says that nobody may touch it. Whether its controller lets go of it is decided in
/// [`pause`](super::pause).
pub(super) fn is_paused(meta: &ObjectMeta) -> bool {
    meta.annotations.as_ref().is_some_and(|annotations| annotation::PAUSED.is_in(annotations))
}

/// The objects of a kind that belong to a Cluster, in the namespace of another object: it costs what they are, not what all are.
pub(super) fn belonging<K>(cache: &Cache<K>, beside: &ObjectMeta, cluster: &str) -> Vec<Arc<K>> {
    cache.list_group(beside.namespace.as_deref().unwrap_or_default(), cluster)
}

/// Whether a Machine is one of the control plane.
pub(super) fn is_control_plane(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().is_some_and(|labels| label::CONTROL_PLANE.is_in(labels))
}

/// Whether the object is on its way out.
pub(super) fn deleting(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// The namespace and name of an object, for people and for streams of chance.
pub(super) fn path(meta: &ObjectMeta) -> String {
    format!("{}/{}", meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// The name of a workload cluster: that of its Cluster.
pub(super) fn workload_name(cluster: &Cluster) -> Result<NamespacedName, Error> {
    beside(&cluster.metadata, cluster.metadata.name.as_deref().unwrap_or_default())
}

/// A name in the namespace of an object.
pub(super) fn beside(meta: &ObjectMeta, name: &str) -> Result<NamespacedName, Error> {
    let text = format!("{}/{name}", meta.namespace.as_deref().unwrap_or_default());
    text.parse().map_err(|source| Error::Name { object: path(meta), source })
}

/// Looks again when that much time has passed; at once if none has to.
pub(super) fn after(remaining: Option<Duration>) -> Outcome {
    Outcome::requeue_after(remaining.unwrap_or_default())
}
