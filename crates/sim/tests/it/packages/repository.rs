//! Repositories of packages, and the values that packages are given.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::package_values::AntreaConfig;
use windlass_api::kind::packaging::{Package, PackageRepository};

use super::{NAMESPACE, seconds};
use crate::world::in_world;

fn package(version: &str, extra: &Value) -> String {
    let package = json!({
        "apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": "Package",
        "metadata": {"name": format!("greeter.example.com.{version}"), "annotations": extra["annotations"]},
        "spec": {"refName": "greeter.example.com", "version": version, "releaseNotes": extra["notes"]},
    });
    serde_saphyr::to_string(&package).unwrap()
}

fn inline(files: &[(&str, String)]) -> Value {
    let paths: serde_json::Map<String, Value> =
        files.iter().map(|(path, text)| ((*path).to_owned(), text.clone().into())).collect();
    json!({"inline": {"paths": paths}})
}

async fn put(client: &Client, name: &str, fetch: Value) {
    let repository = json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageRepository",
        "metadata": {"name": name}, "spec": {"fetch": fetch},
    });
    let api: Api<PackageRepository> = Api::namespaced(client.clone(), NAMESPACE);
    let params = PatchParams::apply("people").force();
    api.patch(name, &params, &Patch::Apply(&repository)).await.unwrap();
    seconds(10).await;
}

async fn told(client: &Client, name: &str) -> (String, String) {
    let api: Api<PackageRepository> = Api::namespaced(client.clone(), NAMESPACE);
    let status = api.get(name).await.unwrap().status.unwrap();
    (status.friendly_description.unwrap(), status.useful_error_message.unwrap_or_default())
}

async fn packages(client: &Client) -> Vec<String> {
    let api: Api<Package> = Api::namespaced(client.clone(), NAMESPACE);
    api.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[test]
fn a_repository_becomes_packages_and_takes_them_along() {
    in_world(|world| async move {
        let client = world.client();
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n".to_owned();
        let none = json!({});
        put(
            &client,
            "ours",
            inline(&[("a.yml", package("1.0.0", &none)), ("b.yml", other), ("c.txt", "{".to_owned())]),
        )
        .await;
        assert_eq!(told(&client, "ours").await, ("Reconcile succeeded".to_owned(), String::new()));
        assert_eq!(packages(&client).await, ["greeter.example.com.1.0.0"]);
        let api: Api<Package> = Api::namespaced(client.clone(), NAMESPACE);
        let offered = api.get("greeter.example.com.1.0.0").await.unwrap();
        assert_eq!(offered.annotations()["packaging.carvel.dev/package-repository-ref"], "default/ours");

        put(&client, "ours", inline(&[("a.yml", package("1.1.0", &none))])).await;
        assert_eq!(packages(&client).await, ["greeter.example.com.1.1.0"], "what is no longer there goes");
        let api: Api<PackageRepository> = Api::namespaced(client.clone(), NAMESPACE);
        api.delete("ours", &DeleteParams::default()).await.unwrap();
        seconds(1).await;
        assert!(packages(&client).await.is_empty());
        assert!(api.get_opt("ours").await.unwrap().is_none());
    });
}

#[test]
fn the_repository_of_a_release_is_in_the_registry_and_no_other() {
    in_world(|world| async move {
        let client = world.client();
        let image = |tag: &str| json!({"imgpkgBundle": {"image": format!("projects.registry.vmware.com/tkg/packages/core/repo:{tag}")}});
        put(&client, "core", image("v1.26.5_vmware.2-tkg.1")).await;
        assert_eq!(told(&client, "core").await.0, "Reconcile succeeded");
        assert_eq!(packages(&client).await.len(), 9);
        put(&client, "core", image("v9.9.9")).await;
        let (_, message) = told(&client, "core").await;
        assert!(message.contains("MANIFEST_UNKNOWN"), "{message}");
        assert_eq!(packages(&client).await.len(), 9, "what is there stays");
    });
}

#[test]
fn two_repositories_with_one_package_agree_or_have_revisions() {
    in_world(|world| async move {
        let client = world.client();
        let plain = package("1.0.0", &json!({}));
        put(&client, "first", inline(&[("a.yml", plain.clone())])).await;
        put(&client, "second", inline(&[("a.yml", plain)])).await;
        assert_eq!(told(&client, "second").await.0, "Reconcile succeeded", "they are the same");

        put(&client, "second", inline(&[("a.yml", package("1.0.0", &json!({"notes": "better"})))])).await;
        let (_, message) = told(&client, "second").await;
        assert_eq!(message, "Conflict: greeter.example.com.1.0.0 is also defined by repository default/first");

        let better = json!({"notes": "better", "annotations": {"packaging.carvel.dev/revision": "1.2"}});
        put(&client, "second", inline(&[("a.yml", package("1.0.0", &better))])).await;
        assert_eq!(told(&client, "second").await.0, "Reconcile succeeded", "a higher revision wins");
        let api: Api<Package> = Api::namespaced(client.clone(), NAMESPACE);
        let offered = api.get("greeter.example.com.1.0.0").await.unwrap();
        assert_eq!(offered.annotations()["packaging.carvel.dev/package-repository-ref"], "default/second");
    });
}

#[test]
fn the_configuration_of_a_package_becomes_a_secret_unless_it_is_a_template() {
    in_world(|world| async move {
        let client = world.client();
        let cluster = json!({"metadata": {"name": "wl"}, "spec": {"paused": true}});
        let clusters: Api<Cluster> = Api::namespaced(client.clone(), NAMESPACE);
        let cluster = clusters.create(&PostParams::default(), &serde_json::from_value(cluster).unwrap()).await.unwrap();
        let config = |name: &str, template: bool| {
            let annotations =
                if template { json!({"tkg.tanzu.vmware.com/template-config": "true"}) } else { json!({}) };
            let config = json!({
                "apiVersion": "cni.tanzu.vmware.com/v1alpha1", "kind": "AntreaConfig",
                "metadata": {"name": name, "annotations": annotations, "ownerReferences": [{
                    "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "wl", "uid": cluster.uid(),
                }]},
                "spec": {"antrea": {"config": {"trafficEncapMode": "noEncap"}}},
            });
            serde_json::from_value::<AntreaConfig>(config).unwrap()
        };
        let api: Api<AntreaConfig> = Api::namespaced(client.clone(), NAMESPACE);
        for (name, template) in [("wl", false), ("tkr", true)] {
            api.create(&PostParams::default(), &config(name, template)).await.unwrap();
        }
        seconds(1).await;
        let secret = api.get("wl").await.unwrap().status.unwrap().secret_ref.unwrap();
        assert_eq!(secret, "wl-antrea-data-values");
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let data = secrets.get(&secret).await.unwrap().data.unwrap();
        let values: Value = serde_saphyr::from_str(std::str::from_utf8(&data["values.yaml"].0).unwrap()).unwrap();
        assert_eq!(values, json!({"antrea": {"config": {"trafficEncapMode": "noEncap"}}}));
        assert_eq!(api.get("tkr").await.unwrap().status, None);
    });
}
