//! What has pods: sets of them, Jobs, and pods whose containers end.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{grown, seen};
use crate::world::{in_world, minutes};

trait Served: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned {}
impl<K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned> Served for K {}

fn api<K: Served>(client: &Client) -> Api<K> {
    Api::namespaced(client.clone(), "default")
}

async fn put<K: Served>(client: &Client, name: &str, spec: &Value) {
    let apply = PatchParams::apply("test").force();
    let object = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}, "spec": spec,
    });
    api::<K>(client).patch(name, &apply, &Patch::Apply(object)).await.unwrap();
}

fn template(image: &str, annotations: &Value, restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": restart},
    })
}

async fn all(client: &Client) -> Vec<Pod> {
    api::<Pod>(client).list(&ListParams::default().labels("app=web")).await.unwrap().items
}

/// The pods by name, and their images where they are ready.
async fn ready(client: &Client) -> BTreeMap<String, Option<String>> {
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    all(client).await.iter().map(|pod| (pod.name_any(), seen(pod).1.then(|| image(pod)))).collect()
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

fn named(pods: &[(&str, &str)]) -> BTreeMap<String, Option<String>> {
    pods.iter().map(|(name, image)| ((*name).to_owned(), Some((*image).to_owned()))).collect()
}

fn stateful_set(image: &str, replicas: i64, partition: i64) -> Value {
    json!({
        "replicas": replicas, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        "template": template(image, &json!({}), "Always"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}],
    })
}

/// Every second for a while: how many pods there were at most that were not ready.
async fn unready_at_most(client: &Client, for_seconds: u64) -> usize {
    let mut most = 0;
    for _ in 0..for_seconds {
        most = most.max(ready(client).await.values().filter(|image| image.is_none()).count());
        seconds(1).await;
    }
    most
}

#[test]
fn the_pods_of_a_stateful_set_come_and_change_one_by_one_and_keep_their_names() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        put::<StatefulSet>(&client, "web", &stateful_set("web:1", 3, 0)).await;
        assert_eq!(unready_at_most(&client, 120).await, 1, "one after the other");
        assert_eq!(ready(&client).await, named(&[("web-0", "web:1"), ("web-1", "web:1"), ("web-2", "web:1")]));
        let claims = api::<PersistentVolumeClaim>(&client).list(&ListParams::default()).await.unwrap();
        let claims: Vec<String> = claims.items.iter().map(ResourceExt::name_any).collect();
        assert_eq!(claims, ["data-web-0", "data-web-1", "data-web-2"]);

        // The last one is tried out alone.
        put::<StatefulSet>(&client, "web", &stateful_set("web:2", 3, 2)).await;
        minutes(2).await;
        assert_eq!(ready(&client).await, named(&[("web-0", "web:1"), ("web-1", "web:1"), ("web-2", "web:2")]));
        api::<Pod>(&client).delete("web-0", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(ready(&client).await["web-0"].as_deref(), Some("web:1"), "it comes back as it was");
        let status = api::<StatefulSet>(&client).get("web").await.unwrap().status.unwrap();
        assert_eq!((status.current_replicas, status.updated_replicas), (Some(2), Some(1)));
        assert_ne!(status.current_revision, status.update_revision);

        put::<StatefulSet>(&client, "web", &stateful_set("web:2", 3, 0)).await;
        assert_eq!(unready_at_most(&client, 120).await, 1);
        assert_eq!(ready(&client).await, named(&[("web-0", "web:2"), ("web-1", "web:2"), ("web-2", "web:2")]));
        let status = api::<StatefulSet>(&client).get("web").await.unwrap().status.unwrap();
        assert_eq!(status.current_revision, status.update_revision);
        assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (3, Some(3), Some(3)));

        put::<StatefulSet>(&client, "web", &stateful_set("web:2", 1, 0)).await;
        minutes(1).await;
        assert_eq!(ready(&client).await, named(&[("web-0", "web:2")]));
    });
}

#[test]
fn a_stateful_set_waits_for_a_pod_whose_node_is_silent() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        put::<StatefulSet>(&client, "web", &stateful_set("web:1", 2, 0)).await;
        minutes(2).await;
        let node = api::<Pod>(&client).get("web-0").await.unwrap().spec.unwrap().node_name.unwrap();
        super::power_off(&workload, &node);
        minutes(30).await;
        let pod = api::<Pod>(&client).get("web-0").await.unwrap();
        assert!(pod.metadata.deletion_timestamp.is_some(), "nobody can tell whether it has ended");
        let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(client.clone());
        nodes.delete(&node, &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(ready(&client).await, named(&[("web-0", "web:1"), ("web-1", "web:1")]));
    });
}

#[test]
fn a_paused_deployment_replaces_nothing_and_numbers_its_templates() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        let spec = |image: &str, replicas: i64, paused: bool| {
            json!({
                "replicas": replicas, "paused": paused, "selector": {"matchLabels": {"app": "web"}},
                "template": template(image, &json!({}), "Always"),
            })
        };
        let images = || async { ready(&client).await.into_values().flatten().collect::<Vec<_>>() };
        let revision = || async {
            let deployment = api::<Deployment>(&client).get("web").await.unwrap();
            deployment.annotations().get("deployment.kubernetes.io/revision").cloned().unwrap_or_default()
        };
        put::<Deployment>(&client, "web", &spec("web:1", 1, false)).await;
        minutes(1).await;
        put::<Deployment>(&client, "web", &spec("web:2", 2, true)).await;
        minutes(5).await;
        assert_eq!((images().await, revision().await.as_str()), (vec!["web:1".to_owned(); 2], "1"));
        put::<Deployment>(&client, "web", &spec("web:2", 2, false)).await;
        minutes(2).await;
        assert_eq!((images().await, revision().await.as_str()), (vec!["web:2".to_owned(); 2], "2"));
        put::<Deployment>(&client, "web", &spec("web:1", 2, false)).await;
        minutes(2).await;
        assert_eq!((images().await, revision().await.as_str()), (vec!["web:1".to_owned(); 2], "3"), "the newest again");
        assert_eq!(api::<ReplicaSet>(&client).list(&ListParams::default()).await.unwrap().items.len(), 2);
    });
}

#[test]
fn a_replica_set_needs_no_deployment() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        let spec = |replicas: i64| {
            json!({
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": template("web:1", &json!({}), "Always"),
            })
        };
        put::<ReplicaSet>(&client, "web", &spec(3)).await;
        minutes(1).await;
        assert_eq!(ready(&client).await.len(), 3);
        assert!(all(&client).await.iter().all(|pod| pod.labels().len() == 1), "they have the labels of the template");
        put::<ReplicaSet>(&client, "web", &spec(1)).await;
        minutes(1).await;
        assert_eq!(ready(&client).await.len(), 1);
        let status = api::<ReplicaSet>(&client).get("web").await.unwrap().status.unwrap();
        assert_eq!((status.replicas, status.available_replicas), (1, Some(1)));
    });
}

/// A Job of which so many pods are to end well, two at a time, and how they end.
fn job(completions: i64, exit_code: &str, restart: &str) -> Value {
    let annotations = json!({"sim.windlass.dev/exit-code": exit_code, "sim.windlass.dev/runs-for-seconds": "5"});
    json!({
        "completions": completions, "parallelism": 2, "backoffLimit": 2,
        "template": template("web:1", &annotations, restart),
    })
}

async fn ended(client: &Client) -> (String, String) {
    let status = api::<Job>(client).get("web").await.unwrap().status.unwrap();
    let conditions = status.conditions.unwrap_or_default();
    let end = conditions.into_iter().find(|condition| condition.status == "True");
    end.map(|condition| (condition.type_, condition.reason.unwrap_or_default())).unwrap_or_default()
}

#[test]
fn a_job_runs_as_many_pods_as_are_to_end_well() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        put::<Job>(&client, "web", &job(3, "0", "Never")).await;
        minutes(5).await;
        assert_eq!(ended(&client).await, ("Complete".to_owned(), "CompletionsReached".to_owned()));
        let status = api::<Job>(&client).get("web").await.unwrap().status.unwrap();
        assert_eq!((status.succeeded, status.failed, status.active), (Some(3), Some(0), Some(0)));
        let phases: Vec<_> = all(&client).await.into_iter().filter_map(|pod| pod.status?.phase).collect();
        assert_eq!(phases, ["Succeeded"; 3]);
    });
}

#[test]
fn a_job_whose_pods_fail_is_tried_again_until_its_limit() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        put::<Job>(&client, "web", &job(1, "3", "Never")).await;
        minutes(10).await;
        assert_eq!(ended(&client).await, ("Failed".to_owned(), "BackoffLimitExceeded".to_owned()));
        let failed = all(&client).await;
        let code = |pod: &Pod| {
            let status = pod.status.as_ref()?.container_statuses.as_ref()?[0].state.clone()?;
            Some(status.terminated?.exit_code)
        };
        assert_eq!(failed.iter().map(code).collect::<Vec<_>>(), [Some(3); 3], "once, and twice more");
    });
}

#[test]
fn a_job_that_restarts_its_containers_counts_that_too() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        put::<Job>(&client, "web", &job(1, "1", "OnFailure")).await;
        minutes(10).await;
        assert_eq!(ended(&client).await, ("Failed".to_owned(), "BackoffLimitExceeded".to_owned()));
        assert!(all(&client).await.is_empty(), "what was left of it is gone");
    });
}

#[test]
fn a_container_that_ends_is_started_again_less_and_less_often() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        let crashes = json!({"sim.windlass.dev/exit-code": "1", "sim.windlass.dev/runs-for-seconds": "1"});
        let spec = json!({
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1", &crashes, "Always"),
        });
        put::<Deployment>(&client, "web", &spec).await;
        let restarts = || async {
            let pods = all(&client).await;
            assert_eq!(pods.len(), 1, "it is the same pod");
            pods[0].status.clone().unwrap().container_statuses.unwrap()[0].restart_count
        };
        minutes(2).await;
        let soon = restarts().await;
        minutes(30).await;
        let late = restarts().await;
        // After 10, 20, 40, 80, 160 s and then every 300 s.
        assert!((3..=5).contains(&soon) && (9..=12).contains(&late), "{soon} and {late}");
        let reason = |pod: &Pod| {
            let status = pod.status.as_ref()?.container_statuses.as_ref()?[0].state.clone()?;
            status.waiting?.reason
        };
        assert_eq!(reason(&all(&client).await[0]).as_deref(), Some("CrashLoopBackOff"));
    });
}
