//! A management cluster with the kinds and the catalogue of a World, and nothing running in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_apiserver::{ApiServer, Options};
use windlass_controller::access::{
    Access, ConnectError, Etcd, EtcdError, KeyError, KeyMaker, Member, WorkloadCluster, Workloads,
};
use windlass_controller::metrics::Metrics;
use windlass_plan::gate::Gates;
use windlass_plan::render::Defaults;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

/// Runs a test in virtual time, in a World of its own.
pub fn in_world<F: Future<Output = ()>>(body: impl FnOnce(World) -> F) {
    let base = "2026-01-01T00:00:00Z".parse().unwrap();
    let run = run_virtual(Seed(1), base, |time| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        body(World::new(settings).await.unwrap()).await;
    });
    run.unwrap();
}

/// What controllers are given on a World where nobody else is at work.
pub fn access(world: &World, metrics: Option<Arc<Metrics>>) -> Access {
    Access {
        client: world.client(),
        workloads: Arc::new(Nothing),
        keys: Arc::new(Nothing),
        clock: world.settings().clock.clone(),
        seed: world.settings().seed,
        gates: Gates::all(),
        defaults: Defaults::default(),
        trace: None,
        metrics,
    }
}

/// A webhook for all writes of these operations to a group, version and resource.
pub fn webhook(name: &str, operations: &[&str], of: [&str; 3], handler: Arc<dyn Handler>) -> Webhook {
    let all = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let [group, version, resource] = of;
    Webhook {
        name: name.to_owned(),
        rules: vec![Rule {
            operations: all(operations),
            groups: all(&[group]),
            versions: all(&[version]),
            resources: all(&[resource]),
            scope: Scope::Namespaced,
        }],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        equivalent: false,
        conditions: None,
        handler,
    }
}

/// A second API server, to be a workload cluster.
pub fn workload(world: &World) -> WorkloadCluster {
    let options = Options { now: world.settings().clock.now_fn(), seed: 2, ..Options::default() };
    WorkloadCluster { client: Client::new(ApiServer::new(options), "default"), etcd: Arc::new(Nothing) }
}

/// A cluster of three machines and one, of this version.
pub fn tkc(version: Option<&str>, full_version: Option<&str>) -> TanzuKubernetesCluster {
    let machines = |count| json!({"count": count, "class": "best-effort-small", "storageClass": "gc-storage-profile"});
    read(json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1", "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "my-tkc", "namespace": "default"},
        "spec": {
            "topology": {"controlPlane": machines(3), "workers": machines(1)},
            "distribution": {"version": version, "fullVersion": full_version},
        },
    }))
}

pub fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

pub fn api<K>(client: &Client) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "default")
}

pub async fn create<K>(client: &Client, object: &K) -> K
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    api(client).create(&PostParams::default(), object).await.unwrap()
}

/// The resource versions of all objects of a kind, by name.
pub async fn versions<K>(client: &Client) -> BTreeMap<String, String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let version = |object: K| {
        let meta = object.meta();
        (meta.name.clone().unwrap(), meta.resource_version.clone().unwrap())
    };
    listed.items.into_iter().map(version).collect()
}

/// Keys that can be told apart, and no workload clusters.
pub struct Nothing;

impl KeyMaker for Nothing {
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError> {
        Ok([("tls.crt".to_owned(), format!("{cluster} {secret}").into_bytes())].into())
    }
}

impl Workloads for Nothing {
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        _: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        let error = ConnectError { cluster: cluster.clone(), why: "there are none".into() };
        async { Err(error) }.boxed()
    }
}

impl Etcd for Nothing {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        async { Err(EtcdError("there is none".into())) }.boxed()
    }

    fn remove(&self, _: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async { Err(EtcdError("there is none".into())) }.boxed()
    }

    fn move_leader(&self, _: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        async { Err(EtcdError("there is none".into())) }.boxed()
    }
}
