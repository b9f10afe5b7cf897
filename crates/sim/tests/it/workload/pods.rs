//! Pods find their nodes, and others take their place.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_apiserver::store::{ChangeKind, Key};
use windlass_sim::workload::{Begins, Boot, Capacity};

use super::{
    ALL, VERSION, apply, cloud_config, daemon_set, deployment, grown, join, node, nodes, on, pods, power_off, seen,
};
use crate::world::{in_world, minutes};

#[test]
fn a_daemon_set_is_on_every_node_that_it_selects() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, daemon_set("proxy:1", "OnDelete", &json!({}))).await;
        minutes(1).await;
        assert_eq!(pods(&client, "app=proxy").await, on(&["cp-0", "w-0", "w-1"]));
        let api = Api::<DaemonSet>::namespaced(client.clone(), "kube-system");
        let status = api.get("proxy").await.unwrap().status.unwrap();
        assert_eq!((status.desired_number_scheduled, status.number_ready), (3, 3));
        assert_eq!(status.number_available, Some(3));
        assert_eq!(status.observed_generation, Some(1));

        apply(&client, daemon_set("proxy:1", "OnDelete", &json!({"zone": "w"}))).await;
        minutes(1).await;
        assert_eq!(pods(&client, "app=proxy").await, on(&["w-0", "w-1"]));
        let status = api.get("proxy").await.unwrap().status.unwrap();
        assert_eq!(
            (status.desired_number_scheduled, status.updated_number_scheduled),
            (2, Some(0)),
            "on deletion only"
        );
        join(&workload, "w-2", "w");
        minutes(2).await;
        assert_eq!(pods(&client, "app=proxy").await, on(&["w-0", "w-1", "w-2"]));

        apply(&client, daemon_set("proxy:2", "RollingUpdate", &json!({"zone": "w"}))).await;
        minutes(2).await;
        let status = api.get("proxy").await.unwrap().status.unwrap();
        assert_eq!((status.updated_number_scheduled, status.number_ready), (Some(3), 3));
        api.delete("proxy", &DeleteParams::foreground()).await.unwrap();
        minutes(1).await;
        assert!(pods(&client, "app=proxy").await.is_empty());
        assert!(api.get_opt("proxy").await.unwrap().is_none(), "it has waited for its pods, and they are gone");
    });
}

#[test]
fn a_surge_never_drops_availability_and_waits_for_nodes_that_fit() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(1).await;
        assert_eq!(pods(&client, "app=dns").await, on(&["w-0", "w-1"]));

        let store = workload.server().store();
        let mut changes = store.subscribe_all();
        let before = store.list("pods", ALL, |pod| pod.label("app") == Some("dns")).entries;
        apply(&client, deployment("dns:2", 2, &json!({"zone": "n"}))).await;
        minutes(5).await;
        let waiting = pods(&client, "app=dns").await;
        assert_eq!(waiting, [vec![(String::new(), false)], on(&["w-0", "w-1"])].concat(), "the new one has no node");
        join(&workload, "n-0", "n");
        minutes(3).await;
        assert_eq!(pods(&client, "app=dns").await, on(&["n-0", "n-0"]));
        let status = Api::<Deployment>::namespaced(client, "kube-system").get("dns").await.unwrap().status.unwrap();
        assert_eq!((status.updated_replicas, status.available_replicas, status.replicas), (Some(2), Some(2), Some(2)));

        // A pod that is to end does not count any more, though it still answers.
        let mut available: BTreeMap<Key, bool> = before.iter().map(|entry| (entry.key.clone(), true)).collect();
        let mut least = available.len();
        while let Some((resource, change)) = changes.try_next().unwrap() {
            if &*resource != "pods" || change.object.label("app") != Some("dns") {
                continue;
            }
            let pod: Pod = serde_json::from_value(change.object.to_value("v1", "Pod")).unwrap();
            let counts = change.kind != ChangeKind::Deleted && !change.object.deleting && seen(&pod).1;
            available.insert(change.object.key.clone(), counts);
            least = least.min(available.values().filter(|available| **available).count());
        }
        assert!(available.len() == 4 && least == 2, "{available:?}: at least {least}");
    });
}

#[test]
fn the_pods_of_a_deployment_move_when_their_node_is_gone() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(1).await;
        power_off(&workload, "w-0");
        Api::<Node>::all(client.clone()).delete("w-0", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(pods(&client, "app=dns").await, on(&["w-1", "w-1"]));
    });
}

#[test]
fn another_machine_of_the_same_name_is_not_taken_for_the_one_that_was_lost() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 1).await;
        let client = workload.client();
        power_off(&workload, "w-0");
        Api::<Node>::all(client.clone()).delete("w-0", &DeleteParams::default()).await.unwrap();
        let document = json!({"kind": "JoinConfiguration"});
        let next = Boot {
            node: node("w-0"),
            provider_id: "vsphere://next".to_owned(),
            address: "10.0.0.2".to_owned(),
            kubelet: VERSION.parse().unwrap(),
            images: Vec::new(),
            capacity: Capacity::default(),
            zone: None,
            user_data: cloud_config("/run/kubeadm/kubeadm-join-config.yaml", &[document]),
        };
        assert_eq!(workload.boot(&next).unwrap(), Begins::Join);
        minutes(10).await;
        assert_eq!(nodes(&client).await["w-0"], "True");
    });
}

#[test]
fn pods_on_a_lost_node_are_given_up_after_a_while_and_replaced() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        apply(&client, daemon_set("proxy:1", "OnDelete", &json!({"zone": "w"}))).await;
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(1).await;
        power_off(&workload, "w-0");
        minutes(2).await;
        let lost = ("w-0".to_owned(), false);
        assert_eq!(pods(&client, "app=dns").await, [vec![lost.clone()], on(&["w-1"])].concat());
        minutes(5).await;
        assert_eq!(pods(&client, "app=dns").await, [vec![lost.clone()], on(&["w-1", "w-1"])].concat());
        assert_eq!(pods(&client, "app=proxy").await, [vec![lost], on(&["w-1"])].concat(), "a DaemonSet waits");
        Api::<Node>::all(client.clone()).delete("w-0", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert_eq!(pods(&client, "app=dns").await, on(&["w-1", "w-1"]));
    });
}

#[test]
fn a_cordoned_node_gets_no_new_pods() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 2).await;
        let client = workload.client();
        let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        Api::<Node>::all(client.clone()).patch("w-0", &PatchParams::default(), &cordon).await.unwrap();
        apply(&client, deployment("dns:1", 2, &json!({"zone": "w"}))).await;
        minutes(1).await;
        assert_eq!(pods(&client, "app=dns").await, on(&["w-1", "w-1"]));
    });
}
