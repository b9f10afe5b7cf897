//! Pods that are restarted, crash, or cannot leave.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, EvictParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Fault, Requests, Scenario, Span, When, Whom};

use super::{code, in_world_with, said};
use crate::workload::{apply, daemon_set, deployment, grown, pods};
use crate::world::minutes;

/// The pods with a label, as node and image.
async fn images(client: &Client, label: &str) -> Vec<(String, String)> {
    let list = Api::<Pod>::all(client.clone()).list(&ListParams::default().labels(label)).await.unwrap();
    let image = |pod: &Pod| {
        let spec = pod.spec.clone().unwrap();
        (spec.node_name.unwrap_or_default(), spec.containers[0].image.clone().unwrap_or_default())
    };
    let mut images: Vec<(String, String)> = list.items.iter().map(image).collect();
    images.sort();
    images
}

#[test]
fn a_pod_that_is_restarted_on_an_old_node_comes_back_as_the_daemon_set_is_now() {
    let fault = Fault::PodRestart { of: Whom::named("kube-system/proxy-*"), nodes: "w-0".into() };
    in_world_with(7, Scenario::default().and(fault, When::from(Span::minutes(6))), |world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, daemon_set("proxy:1", "OnDelete", &json!({"zone": "w"}))).await;
        minutes(1).await;
        apply(&client, daemon_set("proxy:2", "OnDelete", &json!({"zone": "w"}))).await;
        minutes(1).await;
        let on = |node: &str, image: &str| (node.to_owned(), image.to_owned());
        assert_eq!(images(&client, "app=proxy").await, [on("w-0", "proxy:1"), on("w-1", "proxy:1")]);
        minutes(3).await;
        assert_eq!(images(&client, "app=proxy").await, [on("w-0", "proxy:2"), on("w-1", "proxy:1")]);
        assert_eq!(world.faults().bites(), [1]);
        said(&world, "is restarted");
    });
}

#[test]
fn a_pod_that_crashes_is_never_ready() {
    let fault = Fault::CrashLoop { of: Whom::named("kube-system/dns-*") };
    in_world_with(7, Scenario::default().and(fault, When::times(1)), |world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(2).await;
        let ready: Vec<bool> = pods(&client, "app=dns").await.into_iter().map(|(_, ready)| ready).collect();
        assert_eq!(ready.iter().filter(|ready| **ready).count(), 1, "one of two: {ready:?}");
        let list = Api::<Pod>::all(client.clone()).list(&ListParams::default().labels("app=dns")).await.unwrap();
        let reason = |pod: &Pod| {
            let status = pod.status.clone()?.container_statuses?.first()?.clone();
            status.state?.waiting?.reason
        };
        assert_eq!(list.items.iter().filter_map(reason).collect::<Vec<_>>(), ["CrashLoopBackOff"]);
        said(&world, "ends as soon as it has started");
    });
}

async fn budget(client: &Client, name: &str, min_available: u32) {
    let budget: Value = json!({
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": "dns"}}},
    });
    let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "kube-system");
    api.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
}

/// The status of an attempt to evict one of the pods; 200 where it goes.
async fn evicted(client: &Client) -> u16 {
    let api: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let pod = api.list(&ListParams::default().labels("app=dns")).await.unwrap().items.remove(0);
    match api.evict(&pod.name_any(), &EvictParams::default()).await {
        Ok(_) => 200,
        Err(error) => code(Err::<(), _>(error)),
    }
}

#[test]
fn a_budget_of_all_replicas_and_two_budgets_for_one_pod_let_nobody_leave() {
    in_world_with(7, Scenario::default(), |world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(2).await;
        budget(&client, "all", 2).await;
        minutes(1).await;
        assert_eq!(evicted(&client).await, 429, "none may leave");
        budget(&client, "again", 1).await;
        minutes(1).await;
        assert_eq!(evicted(&client).await, 500, "which of the two is asked is not defined");
    });
}

#[test]
fn evictions_are_refused_in_a_storm_of_429() {
    let storm = Fault::Refusal {
        on: Requests::to("create", "pods/eviction").by(Caller::Upgrader),
        code: 429,
        retry_after_seconds: Some(10),
    };
    in_world_with(7, Scenario::default().and(storm, When::times(5)), |world| async move {
        let workload = grown(&world, 1, 2).await;
        apply(&workload.client(), deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(2).await;
        let client = workload.client_of(Caller::Upgrader);
        for _ in 0..5 {
            assert_eq!(evicted(&client).await, 429);
        }
        assert_eq!(evicted(&client).await, 200);
        said(&world, "of the upgrader is refused with 429");
    });
}

#[test]
fn a_replacement_that_fits_no_node_waits() {
    in_world_with(7, Scenario::default(), |world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 1, &json!({"zone": "nowhere"}))).await;
        minutes(2).await;
        assert_eq!(images(&client, "app=dns").await, [(String::new(), "dns:1".to_owned())]);
        let api: Api<Deployment> = Api::namespaced(client, "kube-system");
        assert_eq!(api.get("dns").await.unwrap().status.unwrap().available_replicas.unwrap_or_default(), 0);
    });
}
