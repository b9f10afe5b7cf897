//! Budgets count what may be evicted, and volumes follow their pods.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, DeleteParams, EvictParams, ListParams, PostParams};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};

use super::{apply, deployment, grown};
use crate::world::{in_world, minutes};

/// Healthy, desired and expected pods of the budget, and how many may be evicted.
async fn counted(client: &Client) -> [i32; 4] {
    let api = Api::<PodDisruptionBudget>::namespaced(client.clone(), "kube-system");
    let status = api.get("dns").await.unwrap().status.unwrap();
    [status.current_healthy, status.desired_healthy, status.expected_pods, status.disruptions_allowed]
}

#[test]
fn a_budget_is_counted_from_what_its_owner_should_have() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 4, &json!({"zone": "w"}))).await;
        let budget = json!({
            "metadata": {"name": "dns"},
            "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "dns"}}},
        });
        let budget: PodDisruptionBudget = serde_json::from_value(budget).unwrap();
        let budgets = Api::<PodDisruptionBudget>::namespaced(client.clone(), "kube-system");
        budgets.create(&PostParams::default(), &budget).await.unwrap();
        minutes(1).await;
        assert_eq!(counted(&client).await, [4, 3, 4, 1]);

        let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
        let all = pods.list(&ListParams::default().labels("app=dns")).await.unwrap().items;
        pods.evict(&all[0].name_any(), &EvictParams::default()).await.unwrap();
        let refused = pods.evict(&all[1].name_any(), &EvictParams::default()).await.unwrap_err();
        assert!(matches!(&refused, Error::Api(status) if status.code == 429), "{refused:?}");
        minutes(1).await;
        assert_eq!(counted(&client).await, [4, 3, 4, 1], "another has taken its place");
        pods.evict(&all[1].name_any(), &EvictParams::default()).await.unwrap();
        apply(&client, deployment("dns:1", 8, &json!({"zone": "w"}))).await;
        minutes(1).await;
        assert_eq!(counted(&client).await, [8, 6, 8, 2]);
    });
}

fn pod(node: &str) -> Value {
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "nodeName": node, "containers": [{"name": "db", "image": "db:1"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    })
}

async fn attached(client: &Client) -> Vec<String> {
    let all = Api::<VolumeAttachment>::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|attachment| attachment.spec.node_name).collect()
}

#[test]
fn a_claim_gets_a_volume_which_follows_its_pod_and_goes_with_the_claim() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        let claims = Api::<PersistentVolumeClaim>::default_namespaced(client.clone());
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
        minutes(1).await;
        let claim = claims.get("data").await.unwrap();
        assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));
        let name = claim.spec.unwrap().volume_name.unwrap();
        let volumes = Api::<PersistentVolume>::all(client.clone());
        let volume = volumes.get(&name).await.unwrap();
        assert_eq!(volume.spec.unwrap().claim_ref.unwrap().name.as_deref(), Some("data"));
        assert!(attached(&client).await.is_empty(), "nobody uses it yet");

        let pods = Api::<Pod>::default_namespaced(client.clone());
        for node in ["w-0", "w-1"] {
            pods.create(&PostParams::default(), &serde_json::from_value(pod(node)).unwrap()).await.unwrap();
            minutes(1).await;
            assert_eq!(attached(&client).await, [node]);
            pods.delete("db", &DeleteParams::default()).await.unwrap();
            minutes(1).await;
            assert!(attached(&client).await.is_empty());
        }
        claims.delete("data", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert!(volumes.get_opt(&name).await.unwrap().is_none());
    });
}
