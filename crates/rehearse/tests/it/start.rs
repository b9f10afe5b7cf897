//! Where tests begin: a World with one running cluster in it, made once for each size.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

pub const SEED: Seed = Seed(1);
pub const FROM: &str = "v1.15.5+vmware.1-guest.1";
pub const TO: &str = "v1.16.7+vmware.1-guest.1";

/// The class of clusters that every World has.
pub const CLASS: &str = "tkg-vsphere-default-v1.0.0";

/// When clusters are created.
pub fn founded() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// When they are updated: long after they are there.
pub fn later() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

pub fn cluster_name() -> NamespacedName {
    "default/my-tkc".parse().unwrap()
}

/// The update of the notes on rolling updates: to the newest release that begins with v1.16.7.
pub fn update() -> Request {
    let deadline = Duration::from_secs(2 * 60 * 60);
    Request { deadline, ..Request::new(cluster_name(), "v1.16.7", SEED, later()) }
}

/// A cluster as people write it.
pub fn manifest(control_plane: u32, workers: u32) -> TanzuKubernetesCluster {
    let yaml = format!(
        "
apiVersion: run.tanzu.vmware.com/v1alpha1
kind: TanzuKubernetesCluster
metadata:
  name: my-tkc
  namespace: default
spec:
  topology:
    controlPlane:
      count: {control_plane}
      class: best-effort-xlarge
      storageClass: gc-storage-profile
    workers:
      count: {workers}
      class: best-effort-xlarge
      storageClass: gc-storage-profile
  distribution:
    version: v1.15.5
  settings:
    network:
      cni:
        name: calico
      services:
        cidrBlocks:
        - 198.51.100.0/12
      pods:
        cidrBlocks:
        - 192.0.2.0/16
      serviceDomain: cluster.local
"
    );
    serde_saphyr::from_str(&yaml).unwrap()
}

/// A cluster of the class that every World has, by the beginning of a version: one machine of the control plane and one worker.
pub fn of_class() -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wl"},
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
            "topology": {
                "classRef": {"name": CLASS, "namespace": "tkg-system"}, "version": "v1.24",
                "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "a", "replicas": 1}]},
            },
        },
    }))
    .unwrap()
}

/// The same, which says nothing of where its class is: it has to be copied.
pub fn of_copied_class() -> Cluster {
    let mut cluster = of_class();
    let topology = cluster.spec.topology.as_mut().unwrap();
    topology.class_ref.namespace = None;
    cluster
}

/// A World without clusters.
pub fn empty() -> World {
    run_virtual(SEED, founded(), |time| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        World::new(settings).await.unwrap()
    })
    .unwrap()
}

/// Creates a cluster in a World without clusters.
pub fn create(control_plane: u32, workers: u32) -> Ended {
    let request = Request::new(cluster_name(), FROM, SEED, founded());
    let ended = rehearsal::create(&empty(), &request, &manifest(control_plane, workers)).unwrap();
    let reached = Verdict::Reached { distribution: FROM.into() };
    assert_eq!(ended.rehearsal.verdict, reached, "{}\n{}", ended.rehearsal, ended.traffic.text());
    ended
}

/// A cluster of so many machines of the control plane and workers. Made once for each size, by whoever asks first.
pub fn of(control_plane: u32, workers: u32) -> Arc<Ended> {
    type Made = BTreeMap<(u32, u32), Arc<OnceLock<Arc<Ended>>>>;
    static MADE: Mutex<Made> = Mutex::new(BTreeMap::new());
    let one = Arc::clone(MADE.lock().unwrap().entry((control_plane, workers)).or_default());
    Arc::clone(one.get_or_init(|| Arc::new(create(control_plane, workers))))
}

/// One machine of the control plane and one worker.
pub fn one_and_one() -> &'static Ended {
    static CREATED: OnceLock<Arc<Ended>> = OnceLock::new();
    CREATED.get_or_init(|| of(1, 1))
}

/// The same World in a runtime and a time of its own, changed by whoever asks.
pub fn changed<F: Future<Output = ()>>(start: &Ended, change: impl FnOnce(World) -> F) -> World {
    run_virtual(SEED, later(), |time| {
        let world = start.world.fork(Settings { clock: time.clock, ..start.world.settings().clone() });
        let changing = change(world.clone());
        async move {
            changing.await;
            world
        }
    })
    .unwrap()
}

/// Three machines of the control plane and one worker.
pub fn three_and_one() -> &'static Ended {
    static CREATED: OnceLock<Arc<Ended>> = OnceLock::new();
    CREATED.get_or_init(|| of(3, 1))
}
