//! A World with one cluster in it, which was made by hand: nothing but its control plane.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, LocalBoxFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::annotation::MACHINE_NAME_BASE;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::is_true;
use windlass_api::kind::wcp::{Endpoint, WCPCluster, WCPMachine};
use windlass_api::label;
use windlass_api::name::{
    Child, ClusterName, ClusterSecret, MachineName, NameLimit, NamespacedName, Role, Uid, UpdateId,
};
use windlass_controller::access::{ConnectError, WorkloadCluster, Workloads};
use windlass_controller::upgrader::{self, Arguments, Done, UpgraderAccess};
use windlass_plan::release::Release;
use windlass_plan::render::Scope;
use windlass_plan::render::job::job;
use windlass_plan::target::Target;
use windlass_runtime::clock::Clock;
use windlass_sim::catalogue;
use windlass_sim::door::{DoorError, Doors};
use windlass_sim::program::{Container, Exit, Programs};
use windlass_sim::workload::Workload;
use windlass_sim::world::{Settings, World};

use super::seam::{Process, Seam, SeamEtcd};

pub const OLD: &str = "v1.15.5+vmware.1";
pub const NEW: &str = "v1.16.7+vmware.1";
const OLD_IMAGE: &str = "photon-k8sd-v1.15.5-vmware.1-guest.1";
const NEW_IMAGE: &str = "photon-k8sd-v1.16.7-vmware.1-guest.1";
const NAMESPACE: &str = "default";
const CLUSTER: &str = "my-tkc";

/// A World, and how many control-plane machines its cluster has.
#[derive(Clone)]
pub struct Site {
    pub world: World,
    count: u32,
}

/// What a crash of the program leaves behind.
pub struct Crash {
    /// The last write before it.
    pub after: String,
    /// How many machines the program had created.
    pub created_before: usize,
    at: Timestamp,
    site: Site,
}

impl Crash {
    /// The World as it goes on from there: no time has passed in it since.
    pub fn site(&self) -> Site {
        let clock = Clock::virtual_from(self.at);
        self.site.fork(Settings { clock, ..self.site.world.settings().clone() })
    }
}

impl Site {
    pub fn new(world: World, count: u32) -> Self {
        Self { world, count }
    }

    fn fork(&self, settings: Settings) -> Self {
        Self { world: self.world.fork(settings), count: self.count }
    }

    /// Lets the World live until a body has ended.
    pub fn live<'a, T: 'a>(&self, body: impl Future<Output = T> + 'a) -> LocalBoxFuture<'a, T> {
        let world = self.world.clone();
        Box::pin(async move {
            let world = world.run(Arc::new(Nothing), Arc::new(Nothing), std::future::pending());
            tokio::select! {
                biased;
                () = world => panic!("a World does not end by itself"),
                value = body => value,
            }
        })
    }

    fn name() -> NamespacedName {
        format!("{NAMESPACE}/{CLUSTER}").parse().unwrap()
    }

    pub fn machines(&self) -> Api<Machine> {
        self.api()
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.world.client(), NAMESPACE)
    }

    pub fn workload(&self) -> Workload {
        self.world.workload(&Self::name()).unwrap()
    }

    /// The nodes that etcd is made of, by name.
    pub fn member_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.workload().members().unwrap().into_iter().map(|member| member.name).collect();
        names.sort();
        names
    }

    /// What was wrong at any time. (D1 is not asked for: there are no add-ons here, and they are not this program's business.)
    pub fn violations(&self) -> Vec<String> {
        let all = self.world.recorder().violations();
        all.iter().filter(|one| one.id != "D1").map(|one| format!("{}: {}", one.id, one.message)).collect()
    }

    /// Creates the cluster, one machine after the other.
    pub async fn create(&self) {
        let labels = json!({ label::CLUSTER_NAME.name: CLUSTER });
        let reference =
            |kind: &str| json!({ "apiGroup": "infrastructure.cluster.vmware.com", "kind": kind, "name": CLUSTER });
        self.post::<WCPCluster>(json!({ "metadata": { "name": CLUSTER, "labels": labels }, "spec": {} })).await;
        let spec = json!({ "infrastructureRef": reference("WCPCluster") });
        let cluster =
            self.post::<Cluster>(json!({ "metadata": { "name": CLUSTER, "labels": labels }, "spec": spec })).await;
        let owner = json!([cluster.owner_ref(&()).unwrap()]);
        for secret in ClusterSecret::CERTIFICATES {
            let name = secret.object_name(&CLUSTER.parse().unwrap());
            self.post::<Secret>(json!({
                "metadata": { "name": name, "labels": labels, "ownerReferences": owner },
                "type": "cluster.x-k8s.io/secret",
                "stringData": { "tls.crt": "a certificate", "tls.key": "a key" },
            }))
            .await;
        }
        for ordinal in 0..self.count {
            self.create_machine(ordinal, &owner).await;
        }
        self.create_update().await;
    }

    /// The record of the update, by which machines of two versions are known to be as they should.
    async fn create_update(&self) {
        let machines =
            json!({ "count": self.count, "class": "best-effort-small", "storageClass": "gc-storage-profile" });
        let end = |kubernetes: &str| {
            json!({
                "distribution": format!("{kubernetes}-guest.1"), "kubernetes": kubernetes,
                "controlPlane": machines, "workers": machines,
            })
        };
        let name = format!("{CLUSTER}-1");
        self.post::<ClusterUpdate>(json!({ "metadata": { "name": name }, "spec": {
            "cluster": CLUSTER, "ordinal": 1, "id": update(), "from": end(OLD), "to": end(NEW), "envelopeDigest": "",
        }}))
        .await;
        let running = Patch::Merge(json!({ "status": { "state": "Running" } }));
        self.api::<ClusterUpdate>().patch_status(&name, &PatchParams::default(), &running).await.unwrap();
    }

    async fn create_machine(&self, ordinal: u32, owner: &Value) {
        let (name, base) = original(ordinal);
        let metadata = json!({
            "name": name,
            "labels": { label::CLUSTER_NAME.name: CLUSTER, label::CONTROL_PLANE.name: "" },
            "annotations": { MACHINE_NAME_BASE.name: base },
            "ownerReferences": owner,
        });
        let registration = json!({ "kubeletExtraArgs": [{ "name": "node-labels", "value": "release=old" }] });
        let configuration = if ordinal == 0 {
            json!({
                "clusterConfiguration": {
                    "imageRepository": "vmware",
                    "etcd": { "local": { "imageRepository": "vmware", "imageTag": "v3.3.10_vmware.5" } },
                    "dns": { "imageRepository": "vmware", "imageTag": "v1.3.1_vmware.4" },
                },
                "initConfiguration": { "nodeRegistration": registration },
            })
        } else {
            json!({ "joinConfiguration": { "nodeRegistration": registration, "controlPlane": {} } })
        };
        self.post::<KubeadmConfig>(json!({ "metadata": metadata, "spec": configuration })).await;
        let spec =
            json!({ "imageName": OLD_IMAGE, "className": "best-effort-small", "storageClass": "gc-storage-profile" });
        self.post::<WCPMachine>(json!({ "metadata": metadata, "spec": spec })).await;
        let reference = |group: &str, kind: &str| json!({ "apiGroup": group, "kind": kind, "name": name });
        let spec = json!({
            "clusterName": CLUSTER,
            "version": OLD,
            "bootstrap": { "configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig") },
            "infrastructureRef": reference("infrastructure.cluster.vmware.com", "WCPMachine"),
        });
        self.post::<Machine>(json!({ "metadata": metadata, "spec": spec })).await;
        let ready = |machine: Option<&Machine>| {
            let status = machine.and_then(|machine| machine.status.as_ref());
            status.is_some_and(|status| is_true(&status.conditions, "Ready"))
        };
        let awaited = await_condition(self.machines(), name.as_str(), ready);
        tokio::time::timeout(Duration::from_secs(3600), awaited).await.expect("the machine is ready").unwrap();
    }

    async fn post<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Runs the program.
    pub async fn upgrade(&self, process: &Process) -> Result<Done, upgrader::Error> {
        self.upgrade_to_image(process, NEW_IMAGE).await
    }

    /// Runs the program, and keeps what a crash after each of its writes would have left behind.
    pub async fn upgrade_with_crashes(&self) -> Vec<Crash> {
        let crashes: Arc<Mutex<Vec<Crash>>> = Arc::default();
        let (kept, site) = (Arc::clone(&crashes), self.clone());
        let process = Process::watched_by(move |process| {
            let after = process.writes().pop().unwrap();
            let created_before = process.created("machines");
            let settings = site.world.settings().clone();
            let at = settings.clock.now();
            kept.lock().unwrap().push(Crash { after, created_before, at, site: site.fork(settings) });
        });
        self.upgrade(&process).await.unwrap();
        std::mem::take(&mut crashes.lock().unwrap())
    }

    fn access(&self, process: &Process) -> UpgraderAccess {
        UpgraderAccess {
            client: Client::new(Seam { inner: self.world.management().clone(), process: process.clone() }, NAMESPACE),
            workloads: Arc::new(InProcess { world: self.world.clone(), process: process.clone() }),
            clock: self.world.settings().clock.clone(),
        }
    }

    pub async fn upgrade_to_image(&self, process: &Process, image: &str) -> Result<Done, upgrader::Error> {
        let access = self.access(process);
        let command = command().map(|word| word.replace(NEW_IMAGE, image)).collect::<Vec<_>>();
        upgrader::run(&access, &Arguments::parse(&command).unwrap()).await
    }

    /// Gives the update up.
    pub async fn abort(&self, process: &Process) -> Result<(), upgrader::Error> {
        let access = self.access(process);
        let patches = r#"[{"op":"replace","path":"/dns/imageTag","value":"v1.3.1_vmware.4"}]"#;
        let words = [
            "windlass".to_owned(),
            "control-plane".to_owned(),
            "abort".to_owned(),
            format!("--kubernetes-version={OLD}"),
            format!("--upgrade-id={}", update()),
            format!("--cluster-name={CLUSTER}"),
            format!("--cluster-namespace={NAMESPACE}"),
            format!("--kubeadm-configmap-patches={patches}"),
        ];
        upgrader::abort(&access, &Arguments::parse(&words).unwrap()).await
    }

    /// The version that whoever joins next would have.
    pub async fn version_of_kubeadm(&self) -> String {
        let maps: Api<ConfigMap> = Api::namespaced(self.workload().client(), "kube-system");
        let text = maps.get("kubeadm-config").await.unwrap().data.unwrap().remove("ClusterConfiguration").unwrap();
        let version = text.lines().find_map(|line| line.strip_prefix("kubernetesVersion: ")).unwrap();
        version.to_owned()
    }

    /// The names of what machines are made from.
    pub async fn parts(&self) -> Vec<String> {
        let infrastructure = self.api::<WCPMachine>().list(&ListParams::default()).await.unwrap();
        let configurations = self.api::<KubeadmConfig>().list(&ListParams::default()).await.unwrap();
        let names = infrastructure.iter().map(ResourceExt::name_any);
        names.chain(configurations.iter().map(ResourceExt::name_any)).collect()
    }

    /// Somebody else's machine, under the name of the first replacement.
    pub async fn create_stray_infrastructure(&self, name: &str) {
        let spec =
            json!({ "imageName": OLD_IMAGE, "className": "best-effort-small", "storageClass": "gc-storage-profile" });
        self.post::<WCPMachine>(json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    /// Waits until a member of etcd was added that has not started.
    pub async fn unstarted_member(&self) {
        while !self.workload().members().unwrap().iter().any(|member| member.name.is_empty()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits until there is only one machine.
    pub async fn only_machine_left(&self) {
        loop {
            let machines = self.machines().list(&ListParams::default()).await.unwrap();
            if machines.items.len() == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Makes the certificates belong to a machine's configuration and nothing else, as an older tool would.
    pub async fn orphan_certificates(&self) {
        let (name, _) = original(0);
        let owner = self.api::<KubeadmConfig>().get(name.as_str()).await.unwrap().owner_ref(&()).unwrap();
        for secret in ClusterSecret::CERTIFICATES {
            let name = secret.object_name(&CLUSTER.parse().unwrap());
            let patch = json!({ "metadata": { "ownerReferences": [owner] } });
            let patch = Patch::Merge(patch);
            self.api::<Secret>().patch(name.as_str(), &PatchParams::default(), &patch).await.unwrap();
        }
    }

    /// The owners of each certificate, as kind and uid.
    pub async fn certificate_owners(&self) -> BTreeMap<String, Vec<String>> {
        let mut all = BTreeMap::new();
        for secret in ClusterSecret::CERTIFICATES {
            let name = secret.object_name(&CLUSTER.parse::<ClusterName>().unwrap());
            let secret = self.api::<Secret>().get(name.as_str()).await.unwrap();
            let owners =
                secret.owner_references().iter().map(|owner| format!("{} {}", owner.kind, owner.uid)).collect();
            all.insert(name.to_string(), owners);
        }
        all
    }
}

/// The id of the update.
pub fn update() -> UpdateId {
    UpdateId::new(&uid(), 1)
}

/// The name of a machine before the update, and its base.
pub fn original(ordinal: u32) -> (MachineName, MachineName) {
    named(UpdateId::new(&uid(), 0), ordinal)
}

/// The name of a machine after the update, and its base.
pub fn replacement(ordinal: u32) -> (MachineName, MachineName) {
    named(update(), ordinal)
}

/// What the container of the update's Job is told, as it is planned and as the kubelet completes it.
fn command() -> impl Iterator<Item = String> {
    let image = catalogue::images().unwrap().into_iter().find(|image| image.name_any() == NEW_IMAGE).unwrap();
    let mut cluster = crate::world::tkc(None, None);
    cluster.metadata.uid = Some(uid().to_string());
    let target = Target::new(&cluster, Release::from_image(&image).unwrap()).unwrap();
    let mut job = job(&Scope { target: &target, update: update() });
    let container = job["spec"]["template"]["spec"]["containers"][0].take();
    let words = ["command", "args"].map(|part| container[part].as_array().unwrap().clone()).into_iter().flatten();
    let variables = [
        ("$(VERSION)", NEW.to_owned()),
        ("$(UPGRADE_ID)", update().to_string()),
        ("$(CLUSTER_NAME)", CLUSTER.to_owned()),
    ];
    words.map(move |word| {
        let word = word.as_str().unwrap().to_owned();
        variables.iter().fold(word, |word, (variable, value)| word.replace(variable, value))
    })
}

fn uid() -> Uid {
    Uid::new("208025ff-0cc9-4c88-b22d-5a43b1c33831").unwrap()
}

fn named(update: UpdateId, ordinal: u32) -> (MachineName, MachineName) {
    let cluster: ClusterName = CLUSTER.parse().unwrap();
    let child = Child { cluster: &cluster, update, role: &Role::ControlPlane, ordinal };
    (child.name(NameLimit::LabelValue), child.base())
}

/// The workload clusters of a World, for one process.
struct InProcess {
    world: World,
    process: Process,
}

impl Workloads for InProcess {
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        _: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        Box::pin(async move {
            let refused = || ConnectError { cluster: cluster.clone(), why: "there is no such cluster".to_owned() };
            let workload = self.world.workload(cluster).ok_or_else(refused)?;
            let through = tower::service_fn({
                let client = workload.client();
                move |request| {
                    let client = client.clone();
                    async move { client.send(request).await }
                }
            });
            let seam = Seam { inner: through, process: self.process.clone() };
            let etcd = SeamEtcd { workload, process: self.process.clone() };
            Ok(WorkloadCluster { client: Client::new(seam, NAMESPACE), etcd: Arc::new(etcd) })
        })
    }
}

/// There are no Jobs and no sockets here.
struct Nothing;

impl Programs for Nothing {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        Box::pin(async move { Exit { code: 127, message: format!("there is no program {:?}", container.command) } })
    }
}

impl Doors for Nothing {
    fn open<'a>(&'a self, _: &'a NamespacedName, _: &'a Workload) -> BoxFuture<'a, Result<Endpoint, DoorError>> {
        Box::pin(async { Ok(Endpoint { host: "192.0.2.1".to_owned(), port: 6443 }) })
    }

    fn kubeconfig<'a>(&'a self, _: &'a NamespacedName, _: &'a Endpoint) -> BoxFuture<'a, Result<String, DoorError>> {
        Box::pin(async { Ok("nobody reads it here".to_owned()) })
    }

    fn close(&self, _: &NamespacedName) {}
}
