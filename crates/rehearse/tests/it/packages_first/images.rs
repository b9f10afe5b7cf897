//! A release whose image cannot be chosen, or is not there, is refused when it is asked for: nothing is held for it.

use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};

use super::*;

const IMAGE: &str = "v1.25.7---vmware.2-tkg.1-ubuntu";
const OTHER: &str = "v1.25.7---vmware.2-tkg.1-ubuntu-2204";

/// The images of the new release.
async fn has_images(world: &World, names: &[&str]) {
    let images: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
    let patch = Patch::Merge(json!({"spec": {"osImages": images}}));
    releases.patch(NEW, &PatchParams::default(), &patch).await.unwrap();
    seconds(30).await;
}

/// Asks for the new release, and is refused.
async fn refused(world: &World) -> String {
    let api: Api<Cluster> = Api::default_namespaced(world.client());
    let wish = Patch::Merge(json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}}));
    api.patch("wl", &PatchParams::default(), &wish).await.unwrap_err().to_string()
}

/// Nobody holds the cluster, and it is as it was.
async fn is_untouched(world: &World, before: &Cluster) {
    let now = found(world).await;
    assert_eq!(serde_json::to_value(&now.spec).unwrap(), serde_json::to_value(&before.spec).unwrap());
    assert_eq!((now.labels(), now.annotations()), (before.labels(), before.annotations()));
    assert_eq!(told(world, "PackagesReady").await[0], "True");
    assert_eq!(package(world, "antrea").await, "1.7.2+vmware.1-tkg.1-advanced ReconcileSucceeded");
}

#[test]
fn of_two_images_that_fit_none_is_chosen_until_somebody_says_which() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let images: Api<OSImage> = Api::all(world.client());
            let mut spec = images.get(IMAGE).await.unwrap().spec;
            "2204".clone_into(&mut spec.os.version);
            images.create(&PostParams::default(), &OSImage::new(OTHER, spec)).await.unwrap();
            has_images(&world, &[IMAGE, OTHER]).await;
            let before = found(&world).await;
            let why = refused(&world).await;
            assert!(why.contains("has 2 images that fit") && why.contains("alone by os-version=2004"), "{why}");
            seconds(300).await;
            is_untouched(&world, &before).await;

            let said = json!({"run.tanzu.vmware.com/resolve-os-image": "os-name=ubuntu,os-version=2004"});
            let mut topology = json!({"controlPlane": {"metadata": {"annotations": said}}});
            let pool = json!({"class": "tkg-worker", "name": "a", "replicas": 1, "metadata": {"annotations": said}});
            topology["workers"] = json!({"machineDeployments": [pool]});
            let labels = json!({"run.tanzu.vmware.com/tkr": NEW});
            change(&world, json!({"metadata": {"labels": labels}, "spec": {"topology": topology}})).await;
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}

#[test]
fn a_release_whose_image_is_not_there_is_refused_until_it_is() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let images: Api<OSImage> = Api::all(world.client());
            let image = images.get(IMAGE).await.unwrap();
            images.delete(IMAGE, &DeleteParams::default()).await.unwrap();
            seconds(30).await;
            let before = found(&world).await;
            let why = refused(&world).await;
            assert!(why.contains(NEW_RELEASE) && why.contains("there are"), "{why}");
            is_untouched(&world, &before).await;

            images.create(&PostParams::default(), &OSImage::new(IMAGE, image.spec)).await.unwrap();
            seconds(30).await;
            upgrade(&world).await;
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}
