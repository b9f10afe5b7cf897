//! The controller as a whole, with nobody else at work.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::is_true;
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::kind::wcp::WCPCluster;
use windlass_controller::access::Access;
use windlass_controller::reconcile::{FINALIZER, JOB_NAMESPACE, run};
use windlass_plan::gate::Gates;
use windlass_plan::render::Defaults;
use windlass_sim::world::World;

use crate::world::{Nothing, api, create, in_world, read, tkc, versions};

/// Runs the controller for a while.
async fn controlled(world: &World, seconds: u64) {
    let access = Access {
        client: world.client(),
        workloads: Arc::new(Nothing),
        keys: Arc::new(Nothing),
        clock: world.settings().clock.clone(),
        seed: world.settings().seed,
        gates: Gates::all(),
        defaults: Defaults::default(),
        trace: None,
    };
    run(access, tokio::time::sleep(Duration::from_secs(seconds))).await;
}

#[test]
fn a_cluster_without_a_release_says_so_once() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &tkc(None, Some("v1.99.0+vmware.1-guest.1"))).await;
        controlled(&world, 5).await;
        let clusters = api::<TanzuKubernetesCluster>(&client);
        let cluster = clusters.get("my-tkc").await.unwrap();
        let status = cluster.status.unwrap();
        assert_eq!(status.phase, Some(Phase::Creating));
        let why = "there is no VirtualMachineImage with the distribution v1.99.0+vmware.1-guest.1";
        assert_eq!(status.waiting_for.as_deref(), Some(why));
        assert!(is_true(&status.conditions, "Stalled") && !is_true(&status.conditions, "Ready"));

        let before = (versions::<TanzuKubernetesCluster>(&client).await, versions::<Event>(&client).await);
        controlled(&world, 3600).await;
        let after = (versions::<TanzuKubernetesCluster>(&client).await, versions::<Event>(&client).await);
        assert_eq!(before, after, "neither an hour nor a restart changes anything");
        assert_eq!(before.1.len(), 1);
    });
}

#[test]
fn a_cluster_is_held_before_anything_is_made_for_it_and_let_go_when_all_is_gone() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &tkc(None, Some("v1.16.7+vmware.1-guest.1"))).await;
        controlled(&world, 60).await;
        let clusters = api::<TanzuKubernetesCluster>(&client);
        let cluster = clusters.get("my-tkc").await.unwrap();
        assert_eq!(cluster.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
        assert_eq!(cluster.status.unwrap().phase, Some(Phase::Creating));
        assert!(api::<Cluster>(&client).get_opt("my-tkc").await.unwrap().is_some());
        assert!(api::<WCPCluster>(&client).get_opt("my-tkc").await.unwrap().is_some());

        // Somebody else has a hold on the Cluster: the deletion waits, and says for what.
        let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
        api::<Cluster>(&client).patch("my-tkc", &PatchParams::default(), &hold).await.unwrap();
        clusters.delete("my-tkc", &DeleteParams::default()).await.unwrap();
        controlled(&world, 60).await;
        let status = clusters.get("my-tkc").await.unwrap().status.unwrap();
        assert_eq!(status.phase, Some(Phase::Deleting));
        assert_eq!(status.waiting_for.as_deref(), Some("Cluster/my-tkc is still there"));

        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api::<Cluster>(&client).patch("my-tkc", &PatchParams::default(), &release).await.unwrap();
        controlled(&world, 60).await;
        assert!(clusters.get_opt("my-tkc").await.unwrap().is_none());
        let left = Api::<WCPCluster>::all(client).list(&ListParams::default()).await.unwrap();
        assert!(left.items.is_empty(), "what it owned has gone with it");
    });
}

/// A Job that replaces the control plane of this cluster.
fn job(namespace: &str) -> Job {
    let labels = json!({"cluster.x-k8s.io/cluster-name": "my-tkc", "windlass.dev/cluster-namespace": namespace});
    let container = json!({"name": "upgrade", "image": "windlass"});
    read(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": format!("update-of-{namespace}"), "namespace": JOB_NAMESPACE, "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }))
}

#[test]
fn the_job_of_a_cluster_goes_first_and_its_workers_are_waited_for() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &tkc(None, Some("v1.16.7+vmware.1-guest.1"))).await;
        controlled(&world, 60).await;
        let jobs: Api<Job> = Api::namespaced(client.clone(), JOB_NAMESPACE);
        for namespace in ["default", "elsewhere"] {
            jobs.create(&PostParams::default(), &job(namespace)).await.unwrap();
        }
        let worker: Machine = read(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": "worker", "namespace": "default", "finalizers": ["example.com/hold"],
                "labels": {"cluster.x-k8s.io/cluster-name": "my-tkc"},
            },
            "spec": {"clusterName": "my-tkc", "bootstrap": {}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachine", "name": "worker",
            }},
        }));
        create(&client, &worker).await;

        let clusters = api::<TanzuKubernetesCluster>(&client);
        clusters.delete("my-tkc", &DeleteParams::default()).await.unwrap();
        controlled(&world, 60).await;
        let left: Vec<String> = versions::<Job>(&client).await.into_keys().collect();
        assert_eq!(left, ["update-of-elsewhere"], "and nobody else's");
        let status = clusters.get("my-tkc").await.unwrap().status.unwrap();
        assert_eq!(status.waiting_for.as_deref(), Some("Machine/worker is still there"));

        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let machines = api::<Machine>(&client);
        machines.patch("worker", &PatchParams::default(), &release).await.unwrap();
        machines.delete("worker", &DeleteParams::default()).await.unwrap();
        controlled(&world, 60).await;
        assert!(clusters.get_opt("my-tkc").await.unwrap().is_none());
    });
}
