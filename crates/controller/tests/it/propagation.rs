//! Classes of clusters that are copied to other namespaces, with nobody else at work.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_controller::propagation;
use windlass_sim::world::World;

use crate::world::{access, in_world, read, versions};

const CLASS: &str = "tkg-vsphere-default-v1.0.0";

/// Copies for a while.
async fn controlled(world: &World, seconds: u64) {
    propagation::run(access(world, None), tokio::time::sleep(Duration::from_secs(seconds))).await;
}

fn classes(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<ClusterClass>(&()))
}

async fn namespace(client: &Client, name: &str, labels: Value) {
    let namespace: Namespace = read(json!({"metadata": {"name": name, "labels": labels}}));
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

async fn machine_templates(client: &Client, namespace: &str) -> Vec<String> {
    let api: Api<WCPMachineTemplate> = Api::namespaced(client.clone(), namespace);
    api.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

#[test]
fn a_class_is_where_it_is_needed_equal_to_its_source_and_goes_with_it() {
    in_world(|world| async move {
        let client = world.client();
        namespace(&client, "team-a", json!({"windlass.dev/cluster-classes": ""})).await;
        namespace(&client, "team-b", json!({})).await;
        controlled(&world, 30).await;
        let source = classes(&client, "tkg-system").get(CLASS).await.unwrap();
        let copy = classes(&client, "team-a").get(CLASS).await.unwrap();
        assert_eq!(copy.data["spec"], source.data["spec"]);
        assert_eq!(copy.annotations(), source.annotations());
        assert_eq!(copy.labels()["windlass.dev/copied-from"], "tkg-system");
        let templates = [format!("{CLASS}-control-plane"), format!("{CLASS}-worker")];
        assert_eq!(machine_templates(&client, "team-a").await, templates);
        assert!(classes(&client, "team-b").get_opt(CLASS).await.unwrap().is_none());

        // At rest nothing is written, however often it is looked at.
        let before = versions::<ClusterClass>(&client).await;
        controlled(&world, 3600).await;
        assert_eq!(versions::<ClusterClass>(&client).await, before);

        // What somebody changes in a copy is undone; what is changed in the source follows.
        let change = |patch: Value| Patch::Merge(patch);
        let params = PatchParams::default();
        let mine = change(json!({"spec": {"kubernetesVersions": ["v1.24.9"]}}));
        classes(&client, "team-a").patch(CLASS, &params, &mine).await.unwrap();
        let theirs = change(json!({"metadata": {"annotations": {"colour": "red"}}}));
        classes(&client, "tkg-system").patch(CLASS, &params, &theirs).await.unwrap();
        controlled(&world, 30).await;
        let copy = classes(&client, "team-a").get(CLASS).await.unwrap();
        assert_eq!((&copy.data["spec"], copy.annotations()["colour"].as_str()), (&source.data["spec"], "red"));

        classes(&client, "tkg-system").delete(CLASS, &DeleteParams::default()).await.unwrap();
        controlled(&world, 30).await;
        assert!(classes(&client, "team-a").get_opt(CLASS).await.unwrap().is_none());
        assert_eq!(machine_templates(&client, "team-a").await, Vec::<String>::new());
    });
}

#[test]
fn what_somebody_else_made_is_left_alone_and_that_is_told() {
    in_world(|world| async move {
        let client = world.client();
        namespace(&client, "team-a", json!({"windlass.dev/cluster-classes": ""})).await;
        let own = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": CLASS},
            "spec": {"kubernetesVersions": ["v1.24.9"]},
        });
        classes(&client, "team-a").create(&PostParams::default(), &read(own.clone())).await.unwrap();
        controlled(&world, 3600).await;
        let left = classes(&client, "team-a").get(CLASS).await.unwrap();
        assert_eq!(left.data["spec"], own["spec"]);
        assert_eq!(machine_templates(&client, "team-a").await, Vec::<String>::new());
        let events: Api<Event> = Api::namespaced(client.clone(), "default");
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let told = events.iter().find(|event| event.reason.as_deref() == Some("NotACopy")).unwrap();
        assert!(told.note.as_ref().unwrap().contains("ClusterClass team-a/tkg-vsphere-default-v1.0.0"), "{told:?}");
    });
}
