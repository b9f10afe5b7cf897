//! Every line of releases that a World has can be created, and taken to its end minor by minor. That there are more of them changes no
//! cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_plan::render::Defaults;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict};
use windlass_sim::fault::Scenario;
use windlass_sim::world::World;

use crate::play::played;
use crate::start::{self, FROM, SEED, cluster_name, empty, founded, later, manifest};

fn reached(ended: &Ended, release: &str) {
    let text = ended.rehearsal.text();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: release.to_owned() }, "{text}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
}

/// Creates a cluster at the first release, and goes to each of the others.
fn check(first: &str, others: &[&str]) {
    let mut manifest = manifest(1, 1);
    manifest.spec.distribution.version = Some(first.to_owned());
    let request = Request::new(cluster_name(), first, SEED, founded());
    let mut ended = rehearsal::create(&empty(), &request, &manifest).unwrap();
    reached(&ended, first);
    for (hours, release) in (0..).step_by(4).zip(others) {
        let at = later() + Duration::from_secs(hours * 60 * 60);
        let request = Request::new(cluster_name(), release, SEED, at);
        ended = rehearsal::hold(&ended.world, &request, Crashes::none()).unwrap();
        reached(&ended, release);
    }
}

#[test]
fn the_releases_that_are_objects_of_their_own_have_images_that_clusters_run_on() {
    check("v1.24.9+vmware.1-tkg.1", &["v1.25.7+vmware.2-tkg.1", "v1.26.5+vmware.2-tkg.1"]);
}

#[test]
fn the_current_releases_have_images_that_clusters_run_on() {
    check("v1.35.2+vmware.1-tkg.1", &["v1.36.1+vmware.1-tkg.1"]);
}

/// The objects that clusters are made of, whole but for who saw them last: in which state each is, or what it is asked to be.
pub async fn states(world: &World) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let kinds = [
        (ApiResource::erase::<TanzuKubernetesCluster>(&()), "/metadata/resourceVersion"),
        (ApiResource::erase::<ClusterUpdate>(&()), "/metadata/resourceVersion"),
        (ApiResource::erase::<MachineDeployment>(&()), "/metadata/resourceVersion"),
        (ApiResource::erase::<WCPMachineTemplate>(&()), "/metadata/resourceVersion"),
        (ApiResource::erase::<KubeadmConfigTemplate>(&()), "/metadata/resourceVersion"),
        // What they could be updated to is told in the status of Clusters, and machines are seen by many.
        (ApiResource::erase::<Cluster>(&()), "/spec"),
        (ApiResource::erase::<Machine>(&()), "/metadata/uid"),
    ];
    for (kind, place) in kinds {
        let api: Api<DynamicObject> = Api::all_with(world.client(), &kind);
        for object in api.list(&ListParams::default()).await.unwrap().items {
            let name = format!("{}/{}", kind.kind, object.name_any());
            all.insert(name, serde_json::to_value(object).unwrap().pointer(place).cloned().unwrap_or_default());
        }
    }
    all
}

/// Publishes a later patch of the release that the cluster has.
async fn publish_patch(world: &World) {
    let images: Api<VirtualMachineImage> = Api::all(world.client());
    let listed = images.list(&ListParams::default()).await.unwrap().items;
    let of_release = |image: &&VirtualMachineImage| image.name_any().contains(&FROM.replace('+', "-"));
    let image = serde_json::to_string(listed.iter().find(of_release).unwrap()).unwrap();
    let mut later: Value = serde_json::from_str(&image.replace("1.15.5", "1.15.9")).unwrap();
    later["metadata"] = json!({"name": later["metadata"]["name"], "annotations": later["metadata"]["annotations"]});
    images.create(&PostParams::default(), &serde_json::from_value(later).unwrap()).await.unwrap();
}

#[test]
fn a_release_that_is_added_changes_no_cluster() {
    let start = &start::one_and_one().world;
    played(start, later(), (Scenario::default(), Defaults::default()), |world| async move {
        tokio::time::sleep(Duration::from_secs(20 * 60)).await;
        let before = states(&world).await;
        assert!(before.contains_key("TanzuKubernetesCluster/my-tkc") && before.len() > 5, "{before:?}");
        publish_patch(&world).await;
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        assert_eq!(states(&world).await, before);
    });
}
