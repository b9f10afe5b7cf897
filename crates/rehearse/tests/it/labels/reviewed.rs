//! What was reviewed is what is done, or nothing: an update that is another by then is not begun, and one that becomes another stops.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::{annotation, label};
use windlass_rehearse::preview::{Foreseen, preview};
use windlass_sim::world::World;

use super::{patch, played_on, start, to, until_told, upgraded};

/// What is written by whoever has reviewed an update: the label, and what it was about.
fn reviewed(world: &World, release: &str) -> Value {
    let Foreseen::Planned(seen) = preview(world, &to(release)).unwrap() else { panic!("nothing is foreseen") };
    let (envelope, says) = (seen.planned.envelope.digest(), &seen.planned.envelope.release_digest);
    json!({"metadata": {
        "labels": {label::RELEASE_VERSION.name: release},
        "annotations": {annotation::REVIEWED_ENVELOPE.name: format!("{release} {envelope} {says}")},
    }})
}

/// Publishes something else under the same version.
async fn republish(client: &Client, name: &str, spec: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
    let spec = json!({"data": {"spec": spec}});
    maps.patch(name, &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
}

async fn updates(client: &Client) -> usize {
    let api: Api<ClusterUpdate> = Api::default_namespaced(client.clone());
    api.list(&ListParams::default()).await.unwrap().items.len()
}

async fn version(client: &Client) -> String {
    let api: Api<KubeadmControlPlane> = Api::default_namespaced(client.clone());
    api.get("shop-control-plane").await.unwrap().spec.version
}

async fn a_day() {
    tokio::time::sleep(std::time::Duration::from_secs(24 * 60 * 60)).await;
}

const TEMPLATE: &str =
    "template: {spec: {imageName: ubuntu-2404-k8sd-v1.36.1-vmware.1-tkg.2, storageClass: gc-storage-profile}}";

#[test]
fn a_release_that_says_something_else_since_the_review_is_not_begun() {
    let asked = reviewed(&start().world, "36.1.0");
    played_on(&start().world, |world| async move {
        let client = &world.client();
        republish(client, "wcpmachinetemplate-36-1-0", TEMPLATE).await;
        patch::<Cluster>(client, "shop", asked).await.unwrap();
        let told = until_told(client, "held", |told| told.reason == "ReviewedOtherwise").await;
        let words = ["the release says something else since then", "-tkg.2", "windlass plan --to 36.1.0 --out FILE"];
        assert!(words.iter().all(|words| told.message.contains(words)), "{told:?}");
        a_day().await;
        assert_eq!((version(client).await.as_str(), updates(client).await), ("v1.35.2+vmware.1", 0));
    });
}

#[test]
fn a_cluster_that_somebody_changed_since_the_review_is_left_as_it_is() {
    let asked = reviewed(upgraded(), "36.2.0");
    played_on(upgraded(), |world| async move {
        let client = &world.client();
        // Nothing was to be replaced, and now something would be. Paused, so that it is not drift that is undone before.
        patch::<Cluster>(client, "shop", json!({"spec": {"paused": true}})).await.unwrap();
        let mirror = json!({"clusterConfiguration": {"imageRepository": "mirror.example.com"}});
        let mirror = json!({"spec": {"kubeadmConfigSpec": mirror}});
        patch::<KubeadmControlPlane>(client, "shop-control-plane", mirror).await.unwrap();
        let before = updates(client).await;
        patch::<Cluster>(client, "shop", asked).await.unwrap();
        patch::<Cluster>(client, "shop", json!({"spec": {"paused": null}})).await.unwrap();
        let told = until_told(client, "held", |told| told.reason == "ReviewedOtherwise").await;
        let words =
            ["the objects of the cluster are others since then", "control-plane: another bootstrap configuration"];
        assert!(words.iter().all(|words| told.message.contains(words)), "{told:?}");
        a_day().await;
        assert_eq!(updates(client).await, before);
        // What was reviewed is what is there again.
        let back = json!({"clusterConfiguration": {"imageRepository": "projects.registry.vmware.com/tkg"}});
        let back = json!({"spec": {"kubeadmConfigSpec": back}});
        patch::<KubeadmControlPlane>(client, "shop-control-plane", back).await.unwrap();
        until_told(client, "applied", |told| told.status == "True" && told.message == "36.2.0").await;
    });
}

#[test]
fn in_place_nothing_is_done_either_that_was_not_reviewed() {
    let asked = reviewed(upgraded(), "36.2.0");
    played_on(upgraded(), |world| async move {
        let client = &world.client();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
        let map = maps.get("kubeadmcontrolplane-36-2-0").await.unwrap();
        let longer = map.data.unwrap()["spec"].replace("1800", "3600");
        republish(client, "kubeadmcontrolplane-36-2-0", &longer).await;
        patch::<Cluster>(client, "shop", asked).await.unwrap();
        let told = until_told(client, "held", |told| told.reason == "ReviewedOtherwise").await;
        assert!(told.message.contains("the release says something else since then"), "{told:?}");
        a_day().await;
        let api: Api<KubeadmControlPlane> = Api::default_namespaced(client.clone());
        let found = serde_json::to_value(api.get("shop-control-plane").await.unwrap()).unwrap();
        assert_eq!(found.pointer("/spec/machineTemplate/spec/deletion"), None);
    });
}

#[test]
fn an_update_whose_release_becomes_another_on_the_way_stops_and_says_so_and_goes_on_when_it_is_what_it_was() {
    let asked = reviewed(&start().world, "36.1.0");
    played_on(&start().world, |world| async move {
        let client = &world.client();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
        let whole = maps.get("wcpmachinetemplate-36-1-0").await.unwrap().data.unwrap()["spec"].clone();
        patch::<Cluster>(client, "shop", asked).await.unwrap();
        while version(client).await != "v1.36.1+vmware.1" {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        republish(client, "wcpmachinetemplate-36-1-0", TEMPLATE).await;
        let words = "was begun for another target than there is now";
        let told = until_told(client, "stopped", |told| told.message.contains(words)).await;
        assert_eq!(told.reason, "Updating");
        republish(client, "wcpmachinetemplate-36-1-0", &whole).await;
        until_told(client, "applied", |told| told.status == "True" && told.message == "36.1.0").await;
    });
}
