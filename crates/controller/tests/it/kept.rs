//! The copies of releases that the controller keeps, with nobody else at work.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::{TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::{annotation, label};
use windlass_sim::world::World;

use crate::cluster::controlled;
use crate::world::{api, create, in_world, tkc, versions};

const RELEASE: &str = "v1.16.7+vmware.1-guest.1";
const IMAGE: &str = "photon-k8sd-v1.16.7-vmware.1-guest.1";

async fn copies(world: &World) -> Vec<ConfigMap> {
    let kept = ListParams::default().labels(label::KEPT_RELEASE.name);
    api::<ConfigMap>(&world.client()).list(&kept).await.unwrap().items
}

async fn status(world: &World) -> TanzuKubernetesClusterStatus {
    api::<TanzuKubernetesCluster>(&world.client()).get("my-tkc").await.unwrap().status.unwrap()
}

#[test]
fn a_release_is_kept_before_its_cluster_is_made_and_the_cluster_goes_on_without_the_image() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &tkc(None, Some(RELEASE))).await;
        controlled(&world, 5).await;
        let [copy] = &copies(&world).await[..] else { panic!("there is one") };
        let digest = &copy.metadata.annotations.as_ref().unwrap()[annotation::RELEASE_DIGEST.name];
        let cluster = api::<Cluster>(&client).get("my-tkc").await.unwrap();
        assert_eq!(&cluster.metadata.annotations.unwrap()[annotation::RELEASE_DIGEST.name], digest);
        let version = |version: &Option<String>| version.as_ref().unwrap().parse::<u64>().unwrap();
        assert!(version(&copy.metadata.resource_version) < version(&cluster.metadata.resource_version));
        assert_eq!(copy.immutable, Some(true));

        // Whoever deletes it has it back, as long as there is something to copy.
        let copies_api = api::<ConfigMap>(&client);
        let name = copy.metadata.name.as_deref().unwrap();
        copies_api.delete(name, &DeleteParams::default()).await.unwrap();
        controlled(&world, 5).await;
        assert_eq!(copies(&world).await[0].data, copy.data);

        // Without the image the copy is gone by, also by whoever has just been started.
        let images: Api<VirtualMachineImage> = Api::all(client.clone());
        images.delete(IMAGE, &DeleteParams::default()).await.unwrap();
        let ready = |status: &TanzuKubernetesClusterStatus| {
            status.conditions.iter().find(|it| it.type_ == "Ready").map(|it| it.reason.clone())
        };
        let before = ready(&status(&world).await);
        controlled(&world, 5).await;
        let after = status(&world).await;
        assert_eq!(ready(&after), before, "it waits for what it waited for");
        let told = after.conditions.iter().find(|it| it.type_ == "ReleaseAvailable").unwrap();
        assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "ImageGone"));
        let events = api::<Event>(&client).list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.iter().filter(|event| event.reason.as_deref() == Some("ImageGone")).count(), 1);

        let before = versions::<TanzuKubernetesCluster>(&client).await;
        controlled(&world, 3600).await;
        assert_eq!(versions::<TanzuKubernetesCluster>(&client).await, before, "and nothing changes any more");

        // What somebody has put in its place is not believed.
        let mut other = copy.clone();
        other.metadata.resource_version = None;
        other.metadata.uid = None;
        other.data.as_mut().unwrap().insert("image".to_owned(), "another".to_owned());
        copies_api.delete(name, &DeleteParams::default()).await.unwrap();
        create(&client, &other).await;
        controlled(&world, 5).await;
        let after = status(&world).await;
        assert_eq!(ready(&after).as_deref(), Some("ReleaseNotFound"));
    });
}
