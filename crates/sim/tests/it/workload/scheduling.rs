//! Which nodes take which pods, and what a pod says that is nowhere.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_sim::workload::{Boot, Capacity};

use super::{apply, daemon_set, grown, nodes, pods, power_off, worker};
use crate::world::{in_world, minutes};

fn api(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

async fn create(client: &Client, name: &str, spec: Value) {
    let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    api(client).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

fn asks_for(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]})
}

/// The node that a pod is on, or why it is on none.
async fn place(client: &Client, name: &str) -> Result<String, String> {
    let pod = api(client).get(name).await.unwrap();
    let conditions = pod.status.unwrap_or_default().conditions.unwrap_or_default();
    let scheduled = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled");
    match pod.spec.unwrap().node_name {
        Some(node) => Ok(node),
        None => Err(scheduled.map(|condition| condition.message.unwrap_or_default()).unwrap_or_default()),
    }
}

/// What the first container of a pod waits for.
async fn waits_for(client: &Client, name: &str) -> Option<String> {
    let status = api(client).get(name).await.unwrap().status?;
    status.container_statuses?[0].state.as_ref()?.waiting.as_ref()?.reason.clone()
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[test]
fn a_pod_that_no_node_takes_says_why_and_goes_to_one_that_comes_later() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        create(&client, "large", asks_for("3")).await;
        minutes(1).await;
        let tainted = "1 node(s) had untolerated taint {node-role.kubernetes.io/master: }";
        let refusal = format!("0/2 nodes are available: 1 Insufficient cpu, {tainted}.");
        assert_eq!(place(&client, "large").await, Err(refusal));

        let large = Boot { capacity: Capacity { cpus: 4, memory: "16Gi".to_owned() }, ..worker("w-1") };
        workload.boot(&large).unwrap();
        minutes(3).await;
        assert_eq!(place(&client, "large").await, Ok("w-1".to_owned()));
        let node = Api::<Node>::all(client).get("w-1").await.unwrap();
        assert_eq!(node.status.unwrap().allocatable.unwrap()["cpu"].0, "4");
    });
}

#[test]
fn the_room_of_a_pod_that_goes_is_for_another_one() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        create(&client, "first", asks_for("1200m")).await;
        create(&client, "second", asks_for("1200m")).await;
        minutes(1).await;
        assert_eq!(place(&client, "first").await, Ok("w-0".to_owned()));
        assert!(place(&client, "second").await.unwrap_err().contains("1 Insufficient cpu"));
        api(&client).delete("first", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(place(&client, "second").await, Ok("w-0".to_owned()));
    });
}

#[test]
fn an_image_that_is_on_no_disk_is_not_run() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 0).await;
        let client = workload.client();
        workload.boot(&Boot { images: vec!["vmware/app:1".to_owned()], ..worker("w-0") }).unwrap();
        minutes(3).await;
        let runs = |image: &str| json!({"containers": [{"name": "c", "image": image}], "nodeName": "w-0"});
        for (name, image) in [("there", "vmware/app:1"), ("nowhere", "vmware/app:2"), ("pulled", "example.com/app:2")] {
            create(&client, name, runs(image)).await;
        }
        let mut reasons = Vec::new();
        for _ in 0..30 {
            let reason = waits_for(&client, "nowhere").await;
            if reasons.last() != reason.as_ref() {
                reasons.extend(reason);
            }
            seconds(1).await;
        }
        assert_eq!(reasons, ["ErrImagePull", "ImagePullBackOff"]);
        let log = api(&client).logs("nowhere", &LogParams::default()).await.unwrap_err().to_string();
        assert!(log.contains("in pod \"nowhere\" is waiting to start: trying and failing to pull image"), "{log}");
        assert_eq!(api(&client).logs("there", &LogParams::default()).await.unwrap(), "", "it is no program");
        let ready = |name: &'static str| pods(&client, name);
        assert_eq!(ready("app=there").await, [("w-0".to_owned(), true)]);
        assert_eq!(ready("app=pulled").await, [("w-0".to_owned(), true)]);
        minutes(30).await;
        assert_eq!(ready("app=nowhere").await, [("w-0".to_owned(), false)]);
        let node = Api::<Node>::all(client.clone()).get("w-0").await.unwrap();
        assert_eq!(node.status.unwrap().images.unwrap()[0].names, Some(vec!["vmware/app:1".to_owned()]));
    });
}

async fn taints(client: &Client, node: &str) -> Vec<String> {
    let node = Api::<Node>::all(client.clone()).get(node).await.unwrap();
    let taints = node.spec.unwrap_or_default().taints.unwrap_or_default();
    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

async fn patch_node(client: &Client, node: &str, patch: Value) {
    let patch = Patch::Merge(patch);
    Api::<Node>::all(client.clone()).patch(node, &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn taints_follow_from_what_is_known_of_a_node() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        assert_eq!(taints(&client, "w-0").await, Vec::<String>::new(), "it is ready");
        patch_node(&client, "w-0", json!({"spec": {"unschedulable": true}})).await;
        seconds(1).await;
        assert_eq!(taints(&client, "w-0").await, ["node.kubernetes.io/unschedulable:NoSchedule"]);
        power_off(&workload, "w-0");
        minutes(1).await;
        assert_eq!(nodes(&client).await["w-0"], "Unknown");
        let unreachable = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}"));
        let cordoned = ["node.kubernetes.io/unschedulable:NoSchedule".to_owned()];
        assert_eq!(taints(&client, "w-0").await, [&unreachable[..], &cordoned[..]].concat());
    });
}

#[test]
fn pods_leave_a_node_when_they_have_tolerated_its_taint_for_long_enough() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        let pod =
            |tolerations: Value| json!({"containers": [{"name": "c", "image": "nginx"}], "tolerations": tolerations});
        let maintenance = |seconds: Value| json!([{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]);
        create(&client, "at-once", pod(json!([]))).await;
        create(&client, "later", pod(maintenance(json!(60)))).await;
        create(&client, "never", pod(maintenance(Value::Null))).await;
        apply(&client, daemon_set("proxy:1", "OnDelete", &json!({"zone": "w"}))).await;
        minutes(1).await;
        let now = world.settings().clock.now().to_string();
        let taint = json!([{"key": "maintenance", "effect": "NoExecute", "timeAdded": now}]);
        patch_node(&client, "w-0", json!({"spec": {"taints": taint}})).await;
        let left = || async {
            let list = api(&client).list(&kube::api::ListParams::default()).await.unwrap();
            list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        };
        seconds(30).await;
        assert_eq!(left().await, ["later", "never"]);
        assert!(pods(&client, "app=proxy").await.is_empty(), "a DaemonSet tolerates only what nodes say of themselves");
        minutes(1).await;
        assert_eq!(left().await, ["never"]);
        minutes(60).await;
        assert_eq!(left().await, ["never"]);
    });
}
