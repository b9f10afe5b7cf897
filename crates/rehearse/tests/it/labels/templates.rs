//! Templates that updates have made for a classic cluster go when nothing refers to them any more. What its owner has made stays.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::label;

use super::{patch, played_on, until_told, upgraded};

const RELEASE: &str = "36.9.0";

/// A release by which all machines are larger than those of 36.1.0, and nothing else is another.
async fn publish_larger(client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "giantswarm");
    for kind in ["kubeadmcontrolplane", "machinedeployment", "wcpmachinetemplate"] {
        let mut map = maps.get(&format!("{kind}-36-1-0")).await.unwrap();
        map.metadata = ObjectMeta {
            name: Some(format!("{kind}-36-9-0")),
            labels: Some([(label::RELEASE_VERSION.name.to_owned(), RELEASE.to_owned())].into()),
            ..ObjectMeta::default()
        };
        if kind == "wcpmachinetemplate" {
            let data = map.data.as_mut().unwrap();
            let larger = data["spec"].replace("imageName:", "className: best-effort-large, imageName:");
            data.insert("spec".to_owned(), larger);
            let owned = data["releaseOwned"].clone() + "- spec.template.spec.className\n";
            data.insert("releaseOwned".to_owned(), owned);
        }
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
}

async fn templates(client: &Client) -> BTreeSet<String> {
    let api: Api<WCPMachineTemplate> = Api::default_namespaced(client.clone());
    api.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

#[test]
fn templates_that_updates_have_made_go_and_those_of_its_owner_stay() {
    played_on(upgraded(), |world| async move {
        let client = &world.client();
        let owners: BTreeSet<String> = ["shop-control-plane-1", "shop-workers-1"].map(str::to_owned).into();
        let before = templates(client).await;
        let made: BTreeSet<String> = before.difference(&owners).cloned().collect();
        assert_eq!((before.len(), made.len()), (4, 2), "two of the owner's and two of the update: {before:?}");
        // What somebody has made of one of ours, with its labels and its owner, is theirs.
        let api: Api<WCPMachineTemplate> = Api::default_namespaced(client.clone());
        let mut copy = api.get(made.first().unwrap()).await.unwrap();
        let ObjectMeta { labels, owner_references, .. } = copy.metadata;
        copy.metadata =
            ObjectMeta { name: Some("a-copy".to_owned()), labels, owner_references, ..ObjectMeta::default() };
        api.create(&PostParams::default(), &copy).await.unwrap();
        publish_larger(client).await;
        patch::<Cluster>(client, "shop", json!({"metadata": {"labels": {label::RELEASE_VERSION.name: RELEASE}}}))
            .await
            .unwrap();
        until_told(client, "applied", |told| told.status == "True" && told.message == RELEASE).await;
        for _ in 0..360 {
            if templates(client).await.is_disjoint(&made) {
                break;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let after = templates(client).await;
        assert!(after.is_disjoint(&made), "{made:?} in {after:?}");
        assert!(after.is_superset(&owners) && after.contains("a-copy") && after.len() == 5, "{after:?}");
        until_told(client, "at rest", |told| told.status == "True" && told.message == RELEASE).await;
    });
}
