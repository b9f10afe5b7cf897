//! Which change is whose business.

use futures::stream::{Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, Resource};
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, MachineTemplate};
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};
use windlass_api::kind::wcp::{WCPCluster, WCPMachine, WCPMachineTemplate};
use windlass_api::label;
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Options, Runner};
use windlass_runtime::watch::Watch;

use super::context::{Caches, cluster_name, deleting, is_control_plane};
use super::machine::Nodes;
use super::ownership::controller;
use super::subject::Subject;
use crate::workload::Workloads;

/// Where programs of the system run. Jobs and pods of others wait for nodes, which the management cluster does not have.
const SYSTEM_NAMESPACE: &str = "vmware-system-tkg";

/// One watch of each kind.
pub(super) struct Watches {
    clusters: Watch<Cluster>,
    machines: Watch<Machine>,
    machine_sets: Watch<MachineSet>,
    machine_deployments: Watch<MachineDeployment>,
    bootstraps: Watch<KubeadmConfig>,
    bootstrap_templates: Watch<DynamicObject>,
    cluster_infrastructures: Watch<WCPCluster>,
    machine_infrastructures: Watch<WCPMachine>,
    infrastructure_templates: Watch<DynamicObject>,
    images: Watch<VirtualMachineImage>,
    machine_classes: Watch<VirtualMachineClass>,
    storage_classes: Watch<StorageClass>,
    secrets: Watch<Secret>,
    jobs: Watch<Job>,
    pods: Watch<Pod>,
}

impl Watches {
    pub(super) fn new(client: &Client) -> Self {
        let labelled = |key: &str| watcher::Config::default().labels(key);
        Self {
            clusters: Watch::all(client.clone()),
            machines: Watch::all(client.clone()),
            machine_sets: Watch::all(client.clone()),
            machine_deployments: Watch::all(client.clone()),
            bootstraps: Watch::all(client.clone()),
            bootstrap_templates: Watch::all_with(client.clone(), ApiResource::erase::<KubeadmConfigTemplate>(&())),
            cluster_infrastructures: Watch::all(client.clone()),
            machine_infrastructures: Watch::all(client.clone()),
            infrastructure_templates: Watch::all_with(client.clone(), ApiResource::erase::<WCPMachineTemplate>(&())),
            images: Watch::all(client.clone()),
            machine_classes: Watch::all(client.clone()),
            storage_classes: Watch::all(client.clone()),
            secrets: Watch::all(client.clone()).configured(labelled(label::CLUSTER_NAME.name)),
            jobs: Watch::all(client.clone()).within(SYSTEM_NAMESPACE),
            pods: Watch::all(client.clone()).within(SYSTEM_NAMESPACE).configured(labelled(label::JOB_NAME.name)),
        }
    }

    pub(super) fn caches(&self) -> Caches {
        Caches {
            clusters: self.clusters.cache(),
            machines: self.machines.cache(),
            machine_sets: self.machine_sets.cache(),
            machine_deployments: self.machine_deployments.cache(),
            bootstraps: self.bootstraps.cache(),
            bootstrap_templates: self.bootstrap_templates.cache(),
            cluster_infrastructures: self.cluster_infrastructures.cache(),
            machine_infrastructures: self.machine_infrastructures.cache(),
            infrastructure_templates: self.infrastructure_templates.cache(),
            images: self.images.cache(),
            machine_classes: self.machine_classes.cache(),
            storage_classes: self.storage_classes.cache(),
            secrets: self.secrets.cache(),
            jobs: self.jobs.cache(),
            pods: self.pods.cache(),
        }
    }

    /// A runner whose keys name [subjects](Subject).
    pub(super) fn runner(self, options: Options, caches: &Caches) -> Runner<MachineDeployment> {
        let with = |concerned: fn(&Caches, &ObjectMeta) -> Vec<Key>| {
            let caches = caches.clone();
            move |meta: &ObjectMeta| concerned(&caches, meta)
        };
        let (by_cluster, by_secret) = (with(of_cluster), with(of_secret));
        let (by_bootstrap_template, by_infrastructure_template) = (with(of_template), with(of_template));
        let (by_image, by_machine_class, by_storage_class) =
            (with(of_catalogue), with(of_catalogue), with(of_catalogue));
        Runner::new("management", self.machine_deployments, options)
            .watches(self.clusters, move |cluster| by_cluster(&cluster.metadata))
            .watches(self.cluster_infrastructures, |infrastructure| of_cluster_infrastructure(&infrastructure.metadata))
            .watches(self.machine_sets, |set| of_machine_set(&set.metadata))
            .watches(self.machines, of_machine)
            .watches(self.bootstraps, |config| of_part(Subject::Bootstrap, &config.metadata))
            .watches(self.machine_infrastructures, |machine| of_part(Subject::MachineInfrastructure, &machine.metadata))
            .watches(self.secrets, move |secret| by_secret(&secret.metadata))
            .watches(self.bootstrap_templates, move |template| by_bootstrap_template(&template.metadata))
            .watches(self.infrastructure_templates, move |template| by_infrastructure_template(&template.metadata))
            .watches(self.images, move |image| by_image(&image.metadata))
            .watches(self.machine_classes, move |class| by_machine_class(&class.metadata))
            .watches(self.storage_classes, move |class| by_storage_class(&class.metadata))
            .watches(self.jobs, |job| vec![itself(Subject::Job, &job.metadata)])
            .watches(self.pods, |pod| of_pod(&pod.metadata))
    }
}

/// The Machines whose nodes change. A node has the name of its Machine.
pub(super) fn nodes(workloads: &Workloads, known: Nodes) -> impl Stream<Item = Key> + Send + 'static {
    workloads.node_changes().map(move |(cluster, node)| {
        known.forget(&Key::namespaced(cluster.namespace.as_str(), node.as_str()));
        Subject::Machine.key(Some(cluster.namespace.as_str()), node.as_str())
    })
}

fn itself(subject: Subject, meta: &ObjectMeta) -> Key {
    sibling(subject, meta, meta.name.as_deref().unwrap_or_default())
}

/// An object in the same namespace.
fn sibling(subject: Subject, meta: &ObjectMeta, name: &str) -> Key {
    subject.key(meta.namespace.as_deref(), name)
}

/// All that belongs to a Cluster waits for it, is held by its pause, and goes with it.
fn of_cluster(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let mut keys = vec![itself(Subject::Cluster, meta)];
    keys.extend(members(Subject::ClusterInfrastructure, &caches.cluster_infrastructures, meta, |_| true));
    keys.extend(members(Subject::MachineDeployment, &caches.machine_deployments, meta, |_| true));
    keys.extend(members(Subject::MachineSet, &caches.machine_sets, meta, |_| true));
    keys.extend(members(Subject::Machine, &caches.machines, meta, |_| true));
    keys.extend(members(Subject::Bootstrap, &caches.bootstraps, meta, |_| true));
    keys.extend(members(Subject::MachineInfrastructure, &caches.machine_infrastructures, meta, |_| true));
    keys
}

/// The objects of a kind that say that they belong to the Cluster.
fn members<K: Resource>(
    subject: Subject,
    cache: &Cache<K>,
    cluster: &ObjectMeta,
    wanted: impl Fn(&K) -> bool,
) -> Vec<Key> {
    let all = cache.list_in(cluster.namespace.as_deref().unwrap_or_default());
    let ours = all.iter().filter(|object| cluster_name(object.meta()) == cluster.name.as_deref() && wanted(object));
    ours.map(|object| itself(subject, object.meta())).collect()
}

fn of_cluster_infrastructure(meta: &ObjectMeta) -> Vec<Key> {
    let cluster = cluster_name(meta).map(|name| sibling(Subject::Cluster, meta, name));
    [itself(Subject::ClusterInfrastructure, meta)].into_iter().chain(cluster).collect()
}

fn of_machine_set(meta: &ObjectMeta) -> Vec<Key> {
    let deployment = controller::<MachineDeployment>(meta);
    let deployment = deployment.map(|name| sibling(Subject::MachineDeployment, meta, name));
    [itself(Subject::MachineSet, meta)].into_iter().chain(deployment).collect()
}

/// A Machine concerns its set; its parts, as long as they wait for it; and its Cluster, as the first node of the control plane
/// makes that initialized and the last Machine holds up its deletion.
fn of_machine(machine: &Machine) -> Vec<Key> {
    let (meta, spec) = (&machine.metadata, &machine.spec);
    let reached = machine.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    let config = spec.bootstrap.config_ref.as_ref().filter(|_| spec.bootstrap.data_secret_name.is_none());
    let infrastructure = Some(&spec.infrastructure_ref).filter(|_| !reached.infrastructure_provisioned);
    let for_cluster = is_control_plane(meta) || deleting(meta);
    let concerned = [
        Some(itself(Subject::Machine, meta)),
        config.map(|config| sibling(Subject::Bootstrap, meta, &config.name)),
        infrastructure.map(|infrastructure| sibling(Subject::MachineInfrastructure, meta, &infrastructure.name)),
        controller::<MachineSet>(meta).map(|set| sibling(Subject::MachineSet, meta, set)),
        for_cluster.then(|| sibling(Subject::Cluster, meta, &spec.cluster_name)),
    ];
    concerned.into_iter().flatten().collect()
}

/// A part of a Machine concerns the Machine that looks after it. Until one does, that is the one of the same name: parts are
/// made before their Machine.
fn of_part(subject: Subject, meta: &ObjectMeta) -> Vec<Key> {
    let machine = controller::<Machine>(meta).or(meta.name.as_deref());
    let machine = machine.map(|name| sibling(Subject::Machine, meta, name));
    [itself(subject, meta)].into_iter().chain(machine).collect()
}

/// Bootstrap data concerns the machine that boots from it; certificates concern the Cluster, and all who wait for them.
fn of_secret(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    if let Some(config) = controller::<KubeadmConfig>(meta) {
        let config = caches.bootstraps.get(&Key { namespace: meta.namespace.clone(), name: config.to_owned() });
        let machine = config.as_ref().and_then(|config| controller::<Machine>(&config.metadata));
        let machine = machine
            .and_then(|name| caches.machines.get(&Key { namespace: meta.namespace.clone(), name: name.to_owned() }));
        let part =
            machine.map(|machine| sibling(Subject::MachineInfrastructure, meta, &machine.spec.infrastructure_ref.name));
        return part.into_iter().collect();
    }
    let Some(cluster) = cluster_name(meta) else { return Vec::new() };
    let named =
        ObjectMeta { name: Some(cluster.to_owned()), namespace: meta.namespace.clone(), ..ObjectMeta::default() };
    let waits = |config: &KubeadmConfig| config.status.as_ref().is_none_or(|status| status.data_secret_name.is_none());
    let mut keys = vec![sibling(Subject::Cluster, meta, cluster)];
    keys.extend(members(Subject::Bootstrap, &caches.bootstraps, &named, waits));
    keys
}

/// A template concerns the sets and deployments that refer to it.
fn of_template(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let refers = |template: &MachineTemplate| {
        let config = template.spec.bootstrap.config_ref.as_ref();
        let named = [Some(&template.spec.infrastructure_ref), config];
        named.into_iter().flatten().any(|reference| Some(&reference.name) == meta.name.as_ref())
    };
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let deployments = caches.machine_deployments.list_in(namespace);
    let deployments = deployments.iter().filter(|deployment| refers(&deployment.spec.template));
    let sets = caches.machine_sets.list_in(namespace);
    let sets = sets.iter().filter(|set| refers(&set.spec.template));
    let mut keys: Vec<Key> =
        deployments.map(|deployment| itself(Subject::MachineDeployment, &deployment.metadata)).collect();
    keys.extend(sets.map(|set| itself(Subject::MachineSet, &set.metadata)));
    keys
}

/// What machines are made from concerns those that are not made yet.
fn of_catalogue(caches: &Caches, _: &ObjectMeta) -> Vec<Key> {
    let all = caches.machine_infrastructures.list();
    let unmade = all.iter().filter(|machine| machine.status.as_ref().is_none_or(|status| status.vm_state.is_none()));
    unmade.map(|machine| itself(Subject::MachineInfrastructure, &machine.metadata)).collect()
}

fn of_pod(meta: &ObjectMeta) -> Vec<Key> {
    controller::<Job>(meta).map(|name| sibling(Subject::Job, meta, name)).into_iter().collect()
}
