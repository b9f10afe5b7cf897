//! Which change is whose business.

use futures::stream::{Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, Resource};
use windlass_api::kind::ContractReference;
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, MachineTemplate};
use windlass_api::kind::control_plane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::machine_health::{MachineDrainRule, MachineHealthCheck};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};
use windlass_api::kind::wcp::{WCPCluster, WCPClusterTemplate, WCPMachine, WCPMachineTemplate};
use windlass_api::label;
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;
use windlass_runtime::runner::{Options, Runner};
use windlass_runtime::watch::{Change, Watch};

use super::context::{Caches, belonging, cluster_name, deleting, is_control_plane};
use super::infrastructure::provided::{Origin, Others, Providers};
use super::kubeadm_control_plane::Components;
use super::machine::Nodes;
use super::machine_deployment;
use super::machine_health_check;
use super::ownership::controller;
use super::subject::Subject;
use super::topology;
use crate::workload::Workloads;

/// Where programs of the system run. Jobs and pods of others wait for nodes, which the management cluster does not have.
const SYSTEM_NAMESPACE: &str = "vmware-system-tkg";

/// One watch of each kind.
pub(super) struct Watches {
    clusters: Watch<Cluster>,
    machines: Watch<Machine>,
    machine_sets: Watch<MachineSet>,
    machine_deployments: Watch<MachineDeployment>,
    control_planes: Watch<KubeadmControlPlane>,
    control_plane_templates: Watch<DynamicObject>,
    cluster_classes: Watch<ClusterClass>,
    extensions: Watch<ExtensionConfig>,
    health_checks: Watch<MachineHealthCheck>,
    drain_rules: Watch<MachineDrainRule>,
    bootstraps: Watch<KubeadmConfig>,
    bootstrap_templates: Watch<DynamicObject>,
    cluster_infrastructures: Watch<WCPCluster>,
    cluster_templates: Watch<DynamicObject>,
    machine_infrastructures: Watch<WCPMachine>,
    infrastructure_templates: Watch<DynamicObject>,
    other_templates: Vec<Watch<DynamicObject>>,
    other_machines: Vec<Watch<DynamicObject>>,
    other_clusters: Vec<Watch<DynamicObject>>,
    others: Others,
    images: Watch<VirtualMachineImage>,
    machine_classes: Watch<VirtualMachineClass>,
    storage_classes: Watch<StorageClass>,
    quotas: Watch<ResourceQuota>,
    secrets: Watch<Secret>,
    jobs: Watch<Job>,
    pods: Watch<Pod>,
}

impl Watches {
    pub(super) fn new(client: &Client, providers: &Providers) -> Self {
        let labelled = |key: &str| watcher::Config::default().labels(key);
        let watched = |kinds: &[ApiResource]| {
            let watch = |kind: &ApiResource| Watch::all_with(client.clone(), kind.clone()).grouped_by(by_label);
            let watches: Vec<Watch<DynamicObject>> = kinds.iter().map(watch).collect();
            let origins = kinds.iter().zip(&watches);
            let origins = origins.map(|(kind, watch)| Origin { resource: kind.clone(), cache: watch.cache() });
            (origins.collect::<Vec<_>>(), watches)
        };
        let (templates, other_templates) = watched(&providers.templates);
        let (machines, other_machines) = watched(&providers.machines);
        let (clusters, other_clusters) = watched(&providers.clusters);
        Self {
            other_templates,
            other_machines,
            other_clusters,
            others: Others { templates, machines, clusters },
            clusters: Watch::all(client.clone()),
            machines: Watch::all(client.clone()).grouped_by(|machine| Some(&machine.spec.cluster_name)),
            machine_sets: Watch::all(client.clone()).grouped_by(|set| Some(&set.spec.cluster_name)),
            machine_deployments: Watch::all(client.clone())
                .grouped_by(|deployment| Some(&deployment.spec.cluster_name)),
            control_planes: Watch::all(client.clone()).grouped_by(by_label),
            control_plane_templates: Watch::all_with(
                client.clone(),
                ApiResource::erase::<KubeadmControlPlaneTemplate>(&()),
            ),
            cluster_classes: Watch::all(client.clone()),
            extensions: Watch::all(client.clone()),
            health_checks: Watch::all(client.clone()),
            drain_rules: Watch::all(client.clone()),
            bootstraps: Watch::all(client.clone()).grouped_by(by_label),
            bootstrap_templates: Watch::all_with(client.clone(), ApiResource::erase::<KubeadmConfigTemplate>(&()))
                .grouped_by(by_label),
            cluster_infrastructures: Watch::all(client.clone()).grouped_by(by_label),
            cluster_templates: Watch::all_with(client.clone(), ApiResource::erase::<WCPClusterTemplate>(&())),
            machine_infrastructures: Watch::all(client.clone()).grouped_by(by_label),
            infrastructure_templates: Watch::all_with(client.clone(), ApiResource::erase::<WCPMachineTemplate>(&()))
                .grouped_by(by_label),
            images: Watch::all(client.clone()),
            machine_classes: Watch::all(client.clone()),
            storage_classes: Watch::all(client.clone()),
            quotas: Watch::all(client.clone()),
            secrets: Watch::all(client.clone()).configured(labelled(label::CLUSTER_NAME.name)).grouped_by(by_label),
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
            control_planes: self.control_planes.cache(),
            control_plane_templates: self.control_plane_templates.cache(),
            cluster_classes: self.cluster_classes.cache(),
            extensions: self.extensions.cache(),
            health_checks: self.health_checks.cache(),
            drain_rules: self.drain_rules.cache(),
            bootstraps: self.bootstraps.cache(),
            bootstrap_templates: self.bootstrap_templates.cache(),
            cluster_infrastructures: self.cluster_infrastructures.cache(),
            cluster_templates: self.cluster_templates.cache(),
            machine_infrastructures: self.machine_infrastructures.cache(),
            infrastructure_templates: self.infrastructure_templates.cache(),
            others: self.others.clone(),
            images: self.images.cache(),
            machine_classes: self.machine_classes.cache(),
            storage_classes: self.storage_classes.cache(),
            quotas: self.quotas.cache(),
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
        let (by_cluster, by_secret) = (caches.clone(), with(of_secret));
        let by_machine = {
            let caches = caches.clone();
            move |machine: &Machine| of_machine(machine).into_iter().chain(health_checks(&caches, machine)).collect()
        };
        let (by_cluster_infrastructure, by_control_plane) = (with(of_cluster_infrastructure), with(of_control_plane));
        let (by_health_check, by_drain_rule) = (with(of_health_check), with(of_drain_rule));
        let (by_class, by_control_plane_template) = (with(of_cluster_class), with(of_class_template));
        let by_cluster_template = with(of_class_template);
        let by_deployment = {
            let caches = caches.clone();
            move |deployment: &MachineDeployment| of_machine_deployment(&caches, deployment)
        };
        let (by_bootstrap_template, by_infrastructure_template) = (with(of_template), with(of_template));
        let (by_image, by_machine_class, by_storage_class) =
            (with(of_catalogue), with(of_catalogue), with(of_catalogue));
        let (other_templates, other_clusters) = (with(of_template), with(of_cluster_infrastructure));
        let mut runner = Runner::concerning("management", self.machine_deployments, options, by_deployment)
            .watches_changes(self.clusters, move |change| of_cluster(&by_cluster, change))
            .watches(self.cluster_infrastructures, move |part| by_cluster_infrastructure(&part.metadata))
            .watches(self.machine_sets, |set| of_machine_set(&set.metadata))
            .watches(self.control_planes, move |control_plane| by_control_plane(&control_plane.metadata))
            .watches(self.control_plane_templates, move |template| by_control_plane_template(&template.metadata))
            .watches(self.cluster_templates, move |template| by_cluster_template(&template.metadata))
            .watches(self.cluster_classes, move |class| by_class(&class.metadata))
            .watches(self.extensions, |extension| vec![itself(Subject::Extension, &extension.metadata)])
            .watches(self.health_checks, move |check| by_health_check(&check.metadata))
            .watches(self.drain_rules, move |rule| by_drain_rule(&rule.metadata))
            .watches(self.machines, move |machine| by_machine(machine))
            .watches(self.bootstraps, |config| of_part(Subject::Bootstrap, &config.metadata))
            .watches(self.machine_infrastructures, |machine| of_part(Subject::MachineInfrastructure, &machine.metadata))
            .watches(self.secrets, move |secret| by_secret(&secret.metadata))
            .watches(self.bootstrap_templates, move |template| by_bootstrap_template(&template.metadata))
            .watches(self.infrastructure_templates, move |template| by_infrastructure_template(&template.metadata))
            .watches(self.images, move |image| by_image(&image.metadata))
            .watches(self.machine_classes, move |class| by_machine_class(&class.metadata))
            .watches(self.storage_classes, move |class| by_storage_class(&class.metadata))
            // Whoever was refused asks again by themselves.
            .watches(self.quotas, |_| Vec::new())
            .watches(self.jobs, |job| vec![itself(Subject::Job, &job.metadata)])
            .watches(self.pods, |pod| of_pod(&pod.metadata));
        for watch in self.other_machines {
            runner = runner.watches(watch, |machine| of_part(Subject::MachineInfrastructure, &machine.metadata));
        }
        for watch in self.other_clusters {
            let by_cluster = other_clusters.clone();
            runner = runner.watches(watch, move |part| by_cluster(&part.metadata));
        }
        for watch in self.other_templates {
            let by_template = other_templates.clone();
            runner = runner.watches(watch, move |template| by_template(&template.metadata));
        }
        runner
    }
}

/// The Machines whose nodes change, and their health checks. A node has the name of its Machine.
pub(super) fn nodes(workloads: &Workloads, known: Nodes, caches: Caches) -> impl Stream<Item = Key> + Send + 'static {
    workloads.node_changes().flat_map(move |(cluster, node)| {
        let key = Key::namespaced(cluster.namespace.as_str(), node.as_str());
        known.forget(&key);
        let machine = caches.machines.get(&key);
        let checks = machine.iter().flat_map(|machine| health_checks(&caches, machine));
        let mut keys = vec![Subject::Machine.key(Some(cluster.namespace.as_str()), node.as_str())];
        keys.extend(checks);
        futures::stream::iter(keys)
    })
}

/// The health checks that look at a Machine.
fn health_checks(caches: &Caches, machine: &Machine) -> Vec<Key> {
    let checks = caches.health_checks.list_in(machine.metadata.namespace.as_deref().unwrap_or_default());
    let ours = checks.iter().filter(|check| machine_health_check::is_for(check, machine));
    ours.map(|check| itself(Subject::MachineHealthCheck, &check.metadata)).collect()
}

/// The control planes whose components change.
pub(super) fn components(
    workloads: &Workloads,
    known: Components,
    caches: Caches,
) -> impl Stream<Item = Key> + Send + 'static {
    workloads.component_changes().filter_map(move |cluster| {
        known.forget(&cluster);
        let found = caches.clusters.get(&Key::namespaced(cluster.namespace.as_str(), cluster.name.as_str()));
        let concerned = found.and_then(|found| {
            let control_plane = found.spec.control_plane_ref.as_ref()?;
            Some(sibling(Subject::KubeadmControlPlane, &found.metadata, &control_plane.name))
        });
        std::future::ready(concerned)
    })
}

fn itself(subject: Subject, meta: &ObjectMeta) -> Key {
    sibling(subject, meta, meta.name.as_deref().unwrap_or_default())
}

/// An object in the same namespace.
fn sibling(subject: Subject, meta: &ObjectMeta, name: &str) -> Key {
    subject.key(meta.namespace.as_deref(), name)
}

/// A Cluster concerns itself, and who makes it from a class. All that belongs to it waits for it, is held by its pause, and goes
/// with it; that the Cluster sums it up concerns none of that.
fn of_cluster(caches: &Caches, change: &Change<'_, Cluster>) -> Vec<Key> {
    let Some(cluster) = change.after.or(change.before) else { return Vec::new() };
    let meta = &cluster.metadata;
    let mut keys = vec![itself(Subject::Cluster, meta), itself(Subject::Topology, meta)];
    if let (Some(before), Some(after)) = (change.before, change.after)
        && means(before) == means(after)
    {
        return keys;
    }
    keys.extend(members(Subject::KubeadmControlPlane, &caches.control_planes, meta, |_| true));
    let checks = caches.health_checks.list_in(meta.namespace.as_deref().unwrap_or_default());
    let checks = checks.iter().filter(|check| Some(&check.spec.cluster_name) == meta.name.as_ref());
    keys.extend(checks.map(|check| itself(Subject::MachineHealthCheck, &check.metadata)));
    keys.extend(members(Subject::ClusterInfrastructure, &caches.cluster_infrastructures, meta, |_| true));
    for origin in &caches.others.clusters {
        keys.extend(members(Subject::ClusterInfrastructure, &origin.cache, meta, |_| true));
    }
    for origin in &caches.others.machines {
        keys.extend(members(Subject::MachineInfrastructure, &origin.cache, meta, |_| true));
    }
    keys.extend(members(Subject::MachineDeployment, &caches.machine_deployments, meta, |_| true));
    keys.extend(members(Subject::MachineSet, &caches.machine_sets, meta, |_| true));
    keys.extend(members(Subject::Machine, &caches.machines, meta, |_| true));
    keys.extend(members(Subject::Bootstrap, &caches.bootstraps, meta, |_| true));
    keys.extend(members(Subject::MachineInfrastructure, &caches.machine_infrastructures, meta, |_| true));
    keys
}

/// What a Cluster means to those who belong to it: what it asks for, what it is called, whether it goes, and how far it got once.
fn means(cluster: &Cluster) -> impl PartialEq {
    let ObjectMeta { generation, deletion_timestamp, labels, annotations, .. } = &cluster.metadata;
    let reached = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    (generation, deletion_timestamp, labels, annotations, reached)
}

/// The Cluster that an object says it belongs to: by that it is found.
fn by_label<K: Resource>(object: &K) -> Option<&str> {
    cluster_name(object.meta())
}

/// The objects of a kind that say that they belong to the Cluster.
fn members<K: Resource>(
    subject: Subject,
    cache: &Cache<K>,
    cluster: &ObjectMeta,
    wanted: impl Fn(&K) -> bool,
) -> Vec<Key> {
    let all = belonging(cache, cluster, cluster.name.as_deref().unwrap_or_default());
    let ours = all.iter().filter(|object| wanted(object));
    ours.map(|object| itself(subject, object.meta())).collect()
}

fn of_cluster_infrastructure(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let cluster = cluster_of(caches, meta, |cluster| cluster.spec.infrastructure_ref.as_ref());
    let cluster = cluster.map(|name| sibling(Subject::Cluster, meta, &name));
    [itself(Subject::ClusterInfrastructure, meta)].into_iter().chain(cluster).collect()
}

/// The Cluster that an object says it belongs to; until somebody has made it say so, the one that refers to it.
fn cluster_of(
    caches: &Caches,
    meta: &ObjectMeta,
    reference: impl Fn(&Cluster) -> Option<&ContractReference>,
) -> Option<String> {
    if let Some(name) = cluster_name(meta) {
        return Some(name.to_owned());
    }
    let all = caches.clusters.list_in(meta.namespace.as_deref().unwrap_or_default());
    let refers = |cluster: &Cluster| reference(cluster).is_some_and(|part| Some(&part.name) == meta.name.as_ref());
    all.iter().find(|cluster| refers(cluster))?.metadata.name.clone()
}

/// A deployment concerns its Cluster, which sums up its pools; whoever made it from a class; and those of its sets that it has
/// moved on from.
fn of_machine_deployment(caches: &Caches, deployment: &MachineDeployment) -> Vec<Key> {
    let meta = &deployment.metadata;
    let cluster = sibling(Subject::Cluster, meta, &deployment.spec.cluster_name);
    let mut keys = vec![itself(Subject::MachineDeployment, meta), cluster];
    if meta.labels.as_ref().is_some_and(|labels| label::TOPOLOGY_OWNED.is_in(labels)) {
        keys.push(sibling(Subject::Topology, meta, &deployment.spec.cluster_name));
    }
    let sets = belonging(&caches.machine_sets, meta, &deployment.spec.cluster_name);
    let old = sets.iter().filter(|set| {
        controller::<MachineDeployment>(&set.metadata) == meta.name.as_deref()
            && machine_deployment::has_moved_on(deployment, set)
    });
    keys.extend(old.map(|set| itself(Subject::MachineSet, &set.metadata)));
    keys
}

fn of_machine_set(meta: &ObjectMeta) -> Vec<Key> {
    // One that stands for itself is counted by its Cluster.
    let owner = match controller::<MachineDeployment>(meta) {
        Some(name) => Some(sibling(Subject::MachineDeployment, meta, name)),
        None => cluster_name(meta).map(|name| sibling(Subject::Cluster, meta, name)),
    };
    // When a set goes, nobody needs its templates any more.
    let of_topology = meta.labels.as_ref().is_some_and(|labels| label::TOPOLOGY_OWNED.is_in(labels));
    let cluster = cluster_name(meta).filter(|_| of_topology && deleting(meta));
    let topology = cluster.map(|name| sibling(Subject::Topology, meta, name));
    [itself(Subject::MachineSet, meta)].into_iter().chain(owner).chain(topology).collect()
}

/// A Machine concerns its set; its parts, as long as they wait for it; and its Cluster, as the first node of the control plane
/// makes that initialized, the last Machine holds up its deletion, and nobody else counts one that stands for itself.
fn of_machine(machine: &Machine) -> Vec<Key> {
    let (meta, spec) = (&machine.metadata, &machine.spec);
    let reached = machine.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    let config = spec.bootstrap.config_ref.as_ref().filter(|_| spec.bootstrap.data_secret_name.is_none());
    let infrastructure = Some(&spec.infrastructure_ref).filter(|_| !reached.infrastructure_provisioned);
    let for_cluster = is_control_plane(meta) || deleting(meta) || controller::<MachineSet>(meta).is_none();
    let concerned = [
        Some(itself(Subject::Machine, meta)),
        config.map(|config| sibling(Subject::Bootstrap, meta, &config.name)),
        infrastructure.map(|infrastructure| sibling(Subject::MachineInfrastructure, meta, &infrastructure.name)),
        controller::<KubeadmControlPlane>(meta).map(|owner| sibling(Subject::KubeadmControlPlane, meta, owner)),
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
    // Bootstrap data has the name of its configuration; the certificates that one may own do not.
    if let Some(config) = controller::<KubeadmConfig>(meta).filter(|config| Some(*config) == meta.name.as_deref()) {
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

/// A template concerns the sets, deployments and control planes that refer to it.
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
    let control_planes = caches.control_planes.list_in(namespace);
    let refers = |control_plane: &KubeadmControlPlane| {
        Some(&control_plane.spec.machine_template.spec.infrastructure_ref.name) == meta.name.as_ref()
    };
    let control_planes = control_planes.iter().filter(|control_plane| refers(control_plane));
    keys.extend(control_planes.map(|control_plane| itself(Subject::KubeadmControlPlane, &control_plane.metadata)));
    keys.extend(of_class_template(caches, meta));
    keys
}

/// A control plane concerns its Cluster, who makes Clusters from classes, and the sets that wait until it is stable.
fn of_control_plane(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let cluster = cluster_of(caches, meta, |cluster| cluster.spec.control_plane_ref.as_ref());
    let of = |subject: Subject| cluster.as_ref().map(|name| sibling(subject, meta, name));
    let concerned = [Some(itself(Subject::KubeadmControlPlane, meta)), of(Subject::Cluster), of(Subject::Topology)];
    let mut keys: Vec<Key> = concerned.into_iter().flatten().collect();
    if let Some(cluster) = cluster {
        let named = ObjectMeta { name: Some(cluster), namespace: meta.namespace.clone(), ..ObjectMeta::default() };
        let waits =
            |set: &MachineSet| set.status.as_ref().is_none_or(|status| Some(status.replicas) < set.spec.replicas);
        keys.extend(members(Subject::MachineSet, &caches.machine_sets, &named, waits));
    }
    keys
}

/// A class concerns the Clusters that are made from it, wherever they are.
fn of_cluster_class(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let clusters = caches.clusters.list();
    let of_class = clusters.iter().filter(|cluster| {
        let class = cluster.spec.topology.as_ref().map(|topology| &topology.class_ref);
        class.is_some_and(|class| {
            let namespace = class.namespace.as_ref().or(cluster.metadata.namespace.as_ref());
            Some(&class.name) == meta.name.as_ref() && namespace == meta.namespace.as_ref()
        })
    });
    let mut keys = vec![itself(Subject::ClusterClass, meta)];
    keys.extend(of_class.map(|cluster| itself(Subject::Topology, &cluster.metadata)));
    keys
}

/// A template concerns the classes that refer to it, and what they concern. Most are referred to by none.
fn of_class_template(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let classes = caches.cluster_classes.list_in(meta.namespace.as_deref().unwrap_or_default());
    let refers = |class: &ClusterClass| {
        topology::references(&class.spec).into_iter().any(|reference| Some(&reference.name) == meta.name.as_ref())
    };
    let classes = classes.iter().filter(|class| refers(class));
    classes.flat_map(|class| of_cluster_class(caches, &class.metadata)).collect()
}

fn of_health_check(_: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    vec![itself(Subject::MachineHealthCheck, meta)]
}

/// How pods leave concerns the Machines that are on their way out.
fn of_drain_rule(caches: &Caches, meta: &ObjectMeta) -> Vec<Key> {
    let machines = caches.machines.list_in(meta.namespace.as_deref().unwrap_or_default());
    let leaving = machines.iter().filter(|machine| deleting(&machine.metadata));
    leaving.map(|machine| itself(Subject::Machine, &machine.metadata)).collect()
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
