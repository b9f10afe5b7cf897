//! What reaches machines that are there, and their nodes; and what nodes tell of themselves.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::is_true;

use super::control_plane::{change, cluster, is_at_rest, machines};
use super::drain::{budget, deleting, grown, pod, put};
use super::stage::{Stage, stage};

async fn patch<K>(stage: &Stage, name: &str, patch: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(stage.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn node(stage: &Stage, name: &str) -> Node {
    Api::all(stage.workload("c").client()).get(name).await.unwrap()
}

#[test]
fn a_control_plane_tells_machines_that_go_how_long_they_may_take() {
    stage(|stage| async move {
        cluster(&stage, 3).await;
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        let name = machines(&stage).await[0].name_any();
        let client = stage.workload("c").client();
        put(&client, pod("web", &name, 0)).await;
        put(&client, budget("web", 1)).await;
        stage.pass(60).await;
        stage.delete::<Machine>(&name).await;
        stage.pass(300).await;
        assert_eq!(deleting(&stage, &name).await.0, "DrainingNode");

        change(&stage, json!({"machineTemplate": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}}}})).await;
        stage.pass(1).await;
        assert_eq!(deleting(&stage, &name).await.0, "WaitingForInfrastructureDeletion");
        stage.until::<KubeadmControlPlane>("c-cp", is_at_rest).await;
        change(&stage, json!({"machineTemplate": {"spec": {"deletion": null}}})).await;
        stage.pass(60).await;
        let given: Vec<_> = machines(&stage).await.into_iter().filter_map(|machine| machine.spec.deletion).collect();
        assert_eq!(given, [], "and takes it back");
    });
}

#[test]
fn labels_of_a_machine_reach_its_node_which_says_whose_it_is() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let marks = |node: &Node| -> BTreeMap<String, String> {
            let own = node.annotations().iter().filter_map(|(key, value)| {
                key.strip_prefix("cluster.x-k8s.io/").map(|key| (key.to_owned(), value.clone()))
            });
            own.collect()
        };
        let machine: Machine = stage.get(&name).await;
        let set = machine.metadata.owner_references.unwrap()[0].name.clone();
        let expected = json!({
            "cluster-name": "c", "cluster-namespace": "default", "machine": name, "owner-kind": "MachineSet",
            "owner-name": set, "labels-from-machine": "", "annotations-from-machine": "",
        });
        assert_eq!(json!(marks(&node(&stage, &name).await)), expected);
        let alone = marks(&node(&stage, "c-control-plane-0").await);
        assert_eq!(
            (alone.get("machine").map(String::as_str), alone.get("owner-kind")),
            (Some("c-control-plane-0"), None)
        );

        let labels = json!({"node-role.kubernetes.io/worker": "", "node.cluster.x-k8s.io/tier": "front", "team": "a"});
        let template = json!({"spec": {"template": {"metadata": {"labels": labels}}}});
        patch::<MachineDeployment>(&stage, "c-workers", template).await;
        stage.pass(60).await;
        let labelled = node(&stage, &name).await;
        assert_eq!(labelled.labels()["node-role.kubernetes.io/worker"], "");
        assert_eq!(labelled.labels()["node.cluster.x-k8s.io/tier"], "front");
        assert!(!labelled.labels().contains_key("team"), "{:?}", labelled.labels());
        let list = "node-role.kubernetes.io/worker,node.cluster.x-k8s.io/tier";
        assert_eq!(marks(&labelled)["labels-from-machine"], list);
        stage.pass(600).await;
        let idle = node(&stage, &name).await;
        assert_eq!(idle.metadata.resource_version, labelled.metadata.resource_version, "nothing is written twice");
    });
}

#[test]
fn a_machine_tells_what_runs_on_its_node() {
    stage(|stage| async move {
        let [name] = grown(&stage, 1).await.try_into().unwrap();
        let machine: Machine = stage.get(&name).await;
        let info = machine.status.unwrap().node_info;
        assert_eq!(info.as_ref().unwrap().kubelet_version, "v1.16.7+vmware.1");
        assert_eq!(info, node(&stage, &name).await.status.unwrap().node_info);
    });
}

#[test]
fn a_machine_of_a_control_plane_is_up_to_date_before_it_has_a_node() {
    stage(|stage| async move {
        cluster(&stage, 1).await;
        let counted = |control_plane: &KubeadmControlPlane| {
            control_plane.status.as_ref().is_some_and(|status| status.up_to_date_replicas == 1)
        };
        stage.until::<KubeadmControlPlane>("c-cp", counted).await;
        stage.pass(5).await;
        let up_to_date = async || {
            let [machine] = machines(&stage).await.try_into().unwrap();
            let status = machine.status.unwrap();
            assert_eq!(status.node_ref, None);
            is_true(&status.conditions, "UpToDate")
        };
        assert!(up_to_date().await);
        change(&stage, json!({"kubeadmConfigSpec": {"files": [{"path": "/etc/issue"}]}})).await;
        stage.pass(5).await;
        assert!(!up_to_date().await, "it will be replaced once it has come");
    });
}
