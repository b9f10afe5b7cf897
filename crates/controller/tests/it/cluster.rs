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
use windlass_api::kind::wcp::{WCPCluster, WCPMachine};
use windlass_controller::metrics::Metrics;
use windlass_controller::reconcile::{FINALIZER, JOB_NAMESPACE, run};
use windlass_sim::world::World;

use crate::world::{access, api, create, in_world, read, tkc, versions};

/// Runs the controller for a while. Returns what it counted.
pub async fn controlled(world: &World, seconds: u64) -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::default());
    run(access(world, Some(metrics.clone())), tokio::time::sleep(Duration::from_secs(seconds))).await;
    metrics
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
        let why = "Cluster/my-tkc is still there: its finalizer example.com/hold has not been removed";
        assert_eq!(status.waiting_for.as_deref(), Some(why));
        assert!(!is_true(&status.conditions, "Stalled"));
        controlled(&world, 30 * 60).await;
        let status = clusters.get("my-tkc").await.unwrap().status.unwrap();
        assert_eq!(status.waiting_for.as_deref(), Some(why));
        assert!(is_true(&status.conditions, "Stalled"), "after half an hour waiting will not help");

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

        // Cluster API says how far it is, and what keeps it.
        let machines = api::<Machine>(&client);
        machines.delete("worker", &DeleteParams::default()).await.unwrap();
        let drains = |reason: &str, message: &str| {
            let deleting = json!({
                "type": "Deleting", "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            Patch::Merge(json!({"status": {"conditions": [deleting]}}))
        };
        let infrastructure: WCPMachine = read(json!({
            "apiVersion": "infrastructure.cluster.vmware.com/v1alpha2", "kind": "WCPMachine",
            "metadata": {"name": "worker", "namespace": "default", "finalizers": ["example.com/disk"]},
            "spec": {"imageName": "a", "className": "b", "storageClass": "c"},
        }));
        create(&client, &infrastructure).await;
        api::<WCPMachine>(&client).delete("worker", &DeleteParams::default()).await.unwrap();
        for (reason, message, why) in [
            (
                "DrainingNode",
                "Drain not completed yet:\n* Pod default/web-0: the budget web needs 3 pods",
                "DrainingNode: Drain not completed yet:; Pod default/web-0: the budget web needs 3 pods",
            ),
            (
                "WaitingForInfrastructureDeletion",
                "",
                "WCPMachine/worker is still there: its finalizer example.com/disk has not been removed",
            ),
        ] {
            machines.patch_status("worker", &PatchParams::default(), &drains(reason, message)).await.unwrap();
            controlled(&world, 60).await;
            let status = clusters.get("my-tkc").await.unwrap().status.unwrap();
            assert_eq!(status.waiting_for, Some(format!("Machine/worker is still there: {why}")));
        }

        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        machines.patch("worker", &PatchParams::default(), &release).await.unwrap();
        controlled(&world, 60).await;
        assert!(clusters.get_opt("my-tkc").await.unwrap().is_none());
    });
}
