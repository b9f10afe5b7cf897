//! What a World has, and where it is made and left.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::MachineDeployment;
use windlass_api::kind::packaging::Package;
use windlass_api::kind::release::{ClusterBootstrapTemplate, OSImage, TanzuKubernetesRelease};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::door::{Doors, Inside};
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::program::{Container, Exit, Programs};
use windlass_sim::world::{Settings, World};

/// Nothing is run here.
struct NoPrograms;

impl Programs for NoPrograms {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        Box::pin(std::future::ready(Exit { code: 127, message: format!("{:?}: not found", container.command) }))
    }
}

/// When all runs begin.
pub fn base() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub fn settings(clock: Clock) -> Settings {
    Settings { clock, seed: Seed(7), durations: Durations::default(), faults: Scenario::default() }
}

/// Runs a body to its end in a World where everything lives.
pub fn in_world<F, T>(body: impl FnOnce(World) -> F) -> T
where
    F: Future<Output = T>,
{
    run_virtual(Seed(7), base(), |virtual_run| async move {
        let world = World::new(settings(virtual_run.clock)).await.unwrap();
        living(&world, body(world.clone())).await
    })
    .unwrap()
}

/// Lets a World live for as long as it takes to do something.
pub async fn living<T>(world: &World, body: impl Future<Output = T>) -> T {
    let doors: Arc<dyn Doors> = Arc::new(Inside { seed: world.settings().seed });
    tokio::select! {
        biased;
        done = body => done,
        () = world.run(Arc::new(NoPrograms), doors, std::future::pending()) => panic!("the World came to an end"),
    }
}

/// Lets time pass.
pub async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

#[test]
fn a_world_has_kinds_images_and_classes_from_the_start() {
    in_world(|world| async move {
        async fn names<K>(client: kube::Client) -> Vec<String>
        where
            K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
        {
            let list = Api::<K>::all(client).list(&ListParams::default()).await.unwrap();
            list.items.iter().map(kube::ResourceExt::name_any).collect()
        }
        let client = world.client();
        assert_eq!(
            names::<VirtualMachineImage>(client.clone()).await,
            [
                "photon-k8sd-v1.15.5-vmware.1-guest.1",
                "photon-k8sd-v1.16.7-vmware.1-guest.1",
                "photon-k8sd-v1.16.8-vmware.1-guest.1",
                "photon-k8sd-v1.17.4-vmware.1-guest.1",
                "ubuntu-2004-k8sd-v1.24.9-vmware.1-tkg.1",
                "ubuntu-2004-k8sd-v1.25.7-vmware.2-tkg.1",
                "ubuntu-2004-k8sd-v1.26.5-vmware.2-tkg.1",
                "ubuntu-2404-k8sd-v1.35.2-vmware.1-tkg.1",
                "ubuntu-2404-k8sd-v1.36.1-vmware.1-tkg.1",
            ]
        );
        assert_eq!(
            names::<VirtualMachineClass>(client.clone()).await,
            ["best-effort-large", "best-effort-small", "best-effort-xlarge", "guaranteed-small"]
        );
        assert_eq!(
            names::<k8s_openapi::api::storage::v1::StorageClass>(client.clone()).await,
            ["gc-storage-profile", "gc-storage-profile-fast"]
        );
        let namespaces = names::<k8s_openapi::api::core::v1::Namespace>(client.clone()).await;
        for namespace in ["tkg-system", "vmware-system-tkg"] {
            assert!(namespaces.contains(&namespace.to_owned()), "{namespaces:?}");
        }
        let releases = [
            "v1.24.9---vmware.1-tkg.1",
            "v1.25.7---vmware.2-tkg.1",
            "v1.26.5---vmware.2-tkg.1",
            "v1.35.2---vmware.1-tkg.1",
            "v1.36.1---vmware.1-tkg.1",
        ];
        assert_eq!(names::<TanzuKubernetesRelease>(client.clone()).await, releases);
        assert_eq!(names::<ClusterBootstrapTemplate>(client.clone()).await, releases);
        assert_eq!(names::<OSImage>(client.clone()).await, releases.map(|release| format!("{release}-ubuntu")));
        assert_eq!(names::<Package>(client.clone()).await.len(), 45);
        assert!(names::<TanzuKubernetesCluster>(client.clone()).await.is_empty(), "ours are defined");
        assert!(names::<MachineDeployment>(client).await.is_empty(), "those of Cluster API are defined");
    });
}

#[test]
fn the_doors_of_a_rehearsal_lead_nowhere_and_are_the_same_each_time() {
    in_world(|world| async move {
        let cluster = "default/my-tkc".parse().unwrap();
        let doors = Inside { seed: Seed(7) };
        let workload = world.workloads().ensure(&cluster);
        let endpoint = doors.open(&cluster, &workload).await.unwrap();
        assert!(endpoint.host.starts_with("10.") && endpoint.port == 6443, "{endpoint:?}");
        assert_eq!(doors.open(&cluster, &workload).await.unwrap(), endpoint);
        let kubeconfig = doors.kubeconfig(&cluster, &endpoint).await.unwrap();
        let read: kube::config::Kubeconfig =
            serde_json::from_value(serde_saphyr::from_str(&kubeconfig).unwrap()).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("my-tkc-admin@my-tkc"));
        let server = read.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
        assert_eq!(server, format!("https://{}:6443", endpoint.host));
    });
}
