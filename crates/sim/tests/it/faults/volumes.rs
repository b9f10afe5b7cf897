//! Volumes that are not detached.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use windlass_api::kind::cluster_api::Machine;
use windlass_sim::fault::{Fault, Scenario, Span, When, Whom};

use super::{is_available, said};
use crate::management::stage::{OLD, Stage, stage_with};

async fn pod_with_volume(stage: &Stage) {
    let client = stage.workload("c").client();
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "any"},
    });
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
    let pod = json!({
        "metadata": {"name": "database"},
        "spec": {
            "containers": [{"name": "a", "image": "a:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

async fn attachments(stage: &Stage) -> usize {
    let api: Api<VolumeAttachment> = Api::all(stage.workload("c").client());
    api.list(&ListParams::default()).await.unwrap().items.len()
}

/// Makes a cluster with one worker, on which a pod has its volume, and deletes its Machine, whose name this is.
async fn held_up(stage: &Stage) -> String {
    stage.cluster("c").await;
    stage.control_plane_machine("c", 0).await;
    stage.until("c-control-plane-0", is_available).await;
    stage.pool("c", 1, OLD).await;
    stage.pass(600).await;
    pod_with_volume(stage).await;
    stage.pass(60).await;
    assert_eq!(attachments(stage).await, 1);
    let machine = stage.machines_of_pool().await.remove(0);
    stage.delete::<Machine>(&machine).await;
    stage.pass(1_500).await;
    machine
}

fn volumes_stay() -> Scenario {
    let fault = Fault::VolumeStays { of: Whom::named("c-workers-*") };
    Scenario::default().and(fault, When::between(Span::default(), Span::minutes(60)))
}

#[test]
fn a_volume_that_is_not_detached_holds_its_machine_up() {
    stage_with(volumes_stay(), |stage| async move {
        let machine = held_up(&stage).await;
        assert_eq!(attachments(&stage).await, 1);
        assert!(stage.list::<Machine>().await.contains(&machine), "it waits for its volume");
        said(&stage.world, &format!("F30: {machine} keeps its volumes"));
    });
}

#[test]
fn a_volume_that_is_detached_at_last_lets_its_machine_go_with_the_next_look() {
    stage_with(volumes_stay(), |stage| async move {
        let machine = held_up(&stage).await;
        let left = 3_600 - stage.elapsed_seconds();
        stage.pass(u64::try_from(left).unwrap() - 1).await;
        assert_eq!(attachments(&stage).await, 1);
        stage.pass(2).await;
        assert_eq!(attachments(&stage).await, 0, "the disk is let go at once");
        // Volumes are looked at every 20 s; after that the machine is switched off and deleted.
        stage.pass(20).await;
        let machines: Api<Machine> = Api::default_namespaced(stage.client());
        let going = machines.get(&machine).await.unwrap().status.unwrap().conditions;
        let going = going.iter().find(|condition| condition.type_ == "Deleting").unwrap();
        assert_eq!(going.reason, "WaitingForInfrastructureDeletion");
        stage.pass(60).await;
        assert!(machines.get_opt(&machine).await.unwrap().is_none(), "it is gone");
        let pool = stage.machines_of_pool().await;
        assert!(pool.len() == 1 && pool[0] != machine, "the one in its place has a name of its own: {pool:?}");
    });
}
