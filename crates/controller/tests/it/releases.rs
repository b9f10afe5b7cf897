//! What is shown on releases, images and clusters, with nobody else at work.

use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::condition;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_controller::releases;
use windlass_plan::resolve::copy;
use windlass_sim::world::World;

use crate::world::{access, api, create, in_world, read, versions};

const OLD: &str = "v1.24.9---vmware.1-tkg.1";
const NEW: &str = "v1.25.7---vmware.2-tkg.1";

/// Runs the controllers of releases for a while.
async fn controlled(world: &World, seconds: u64) {
    releases::run(access(world, None), tokio::time::sleep(Duration::from_secs(seconds)).shared()).await;
}

fn releases_of(client: &Client) -> Api<TanzuKubernetesRelease> {
    Api::all(client.clone())
}

fn system(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "tkg-system")
}

/// `Compatible=True Valid=True Ready=False/Deactivated`, and the labels that keep a release from being chosen.
async fn shown(client: &Client, name: &str) -> String {
    let release = releases_of(client).get(name).await.unwrap();
    let conditions = release.status.as_ref().unwrap().conditions.iter().map(|it| {
        let why = if it.reason == it.type_ { String::new() } else { format!("/{}", it.reason) };
        format!("{}={}{why}", it.type_, it.status)
    });
    let labels = ["incompatible", "deactivated", "invalid"].map(str::to_owned);
    let labels = labels.into_iter().filter(|label| release.labels().contains_key(label));
    conditions.chain(labels).collect::<Vec<_>>().join(" ")
}

async fn label(client: &Client, name: &str, labels: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    releases_of(client).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn what_is_as_it_should_be_is_not_written_however_often_it_is_looked_at() {
    in_world(|world| async move {
        let client = world.client();
        label(&client, NEW, json!({"v1.25": null, "invalid": ""})).await;
        controlled(&world, 5).await;
        assert_eq!(shown(&client, NEW).await, "Compatible=True Valid=True Ready=True");
        assert!(releases_of(&client).get(NEW).await.unwrap().labels().contains_key("v1.25"));
        let before = (versions::<TanzuKubernetesRelease>(&client).await, versions::<OSImage>(&client).await);
        for _ in 0..3 {
            controlled(&world, 3600).await;
        }
        let after = (versions::<TanzuKubernetesRelease>(&client).await, versions::<OSImage>(&client).await);
        assert_eq!(before, after);
    });
}

#[test]
fn what_is_compatible_follows_the_management_cluster_and_what_people_declare() {
    in_world(|world| async move {
        let client = world.client();
        system(&client).delete("releases-of-this-world", &DeleteParams::default()).await.unwrap();
        let stand = async {
            let passed = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
            passed(1).await;
            let none = "Compatible=False/Incompatible Valid=True Ready=False/Incompatible incompatible";
            assert_eq!(shown(&client, OLD).await, none);
            let metadata = json!({"managementClusterVersions": [
                {"version": "v2.1.0", "supportedKubernetesVersions": ["v1.24.9+vmware.1-tkg.1"]},
            ]});
            let mut map: ConfigMap = read(json!({"metadata": {"name": "bom-metadata"}}));
            map.binary_data =
                Some([("compatibility".to_owned(), ByteString(metadata.to_string().into_bytes()))].into());
            system(&client).create(&PostParams::default(), &map).await.unwrap();
            create(&client, &management()).await;
            passed(1).await;
            let well = "Compatible=True Valid=True Ready=True";
            assert_eq!((shown(&client, OLD).await.as_str(), shown(&client, NEW).await.as_str()), (well, none));

            // Whoever has put it there: it is taken away, and what people say of a release stays.
            label(&client, OLD, json!({"deactivated": "", "invalid": ""})).await;
            passed(1).await;
            let off = "Compatible=True Valid=True Ready=False/Deactivated deactivated";
            assert_eq!(shown(&client, OLD).await, off);

            let broken = json!({"binaryData": {"compatibility": "XVs="}});
            let params = PatchParams::default();
            system(&client).patch("bom-metadata", &params, &Patch::Merge(broken)).await.unwrap();
            label(&client, OLD, json!({"deactivated": null})).await;
            passed(1).await;
            let unknown = "Compatible=Unknown/MetadataMalformed Valid=True Ready=True";
            assert_eq!(shown(&client, OLD).await, unknown);
        };
        tokio::select! {
            () = stand => {}
            () = controlled(&world, 3600) => panic!("it stopped by itself"),
        }
    });
}

fn management() -> Cluster {
    read(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "name": "mgmt", "namespace": "default", "annotations": {"TKGVERSION": "v2.1.0"},
            "labels": {"cluster-role.tkg.tanzu.vmware.com/management": ""},
        },
        "spec": {},
    }))
}

#[test]
fn a_release_without_its_image_is_invalid_until_the_image_is_back_with_its_labels() {
    in_world(|world| async move {
        let client = world.client();
        let images: Api<OSImage> = Api::all(client.clone());
        let name = format!("{OLD}-ubuntu");
        let mut image = images.get(&name).await.unwrap();
        images.delete(&name, &DeleteParams::default()).await.unwrap();
        controlled(&world, 5).await;
        assert_eq!(shown(&client, OLD).await, "Compatible=True Valid=False/Invalid Ready=False/Invalid invalid");
        image.metadata = read(json!({"name": name}));
        images.create(&PostParams::default(), &image).await.unwrap();
        controlled(&world, 5).await;
        assert_eq!(shown(&client, OLD).await, "Compatible=True Valid=True Ready=True");
        let labels = images.get(&name).await.unwrap().labels().clone();
        assert_eq!((labels["os-name"].as_str(), labels["v1.24.9---vmware.1"].as_str()), ("ubuntu", ""));
        assert_eq!(labels["vmop-name"], "ubuntu-2004-k8sd-v1.24.9-vmware.1-tkg.1");
    });
}

/// A cluster of the World's class that was resolved before Windlass came.
fn cluster() -> Cluster {
    read(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "default", "labels": {"run.tanzu.vmware.com/tkr": OLD}},
        "spec": {"topology": {
            "classRef": {"name": "tkg-vsphere-default-v1.0.0", "namespace": "tkg-system"},
            "version": "v1.24.9+vmware.1",
        }},
    }))
}

#[test]
fn a_cluster_is_told_what_it_could_be_updated_to_and_keeps_its_release() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &cluster()).await;
        controlled(&world, 5).await;
        let clusters = api::<Cluster>(&client);
        let told = |cluster: &Cluster| {
            let conditions = cluster.status.clone().unwrap().conditions;
            let it = condition(&conditions, "UpdatesAvailable").unwrap().clone();
            (it.status, it.reason, it.message)
        };
        let seen = clusters.get("wl").await.unwrap();
        let all = ("True".to_owned(), "UpdatesAvailable".to_owned(), "[v1.25.7+vmware.2-tkg.1]".to_owned());
        assert_eq!(told(&seen), all);
        let text = seen.annotations()["run.tanzu.vmware.com/tkr-spec"].clone();
        assert_eq!(copy::read(&text).unwrap().spec, releases_of(&client).get(OLD).await.unwrap().spec);
        let before = versions::<Cluster>(&client).await;
        for _ in 0..3 {
            controlled(&world, 3600).await;
        }
        assert_eq!(versions::<Cluster>(&client).await, before);

        // What becomes of releases changes what is offered, and never what the cluster has.
        label(&client, NEW, json!({"deactivated": ""})).await;
        releases_of(&client).delete(OLD, &DeleteParams::default()).await.unwrap();
        controlled(&world, 5).await;
        let seen = clusters.get("wl").await.unwrap();
        assert_eq!((told(&seen).0.as_str(), told(&seen).1.as_str()), ("False", "AlreadyUpToDate"));
        assert_eq!(seen.annotations()["run.tanzu.vmware.com/tkr-spec"], text);
        assert_eq!(seen.labels()["run.tanzu.vmware.com/tkr"], OLD);
    });
}
