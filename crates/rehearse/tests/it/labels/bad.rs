//! Releases that are not there, not whole or not readable: each is refused with the object, the field and the way out, and nothing is
//! half-written.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::control_plane::KubeadmControlPlane;

use super::played;

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "giantswarm")
}

pub async fn label(client: &Client, release: &str) -> Result<Cluster, String> {
    let clusters: Api<Cluster> = Api::default_namespaced(client.clone());
    let patch = json!({"metadata": {"labels": {"release.giantswarm.io/version": release}}});
    let patched = clusters.patch("shop", &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    })
}

async fn change(client: &Client, name: &str, key: &str, text: Option<&str>) {
    let patch = json!({"data": {key: text}});
    maps(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

pub async fn version(client: &Client) -> String {
    let api: Api<KubeadmControlPlane> = Api::default_namespaced(client.clone());
    api.get("shop-control-plane").await.unwrap().spec.version
}

/// That the label is refused in words that have these in them, and that nothing has changed.
async fn check_refused(client: &Client, release: &str, words: &[&str]) {
    let why = label(client, release).await.unwrap_err();
    for word in words {
        assert!(why.contains(word), "{word:?} is not in {why}");
    }
    assert_eq!(version(client).await, "v1.35.2+vmware.1");
}

#[test]
fn a_release_that_cannot_be_is_refused_with_the_way_out() {
    played(|client| async move {
        let client = &client;
        check_refused(client, "36.7.0", &["there is no release 36.7.0", "36.1.0", "windlass release list"]).await;
        check_refused(client, "newest", &["metadata.labels[release.giantswarm.io/version]", "newest"]).await;
        check_refused(client, "37.0.0", &["37.0.0 is wip", "windlass release list"]).await;
        check_refused(client, "35.1.0", &["35.1.0 is deprecated"]).await;

        change(client, "kubeadmcontrolplane-36-1-0", "spec", Some("version: [")).await;
        let words = ["ConfigMap giantswarm/kubeadmcontrolplane-36-1-0", "data.spec", "has to mend"];
        check_refused(client, "36.1.0", &words).await;
        change(client, "kubeadmcontrolplane-36-1-0", "spec", Some("version: v1.36.1+vmware.1")).await;
        change(client, "kubeadmcontrolplane-36-1-0", "releaseOwned", None).await;
        change(client, "kubeadmcontrolplane-36-1-0", "userOwned", None).await;

        maps(client).delete("wcpmachinetemplate-36-1-0", &DeleteParams::default()).await.unwrap();
        let words = ["release 36.1.0 is not complete", "wcpmachinetemplate-36-1-0", "spec.template.spec.imageName"];
        check_refused(client, "36.1.0", &words).await;

        // A second one of the same version.
        let mut twice = maps(client).get("machinedeployment-36-2-0").await.unwrap();
        twice.metadata = kube::api::ObjectMeta {
            name: Some("machinedeployment-v36-2-0".to_owned()),
            labels: twice.metadata.labels.clone(),
            ..Default::default()
        };
        maps(client).create(&PostParams::default(), &twice).await.unwrap();
        check_refused(
            client,
            "36.2.0",
            &["ConfigMap giantswarm/machinedeployment-v36-2-0: metadata.name", "has to mend"],
        )
        .await;
    });
}

#[test]
fn an_update_whose_release_is_deleted_stops_and_says_so_and_goes_on_when_it_is_back() {
    played(|client| async move {
        let client = &client;
        let whole: Vec<ConfigMap> = {
            let listed = maps(client).list(&kube::api::ListParams::default()).await.unwrap();
            listed.items.into_iter().filter(|map| map.name_any().ends_with("-36-1-0")).collect()
        };
        label(client, "36.1.0").await.unwrap();
        let clusters: Api<Cluster> = Api::default_namespaced(client.clone());
        while version(client).await != "v1.36.1+vmware.1" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for map in &whole {
            maps(client).delete(&map.name_any(), &DeleteParams::default()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let applied = |cluster: &Cluster| {
            let conditions = cluster.status.clone().unwrap_or_default().conditions;
            ConditionType::ReleaseApplied.among(&conditions).cloned().unwrap()
        };
        let told = applied(&clusters.get("shop").await.unwrap());
        assert_eq!(told.reason, "ReleaseNotFound", "{told:?}");
        assert!(told.message.contains("there is no release 36.1.0"), "{told:?}");
        for map in whole {
            let metadata = kube::api::ObjectMeta {
                name: map.metadata.name.clone(),
                labels: map.metadata.labels.clone(),
                ..Default::default()
            };
            maps(client).create(&PostParams::default(), &ConfigMap { metadata, ..map }).await.unwrap();
        }
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let told = applied(&clusters.get("shop").await.unwrap());
            if told.status == "True" && told.message == "36.1.0" {
                return;
            }
        }
        panic!("{:?}", applied(&clusters.get("shop").await.unwrap()));
    });
}
