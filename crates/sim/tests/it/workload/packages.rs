//! Packages of a workload cluster: kapp-controller is installed from the management cluster, and installs the others.

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::packaging::{Package, PackageInstall};
use windlass_sim::catalogue;
use windlass_sim::workload::Workload;
use windlass_sim::world::World;

use super::{grown, pods, power_off};
use crate::world::{in_world, minutes};

const KAPP: &str = "kapp-controller.tanzu.vmware.com";
const ANTREA: &str = "antrea.tanzu.vmware.com";

async fn apply(client: &Client, kind: &ApiResource, namespace: &str, object: Value) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, kind);
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &PatchParams::apply("people").force(), &Patch::Apply(&object)).await.unwrap();
}

fn install(name: &str, package: &str, version: &str, mut spec: Value) -> Value {
    spec["packageRef"] = json!({"refName": package, "versionSelection": {"constraints": version, "prereleases": {}}});
    json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall", "metadata": {"name": name}, "spec": spec,
    })
}

async fn kubeconfig(world: &World) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "my-tkc-kubeconfig"}, "stringData": {"value": "a"},
    });
    apply(&world.client(), &ApiResource::erase::<Secret>(&()), "default", secret).await;
}

/// Installs kapp-controller in the cluster, from the management cluster.
async fn install_kapp(world: &World, version: &str) {
    let spec = json!({"cluster": {"kubeconfigSecretRef": {"name": "my-tkc-kubeconfig"}}, "noopDelete": true});
    let install = install("my-tkc-kapp-controller", KAPP, version, spec);
    apply(&world.client(), &ApiResource::erase::<PackageInstall>(&()), "default", install).await;
}

/// Installs a package in the cluster, in the cluster.
async fn install_inside(workload: &Workload, name: &str, package: &str, version: &str) {
    let client = workload.client();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer"}});
    apply(&client, &ApiResource::erase::<ServiceAccount>(&()), "tkg-system", account).await;
    let offered =
        catalogue::packages().iter().find(|known| known.spec.ref_name == package && known.spec.version == version);
    apply(&client, &ApiResource::erase::<Package>(&()), "tkg-system", serde_json::to_value(offered.unwrap()).unwrap())
        .await;
    let install = install(name, package, version, json!({"serviceAccountName": "installer"}));
    apply(&client, &ApiResource::erase::<PackageInstall>(&()), "tkg-system", install).await;
}

async fn told(client: Client, namespace: &str, name: &str) -> String {
    let api: Api<PackageInstall> = Api::namespaced(client, namespace);
    let status = api.get(name).await.unwrap().status.unwrap_or_default();
    let message = status.useful_error_message.map(|message| format!(": {message}")).unwrap_or_default();
    format!("{} {}{message}", status.version.unwrap_or_default(), status.friendly_description.unwrap_or_default())
}

#[test]
fn kapp_controller_comes_from_outside_and_brings_the_rest() {
    in_world(|world| async move {
        kubeconfig(&world).await;
        install_kapp(&world, "0.45.2+vmware.1-tkg.1").await;
        minutes(1).await;
        let outside = || told(world.client(), "default", "my-tkc-kapp-controller");
        assert!(outside().await.ends_with("cannot be reached: connection refused"), "{}", outside().await);

        let workload = grown(&world, 1, 2).await;
        minutes(12).await;
        assert_eq!(outside().await, "0.45.2+vmware.1-tkg.1 Reconcile succeeded");
        install_inside(&workload, "antrea", ANTREA, "1.11.1+vmware.4-tkg.1-advanced").await;
        minutes(1).await;
        let inside = || told(workload.client(), "tkg-system", "antrea");
        assert_eq!(inside().await, "1.11.1+vmware.4-tkg.1-advanced Reconcile succeeded");
        let agents = pods(&workload.client(), "app=antrea-agent").await;
        let on = |node: &str| (node.to_owned(), true);
        assert_eq!(agents, [on("cp-0"), on("w-0"), on("w-1")], "one on each node, and they run");
        assert_eq!(pods(&workload.client(), "app=antrea-controller").await.len(), 1);

        install_inside(&workload, "antrea", ANTREA, "2.4.3+vmware.1-tkg.1-advanced").await;
        minutes(5).await;
        assert_eq!(inside().await, "2.4.3+vmware.1-tkg.1-advanced Reconcile succeeded");
        let api: Api<PackageInstall> = Api::namespaced(workload.client(), "tkg-system");
        api.delete("antrea", &DeleteParams::default()).await.unwrap();
        minutes(1).await;
        assert!(api.get_opt("antrea").await.unwrap().is_none());
        assert!(pods(&workload.client(), "app=antrea-agent").await.is_empty());
    });
}

#[test]
fn nobody_looks_after_packages_where_kapp_controller_does_not_run() {
    in_world(|world| async move {
        kubeconfig(&world).await;
        let workload = grown(&world, 1, 1).await;
        install_kapp(&world, "0.45.2+vmware.1-tkg.1").await;
        minutes(2).await;
        let client = workload.client();
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = Api::namespaced(client.clone(), "tkg-system");
        let scaled = json!({"spec": {"replicas": 0}});
        deployments.patch("kapp-controller", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
        minutes(1).await;
        install_inside(&workload, "antrea", ANTREA, "1.11.1+vmware.4-tkg.1-advanced").await;
        minutes(1).await;
        assert_eq!(told(client.clone(), "tkg-system", "antrea").await, " ", "it is as people left it");
        let scaled = json!({"spec": {"replicas": 1}});
        deployments.patch("kapp-controller", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
        minutes(1).await;
        assert_eq!(told(client, "tkg-system", "antrea").await, "1.11.1+vmware.4-tkg.1-advanced Reconcile succeeded");
    });
}

#[test]
fn a_package_of_a_cluster_that_is_gone_cannot_be_removed_unless_it_may_stay() {
    in_world(|world| async move {
        kubeconfig(&world).await;
        let workload = grown(&world, 1, 0).await;
        install_kapp(&world, "0.45.2+vmware.1-tkg.1").await;
        minutes(2).await;
        power_off(&workload, "cp-0");
        let api: Api<PackageInstall> = Api::namespaced(world.client(), "default");
        let stays = |stays: bool| json!({"spec": {"noopDelete": stays}});
        let change = |patch: Value| {
            let api = api.clone();
            async move {
                api.patch("my-tkc-kapp-controller", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            }
        };
        change(stays(false)).await;
        api.delete("my-tkc-kapp-controller", &DeleteParams::default()).await.unwrap();
        minutes(5).await;
        let told = told(world.client(), "default", "my-tkc-kapp-controller").await;
        assert!(told.contains("Delete failed") && told.ends_with("connection refused"), "{told}");
        change(stays(true)).await;
        minutes(1).await;
        assert!(api.get_opt("my-tkc-kapp-controller").await.unwrap().is_none());
    });
}

#[test]
fn a_package_that_wants_another_kubernetes_is_not_installed() {
    in_world(|world| async move {
        kubeconfig(&world).await;
        let package = json!({
            "apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": "Package",
            "metadata": {"name": "a.example.com.1.0.0"},
            "spec": {
                "refName": "a.example.com", "version": "1.0.0", "kubernetesVersionSelection": {"constraints": ">=99.0.0"},
                "template": {"spec": {"fetch": [{"inline": {"paths": {}}}], "deploy": [{"kapp": {}}]}},
            },
        });
        let packages: Api<Package> = Api::namespaced(world.client(), "default");
        packages.create(&PostParams::default(), &serde_json::from_value(package).unwrap()).await.unwrap();
        let spec = json!({"cluster": {"kubeconfigSecretRef": {"name": "my-tkc-kubeconfig"}}});
        let kind = ApiResource::erase::<PackageInstall>(&());
        apply(&world.client(), &kind, "default", install("a", "a.example.com", "1.0.0", spec)).await;
        minutes(1).await;
        let unknown = told(world.client(), "default", "a").await;
        assert!(unknown.ends_with("cannot be reached: connection refused"), "{unknown}");
        grown(&world, 1, 0).await;
        let refused = told(world.client(), "default", "a").await;
        assert!(refused.contains("after-kubernetes-version-check=0"), "{refused}");
        let installs: Api<PackageInstall> = Api::namespaced(world.client(), "default");
        let ignored =
            json!({"metadata": {"annotations": {"packaging.carvel.dev/ignore-kubernetes-version-selection": ""}}});
        installs.patch("a", &PatchParams::default(), &Patch::Merge(&ignored)).await.unwrap();
        minutes(1).await;
        assert_eq!(told(world.client(), "default", "a").await, "1.0.0 Reconcile succeeded");
        assert_eq!(installs.get("a").await.unwrap().name_any(), "a");
    });
}
