//! Clusters of a class in a World with all of Windlass: resolved when they are made, held when their release changes.

use std::time::Duration;

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::condition;
use windlass_api::kind::wcp::WCPMachine;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{self, World};

use crate::start::{SEED, founded};

const NEW: &str = "v1.25.7---vmware.2-tkg.1";

/// Runs everything on a World of its own until the script is done.
pub fn played<F: Future<Output = ()>>(script: impl FnOnce(Client) -> F) -> World {
    let (durations, faults) = (Durations::default(), Scenario::default());
    run_virtual(SEED, founded(), |time| async move {
        let settings = world::Settings { clock: time.clock, seed: time.seed, durations, faults };
        let world = World::new(settings).await.unwrap();
        let settings = Settings { classes: Some(HoldBy::Pause), ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        assembly.run(script(world.client())).await;
        world
    })
    .unwrap()
}

fn clusters(client: &Client) -> Api<Cluster> {
    Api::default_namespaced(client.clone())
}

async fn until(client: &Client, what: &str, is_so: impl Fn(&Cluster) -> bool) -> Cluster {
    for _ in 0..1000 {
        let cluster = clusters(client).get("wl").await.unwrap();
        if is_so(&cluster) {
            return cluster;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    panic!("never {what}: {:#?}", clusters(client).get("wl").await.unwrap());
}

async fn patch(client: &Client, patch: Value) -> Cluster {
    clusters(client).patch("wl", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

/// All machines are there, of this version, and the topology says that nothing is left to do.
fn is_at(version: &str) -> impl Fn(&Cluster) -> bool {
    move |cluster: &Cluster| {
        let Some(status) = &cluster.status else { return false };
        let done = condition(&status.conditions, "TopologyReconciled").is_some_and(|it| it.status == "True");
        let parts = [&status.control_plane, &status.workers];
        let all = |part: &Option<windlass_api::kind::cluster_api::Progress>| {
            part.as_ref().is_some_and(|part| {
                let [wanted, have, new] = [part.desired_replicas, part.available_replicas, part.up_to_date_replicas];
                wanted == Some(1) && have == wanted && new == wanted && part.replicas == wanted
            })
        };
        done && cluster.spec.topology.as_ref().is_some_and(|it| it.version == version) && parts.into_iter().all(all)
    }
}

async fn images(client: &Client) -> Vec<String> {
    let machines: Api<WCPMachine> = Api::default_namespaced(client.clone());
    let listed = machines.list(&ListParams::default()).await.unwrap();
    let mut images: Vec<String> = listed.items.into_iter().map(|machine| machine.spec.image_name).collect();
    images.sort();
    images.dedup();
    images
}

fn updates(cluster: &Cluster) -> Option<&str> {
    let it = condition(&cluster.status.as_ref()?.conditions, "UpdatesAvailable")?;
    Some(it.message.as_str())
}

#[test]
fn a_cluster_of_a_class_is_made_of_its_release_and_follows_its_label() {
    let world = played(|client| async move {
        let manifest = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wl"},
            "spec": {
                "clusterNetwork": {"services": {"cidrBlocks": ["198.51.100.0/12"]}, "pods": {"cidrBlocks": ["192.0.2.0/16"]}},
                "topology": {
                    "classRef": {"name": "tkg-vsphere-default-v1.0.0", "namespace": "tkg-system"},
                    "version": "v1.24",
                    "controlPlane": {"replicas": 1},
                    "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "md-0", "replicas": 1}]},
                },
            },
        });
        let manifest: Cluster = serde_json::from_value(manifest).unwrap();
        clusters(&client).create(&PostParams::default(), &manifest).await.unwrap();
        let made = until(&client, "made", is_at("v1.24.9+vmware.1")).await;
        assert_eq!(images(&client).await, ["ubuntu-2004-k8sd-v1.24.9-vmware.1-tkg.1"]);
        assert_eq!(updates(&made), Some("[v1.25.7+vmware.2-tkg.1]"));

        let held = patch(&client, json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}})).await;
        assert_eq!(held.annotations()["tkg.tanzu.vmware.com/paused"], NEW);
        assert_eq!(held.spec.paused, Some(true), "in the same write");
        until(&client, "told of updates", |cluster| updates(cluster) == Some("[v1.26.5+vmware.2-tkg.1]")).await;
        let done = until(&client, "upgraded", is_at("v1.25.7+vmware.2")).await;
        assert_eq!(images(&client).await, ["ubuntu-2004-k8sd-v1.25.7-vmware.2-tkg.1"]);
        let resting = done.metadata.generation;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clusters(&client).get("wl").await.unwrap().metadata.generation, resting, "it is at rest");
    });
    assert!(world.recorder().violations().is_empty(), "{:?}", world.recorder().violations());
}
