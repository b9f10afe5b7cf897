//! A World with what the tests need to put into it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::Service;
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::kind::wcp::Endpoint;
use windlass_api::name::NamespacedName;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::door::{DoorError, Doors};
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::management::Management;
use windlass_sim::program::{Container, Exit, Programs, Reply, Unheard};
use windlass_sim::workload::Workload;
use windlass_sim::world::{Settings, World};

use super::extension::Extension;

pub const OLD: &str = "v1.16.7";
pub const NEW: &str = "v1.16.8";

/// The image of a version.
pub fn image(version: &str) -> String {
    format!("photon-k8sd-{version}-vmware.1-guest.1")
}

/// What names made for a version end with.
pub fn fresh(version: &str) -> String {
    version.replace('.', "")
}

/// A World whose simulators run, and whose management side is asked through a client that counts.
pub struct Stage {
    pub world: World,
    clock: Clock,
    began: Timestamp,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
    doors: Arc<Front>,
    programs: Arc<Script>,
}

/// Runs a test in virtual time.
pub fn stage<F: Future<Output = T>, T>(body: impl FnOnce(Stage) -> F) -> T {
    stage_with(Scenario::default(), body)
}

/// The same, with what goes wrong.
pub fn stage_with<F: Future<Output = T>, T>(faults: Scenario, body: impl FnOnce(Stage) -> F) -> T {
    let base = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(Seed(7), base, |time| async move {
        let settings = Settings { clock: time.clock, seed: time.seed, durations: Durations::default(), faults };
        let stage = Stage::of(World::new(settings).await.unwrap());
        body(stage).await
    })
    .unwrap()
}

impl Stage {
    /// Everything in the World goes on from here.
    fn of(world: World) -> Self {
        let Settings { clock, seed, durations, .. } = world.settings().clone();
        let (requests, doors, programs) = (Arc::default(), Arc::<Front>::default(), Arc::<Script>::default());
        let management = Management {
            client: counted(&world, &requests),
            workloads: world.workloads().clone(),
            programs: programs.clone(),
            doors: doors.clone(),
            clock: clock.clone(),
            seed,
            durations,
            faults: world.faults().clone(),
            providers: world.providers(),
        };
        tokio::spawn(management.run(std::future::pending()));
        let workloads = world.workloads().clone();
        tokio::spawn(async move { workloads.run().await });
        let scenario = world.clone();
        tokio::spawn(async move { scenario.run_scenario().await });
        let began = clock.now();
        Self { world, clock, began, requests, doors, programs }
    }

    /// Another World with the same objects, in which nobody knows what happened before.
    pub fn fork(&self) -> Self {
        Self::of(self.world.fork(self.world.settings().clone()))
    }

    pub fn client(&self) -> Client {
        self.world.client()
    }

    pub fn workload(&self, cluster: &str) -> Workload {
        self.world.workload(&format!("default/{cluster}").parse().unwrap()).unwrap()
    }

    /// Who is asked before Cluster API goes on.
    pub fn extension(&self) -> &Extension {
        &self.programs.extension
    }

    /// How many requests the simulators have made of the management API. Watches are not among them: they are resumed every
    /// five minutes, whether or not anything happens.
    pub fn requests(&self) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|(request, _)| !request.contains("watch")).map(|(_, count)| count).sum()
    }

    /// The requests by what they were for.
    pub fn request_table(&self) -> String {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(request, count)| format!("{count:>6} {request}")).collect::<Vec<_>>().join("\n")
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn elapsed_seconds(&self) -> i64 {
        self.clock.now().duration_since(self.began).as_secs()
    }

    /// Lets time pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub async fn until<K>(&self, name: &str, is_so: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        self.until_in("default", name, is_so).await
    }

    /// The object as it is when it is so for the first time.
    pub async fn until_in<K>(&self, namespace: &str, name: &str, is_so: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let met = await_condition(api.clone(), name, |object: Option<&K>| object.is_some_and(&is_so));
        let Ok(met) = tokio::time::timeout(Duration::from_secs(3 * 3600), met).await else {
            panic!("{name} never became so: {:#?}", api.get(name).await)
        };
        met.unwrap().unwrap()
    }

    pub async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        Api::default_namespaced(self.client()).get(name).await.unwrap()
    }

    pub async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        Api::<K>::default_namespaced(self.client()).delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// The names of the objects of a kind.
    pub async fn list<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let all = Api::<K>::default_namespaced(self.client()).list(&ListParams::default()).await.unwrap();
        all.items.iter().map(ResourceExt::name_any).collect()
    }

    pub async fn machines_of_pool(&self) -> Vec<String> {
        let pool = ListParams::default().labels("cluster.x-k8s.io/deployment-name=c-workers");
        let all = Api::<Machine>::default_namespaced(self.client()).list(&pool).await.unwrap();
        all.items.iter().map(ResourceExt::name_any).collect()
    }

    pub async fn nodes(&self, cluster: &str) -> Vec<String> {
        let all = Api::<Node>::all(self.workload(cluster).client()).list(&ListParams::default()).await.unwrap();
        all.items.iter().map(ResourceExt::name_any).collect()
    }

    pub async fn create(&self, object: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
        let namespace = object.metadata.namespace.clone().unwrap_or("default".into());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), &namespace, &kind);
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    /// A cluster and its certificates.
    pub async fn cluster(&self, name: &str) {
        self.cluster_without_certificates(name).await;
        self.certificates(name).await;
    }

    pub async fn cluster_without_certificates(&self, name: &str) {
        let labels = json!({"cluster.x-k8s.io/cluster-name": name});
        self.create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPCluster",
            "metadata": {"name": name, "labels": labels}, "spec": {},
        }))
        .await;
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPCluster", "name": name},
                "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
            },
        }))
        .await;
    }

    pub async fn certificates(&self, cluster: &str) {
        let api: Api<windlass_api::kind::cluster_api::Cluster> = Api::default_namespaced(self.client());
        let uid = api.get(cluster).await.unwrap().uid().unwrap();
        for secret in ["ca", "etcd", "proxy", "sa"] {
            self.create(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {
                    "name": format!("{cluster}-{secret}"),
                    "labels": {"cluster.x-k8s.io/cluster-name": cluster},
                    "ownerReferences": [
                        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster, "uid": uid},
                    ],
                },
                "type": "cluster.x-k8s.io/secret",
                "stringData": {"tls.crt": format!("certificate of\n{secret}\n"), "tls.key": format!("key of {secret}")},
            }))
            .await;
        }
    }

    pub async fn control_plane_machine(&self, cluster: &str, ordinal: u32) {
        let name = format!("{cluster}-control-plane-{ordinal}");
        let labels = json!({"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/control-plane": ""});
        let registration = json!({"kubeletExtraArgs": [{"name": "node-labels", "value": "a=b"}]});
        let spec = if ordinal == 0 {
            json!({
                "clusterConfiguration": {"imageRepository": "vmware"},
                "initConfiguration": {"nodeRegistration": registration, "skipPhases": ["addon/kube-proxy"]},
            })
        } else {
            json!({"joinConfiguration": {"nodeRegistration": registration, "controlPlane": {}}})
        };
        let metadata = json!({"name": name, "labels": labels});
        self.create(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": metadata, "spec": spec,
        }))
        .await;
        self.create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachine", "metadata": metadata,
            "spec": machine_spec(OLD),
        }))
        .await;
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": metadata,
            "spec": {
                "clusterName": cluster, "version": format!("{OLD}+vmware.1"),
                "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachine", "name": name},
            },
        }))
        .await;
    }

    /// The two templates of a pool at a version.
    pub async fn templates(&self, cluster: &str, version: &str) {
        let metadata = json!({
            "name": format!("{cluster}-workers-{}", fresh(version)),
            "labels": {"cluster.x-k8s.io/cluster-name": cluster},
        });
        self.create(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "metadata": metadata,
            "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {}}}}},
        }))
        .await;
        self.create(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachineTemplate", "metadata": metadata,
            "spec": {"template": {"spec": machine_spec(version)}},
        }))
        .await;
    }

    pub async fn pool(&self, cluster: &str, replicas: u32, version: &str) {
        self.templates(cluster, version).await;
        let name = format!("{cluster}-workers");
        let labels = json!({"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/deployment-name": name});
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "clusterName": cluster, "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pool_spec(cluster, version)},
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
            },
        }))
        .await;
    }

    pub async fn switch_pool(&self, cluster: &str, version: &str) -> MachineDeployment {
        let patch = Patch::Merge(json!({"spec": {"template": {"spec": pool_spec(cluster, version)}}}));
        let api: Api<MachineDeployment> = Api::default_namespaced(self.client());
        api.patch(&format!("{cluster}-workers"), &PatchParams::default(), &patch).await.unwrap()
    }

    pub async fn pause(&self, cluster: &str, paused: bool) {
        let api: Api<windlass_api::kind::cluster_api::Cluster> = Api::default_namespaced(self.client());
        let patch = Patch::Merge(json!({"spec": {"paused": paused}}));
        api.patch(cluster, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn take_away_image(&self, version: &str) -> VirtualMachineImage {
        let api: Api<VirtualMachineImage> = Api::all(self.client());
        let image = api.get(&image(version)).await.unwrap();
        api.delete(&image.name_any(), &DeleteParams::default()).await.unwrap();
        image
    }

    pub async fn bring_back(&self, image: &VirtualMachineImage) {
        let mut image = image.clone();
        (image.metadata.resource_version, image.metadata.uid) = (None, None);
        Api::all(self.client()).create(&PostParams::default(), &image).await.unwrap();
    }

    /// A Job as the controller makes it.
    pub async fn job(&self, name: &str) {
        let annotations = json!({"upgrade-id": "1280807", "upgrade-version": "v1.16.8+vmware.1"});
        let from = |key: &str| json!({"fieldRef": {"fieldPath": format!("metadata.annotations['{key}']")}});
        self.create(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": "vmware-system-tkg", "annotations": annotations},
            "spec": {
                "backoffLimit": 3, "parallelism": 1,
                "template": {
                    "metadata": {"annotations": annotations},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "upgrade", "image": "windlass", "command": ["windlass", "control-plane", "upgrade"],
                            "args": ["--kubernetes-version=$(VERSION)", "--upgrade-id=$(UPGRADE_ID)"],
                            "env": [
                                {"name": "VERSION", "valueFrom": from("upgrade-version")},
                                {"name": "UPGRADE_ID", "valueFrom": from("upgrade-id")},
                            ],
                        }],
                    },
                },
            },
        }))
        .await;
    }

    /// The programs end one after the other like this; the last way is that of all that follow.
    pub fn programs_end_with<const N: usize>(&self, exits: [Exit; N]) {
        *self.programs.exits.lock().unwrap() = exits.into();
    }

    pub fn programs_never_end(&self) {
        self.programs_end_with([]);
    }

    pub fn programs_running(&self) -> usize {
        self.programs.running.load(Ordering::Relaxed)
    }

    /// What programs were told.
    pub fn commands(&self) -> Vec<Vec<String>> {
        self.programs.commands.lock().unwrap().clone()
    }

    /// The clusters whose doors were closed.
    pub fn closed(&self) -> Vec<String> {
        self.doors.closed.lock().unwrap().clone()
    }
}

pub fn machine_spec(version: &str) -> Value {
    json!({"imageName": image(version), "className": "best-effort-small", "storageClass": "gc-storage-profile"})
}

pub fn pool_spec(cluster: &str, version: &str) -> Value {
    let name = format!("{cluster}-workers-{}", fresh(version));
    json!({
        "clusterName": cluster, "version": format!("{version}+vmware.1"),
        "bootstrap": {"configRef": {
            "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": name,
        }},
        "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachineTemplate", "name": name,
        },
    })
}

/// A client whose requests are counted by method and resource.
fn counted(world: &World, requests: &Arc<Mutex<BTreeMap<String, usize>>>) -> Client {
    let (mut server, requests) = (world.management().clone(), Arc::clone(requests));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let watch = if request.uri().query().is_some_and(|query| query.contains("watch=true")) { " watch" } else { "" };
        let mut parts =
            request.uri().path().trim_start_matches('/').split('/').skip_while(|part| *part != "namespaces");
        let (resource, rest) = (parts.nth(2).unwrap_or("all"), parts.nth(1).unwrap_or(""));
        let what = format!("{}{watch} {resource} {rest}", request.method());
        *requests.lock().unwrap().entry(what).or_default() += 1;
        server.call(request)
    });
    Client::new(service, "default")
}

/// Opens every door at the same place.
#[derive(Default)]
struct Front {
    closed: Mutex<Vec<String>>,
}

impl Doors for Front {
    fn open<'a>(&'a self, _: &'a NamespacedName, _: &'a Workload) -> BoxFuture<'a, Result<Endpoint, DoorError>> {
        async { Ok(Endpoint { host: "192.0.2.1".into(), port: 6443 }) }.boxed()
    }

    fn kubeconfig<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        _: &'a Endpoint,
    ) -> BoxFuture<'a, Result<String, DoorError>> {
        async move { Ok(format!("kubeconfig of {cluster}")) }.boxed()
    }

    fn close(&self, cluster: &NamespacedName) {
        self.closed.lock().unwrap().push(cluster.to_string());
    }
}

/// Programs that end as they are told.
#[derive(Default)]
struct Script {
    extension: Arc<Extension>,
    exits: Mutex<Vec<Exit>>,
    commands: Mutex<Vec<Vec<String>>>,
    running: Arc<AtomicUsize>,
}

impl Programs for Script {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        self.commands.lock().unwrap().push(container.command);
        let mut exits = self.exits.lock().unwrap();
        let exit = if exits.len() > 1 { Some(exits.remove(0)) } else { exits.first().cloned() };
        let running = Running::new(&self.running);
        async move {
            let _running = running;
            match exit {
                Some(exit) => exit,
                None => std::future::pending().await,
            }
        }
        .boxed()
    }

    fn post(&self, url: String, body: Vec<u8>) -> BoxFuture<'static, Result<Reply, Unheard>> {
        let reply = self.extension.reply(&url, &body);
        std::future::ready(reply.map_err(|why| Unheard { url, why })).boxed()
    }
}

/// Counts a program for as long as its future is there.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
