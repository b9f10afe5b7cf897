//! What the controller has at hand in every reconcile.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::DynamicObject;
use windlass_api::condition::ConditionType;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::kind::wcp::{WCPMachineSpec, WCPMachineTemplate};
use windlass_runtime::cache::Cache;
use windlass_runtime::events::Recorder;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Ctx;

use super::pace::{Pace, Seen};
use super::{by_cluster_name, by_cluster_of_job};
use crate::access::{Access, WorkloadCluster};
use crate::execute::Kinds;
use crate::resolve::Releases;
use crate::resolve::kept::Kept;

/// What is needed to look at a cluster, of whichever sort.
pub(crate) struct Reach {
    pub access: Access,
    pub kinds: Kinds,
    pub memory: Memory,
}

impl Reach {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, kinds: Kinds::new(), memory: Memory::default() }
    }
}

impl Deref for Context {
    type Target = Reach;

    fn deref(&self) -> &Reach {
        &self.reach
    }
}

/// What the controller has at hand in every reconcile.
pub(crate) struct Context {
    pub reach: Reach,
    pub caches: Caches,
    pub releases: Releases,
    pub pace: Pace,
    pub recorder: Recorder,
}

/// What the watches have seen.
pub(crate) struct Caches {
    pub tkcs: Cache<TanzuKubernetesCluster>,
    pub clusters: Cache<Cluster>,
    /// Those of control planes only.
    pub machines: Cache<Machine>,
    pub deployments: Cache<MachineDeployment>,
    pub machine_templates: Cache<WCPMachineTemplate>,
    pub config_templates: Cache<KubeadmConfigTemplate>,
    /// Those that replace control planes.
    pub jobs: Cache<Job>,
    pub updates: Cache<ClusterUpdate>,
    pub images: Cache<VirtualMachineImage>,
    /// The releases that are kept for clusters.
    pub kept: Cache<Kept>,
}

impl Caches {
    /// Which states of which objects the caches have of a cluster. Of its own object and of its updates only what others write:
    /// their statuses are ours.
    pub(super) fn seen(&self, cluster: &TanzuKubernetesCluster) -> Seen {
        let key = Key::of(cluster);
        let namespace = key.namespace.clone().unwrap_or_default();
        let mut seen = vec![
            ("generation", format!("{:?}", cluster.metadata.generation)),
            ("annotations", format!("{:?}", cluster.metadata.annotations)),
            ("images", self.images.revision().to_string()),
        ];
        let updates = self.updates.list_in(&namespace).into_iter().filter(|update| concerns(&**update, &key));
        // Of what a record says, only what people order matters: the rest is our own.
        let of_update = |update: &ClusterUpdate| format!("{:?} {:?}", update.metadata.uid, update.metadata.annotations);
        seen.extend(updates.map(|update| ("ClusterUpdate", of_update(&update))));
        seen.extend(self.clusters.get(&key).map(|cluster| ("Cluster", of_cluster(&cluster))));
        seen.extend(states("MachineDeployment", &self.deployments, &namespace, &key));
        seen.extend(states("WCPMachineTemplate", &self.machine_templates, &namespace, &key));
        seen.extend(states("KubeadmConfigTemplate", &self.config_templates, &namespace, &key));
        seen.extend(states("ConfigMap", &self.kept, &namespace, &key));
        let jobs = self.jobs.list().into_iter().filter(|job| by_cluster_of_job(job).contains(&key));
        let jobs: Vec<Arc<Job>> = jobs.collect();
        // A Job that is at work tells when it is done; until then it is enough to know which machines come and go.
        if jobs.iter().any(|job| is_at_work(job)) {
            let machines = self.machines.list_in(&namespace).into_iter().filter(|machine| concerns(&**machine, &key));
            seen.extend(machines.map(|machine| ("Machine", identity(&machine))));
        } else {
            seen.extend(states("Machine", &self.machines, &namespace, &key));
        }
        seen.extend(jobs.iter().map(|job| ("Job", state(&**job))));
        seen
    }
}

/// What we read of a Cluster. What it sums up of its machines is not in it: they are watched themselves.
pub(super) fn of_cluster(cluster: &Cluster) -> String {
    let ObjectMeta { uid, generation, deletion_timestamp, labels, annotations, owner_references, .. } =
        &cluster.metadata;
    let reached = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    format!("{uid:?} {generation:?} {deletion_timestamp:?} {labels:?} {annotations:?} {owner_references:?} {reached:?}")
}

fn states<K: Resource>(kind: &'static str, cache: &Cache<K>, namespace: &str, cluster: &Key) -> Seen {
    let objects = cache.list_in(namespace);
    objects.iter().filter(|object| concerns(&***object, cluster)).map(|object| (kind, state(&**object))).collect()
}

fn concerns(object: &impl Resource, cluster: &Key) -> bool {
    by_cluster_name(object).contains(cluster)
}

fn state(object: &impl Resource) -> String {
    let meta = object.meta();
    format!("{} {}", meta.uid.as_deref().unwrap_or_default(), meta.resource_version.as_deref().unwrap_or_default())
}

fn identity(machine: &Machine) -> String {
    let meta = &machine.metadata;
    format!("{} {}", meta.uid.as_deref().unwrap_or_default(), meta.deletion_timestamp.is_some())
}

fn is_at_work(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ends = [ConditionType::Complete.as_str(), ConditionType::Failed.as_str()];
    !conditions.iter().any(|condition| condition.status == "True" && ends.contains(&condition.type_.as_str()))
}

/// What a machine was made from, and how it was told to register.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeFrom {
    pub infrastructure: WCPMachineSpec,
    /// Read only where Windlass decides something of it.
    pub registration: Option<serde_json::Value>,
}

/// Notes that only save requests: whoever loses them reads again.
#[derive(Default)]
pub(crate) struct Memory {
    /// By cluster and the uid of the Machine. What a machine was made from never changes.
    machines: Mutex<BTreeMap<Key, BTreeMap<String, MadeFrom>>>,
    /// By cluster, with the state of the kubeconfig Secret that each was made from.
    connections: Mutex<BTreeMap<Key, (String, WorkloadCluster)>>,
}

impl Memory {
    /// What the machines of a cluster were made from, by the uid of the Machine.
    pub fn machines(&self, cluster: &Key) -> BTreeMap<String, MadeFrom> {
        lock(&self.machines).get(cluster).cloned().unwrap_or_default()
    }

    /// Remembers what the machines of a cluster were made from, and forgets all others.
    pub fn keep_machines(&self, cluster: &Key, machines: BTreeMap<String, MadeFrom>) {
        lock(&self.machines).insert(cluster.clone(), machines);
    }

    /// The connection that was made from this state of the kubeconfig Secret.
    pub fn connection(&self, cluster: &Key, revision: &str) -> Option<WorkloadCluster> {
        let connections = lock(&self.connections);
        let (made_from, connection) = connections.get(cluster)?;
        (made_from == revision).then(|| connection.clone())
    }

    /// Remembers a connection.
    pub fn keep_connection(&self, cluster: &Key, revision: String, connection: WorkloadCluster) {
        lock(&self.connections).insert(cluster.clone(), (revision, connection));
    }

    /// Forgets the connection to a cluster that does not answer: perhaps another one would.
    pub fn drop_connection(&self, cluster: &Key) {
        lock(&self.connections).remove(cluster);
    }

    /// Forgets a cluster that is gone.
    pub fn forget(&self, cluster: &Key) {
        lock(&self.machines).remove(cluster);
        self.drop_connection(cluster);
    }
}

// Whoever panicked cannot have left a map half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the runner of a write to a kind that it watches, so that the cluster is not looked at again before its cache has seen
/// that.
pub(crate) fn wrote(ctx: &Ctx<Context>, object: &DynamicObject) {
    let Some(types) = &object.types else { return };
    let caches = &ctx.caches;
    match types.kind.as_str() {
        "Cluster" => tell(ctx, &caches.clusters, object),
        // The watch selects on the label; what it will not see is not waited for.
        "Machine" if is_control_plane(object) => tell(ctx, &caches.machines, object),
        "MachineDeployment" => tell(ctx, &caches.deployments, object),
        "WCPMachineTemplate" => tell(ctx, &caches.machine_templates, object),
        "KubeadmConfigTemplate" => tell(ctx, &caches.config_templates, object),
        "Job" => tell(ctx, &caches.jobs, object),
        "ConfigMap" if is_kept(object) => tell(ctx, &caches.kept, object),
        _ => {}
    }
}

fn is_kept(object: &DynamicObject) -> bool {
    object.metadata.labels.as_ref().is_some_and(|labels| windlass_api::label::KEPT_RELEASE.is_in(labels))
}

fn is_control_plane(object: &DynamicObject) -> bool {
    object.metadata.labels.as_ref().is_some_and(|labels| windlass_api::label::CONTROL_PLANE.is_in(labels))
}

fn tell<K: Resource + Default>(ctx: &Ctx<Context>, cache: &Cache<K>, object: &DynamicObject) {
    let mut seen = K::default();
    seen.meta_mut().resource_version.clone_from(&object.metadata.resource_version);
    ctx.wrote(cache, &seen);
}
