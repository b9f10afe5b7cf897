//! A management cluster that manages itself: its management packages first, then releases appear, then its nodes follow.
//!
//! Its own API offers the management packages, and a Deployment in it stands for whoever goes on with its update. The controllers of
//! the test run outside of it: the World has one API for each cluster.

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::*;

const BEFORE: &str = "0.28.1+vmware.1";
const AFTER: &str = "0.29.0+vmware.1";
/// Which releases each version of the tools supports.
const METADATA: &str = "
managementClusterVersions:
- version: v2.1.0
  supportedKubernetesVersions: [v1.24.9+vmware.1-tkg.1]
- version: v2.2.0
  supportedKubernetesVersions: [v1.24.9+vmware.1-tkg.1, v1.25.7+vmware.2-tkg.1]
";

fn inner<K>(world: &World) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    Api::namespaced(inside(world), "tkg-system")
}

/// The cluster becomes one that manages itself, of a version that supports the old release only.
async fn becomes_management(world: &World) {
    let labels = json!({"cluster-role.tkg.tanzu.vmware.com/management": ""});
    change(world, json!({"metadata": {"labels": labels, "annotations": {"TKGVERSION": "v2.1.0"}}})).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), "tkg-system");
    maps.delete("releases-of-this-world", &DeleteParams::default()).await.unwrap();
    let metadata = ConfigMap {
        metadata: kube::core::ObjectMeta { name: Some("bom-metadata".to_owned()), ..Default::default() },
        binary_data: Some([("compatibility".to_owned(), ByteString(METADATA.into()))].into()),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &metadata).await.unwrap();
    let install = world.offer_management_packages(&inside(world), BEFORE).await.unwrap();
    inner(world).create(&PostParams::default(), &install).await.unwrap();
    works_for_it(world).await;
    seconds(300).await;
    assert_eq!(all_at(world).await, [BEFORE]);
}

/// Whoever goes on with its update runs in it, and is evicted one by one.
async fn works_for_it(world: &World) {
    let named = json!({"name": "windlass-system"});
    let namespace: Namespace = serde_json::from_value(json!({"metadata": named})).unwrap();
    Api::all(inside(world)).create(&PostParams::default(), &namespace).await.unwrap();
    let (labels, metadata) = (json!({"app": "windlass"}), json!({"name": "windlass"}));
    let container = json!({"name": "windlass", "image": "windlass"});
    let deployment: Deployment = serde_json::from_value(json!({"metadata": metadata, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }}))
    .unwrap();
    let budget: PodDisruptionBudget = serde_json::from_value(
        json!({"metadata": metadata, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
    )
    .unwrap();
    Api::namespaced(inside(world), "windlass-system").create(&PostParams::default(), &deployment).await.unwrap();
    Api::namespaced(inside(world), "windlass-system").create(&PostParams::default(), &budget).await.unwrap();
}

/// The versions that management packages are at, each once; nothing for one that is not well.
async fn all_at(world: &World) -> Vec<String> {
    let label = ListParams::default().labels("tkg.tanzu.vmware.com/package-type=management");
    let installs: Api<PackageInstall> = inner(world);
    let version = |install: PackageInstall| {
        let status = install.status.unwrap_or_default();
        let is_well = windlass_api::kind::packaging::is_true(&status.conditions, "ReconcileSucceeded");
        status.version.filter(|_| is_well).unwrap_or_default()
    };
    let mut versions: Vec<String> = installs.list(&label).await.unwrap().items.into_iter().map(version).collect();
    versions.sort();
    versions.dedup();
    versions
}

/// Asks for the next version of all management packages. What is in one of them cannot be fetched.
async fn raise(world: &World, broken: &str) {
    let install = world.offer_management_packages(&inside(world), AFTER).await.unwrap();
    let packages: Api<Package> = inner(world);
    let name = format!("{broken}.tanzu.vmware.com.{AFTER}");
    let fetch = json!([{"imgpkgBundle": {"image": "projects.registry.vmware.com/tkg/management/missing:v1"}}]);
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"fetch": fetch}}}}));
    packages.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let reference = json!({"versionSelection": install.spec.package_ref.version_selection});
    let patch = Patch::Merge(json!({"spec": {"packageRef": reference}}));
    inner::<PackageInstall>(world).patch("tkg", &PatchParams::default(), &patch).await.unwrap();
}

/// What can be fetched for a package after all.
async fn repair(world: &World, broken: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": format!("{broken}-sa"), "namespace": "tkg-system"}});
    let fetch = json!([{"inline": {"paths": {"config.yaml": account.to_string()}}}]);
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"fetch": fetch}}}}));
    let name = format!("{broken}.tanzu.vmware.com.{AFTER}");
    inner::<Package>(world).patch(&name, &PatchParams::default(), &patch).await.unwrap();
}

/// Looks every five seconds: one of those that go on with the update is always there.
async fn never_cut_off(world: &World) {
    let api: Api<Deployment> = Api::namespaced(inside(world), "windlass-system");
    loop {
        seconds(5).await;
        let status = api.get("windlass").await.unwrap().status.unwrap_or_default();
        assert!(status.available_replicas.unwrap_or_default() >= 1, "{:?}: {status:#?}", now(world));
    }
}

#[test]
fn a_management_cluster_raises_what_makes_it_one_then_finds_releases_and_then_its_nodes_follow() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            becomes_management(&world).await;
            let upgrade_itself = async {
                // No release that its version does not support can be asked for.
                let api: Api<Cluster> = Api::default_namespaced(world.client());
                let wish = Patch::Merge(json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}}));
                let refused = api.patch("wl", &PatchParams::default(), &wish).await.unwrap_err().to_string();
                assert!(refused.contains("v1.25.7+vmware.2-tkg.1 is incompatible"), "{refused}");

                // Its packages are raised, but one; somebody does not wait for that.
                raise(&world, "addons-manager").await;
                seconds(300).await;
                assert_eq!(all_at(&world).await.last().map(String::as_str), Some(AFTER));
                change(&world, json!({"metadata": {"annotations": {"TKGVERSION": "v2.2.0"}}})).await;
                seconds(30).await;
                upgrade(&world).await;
                seconds(900).await;
                // The network is new, and the machines wait for what makes it a management cluster.
                assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
                let [ready, reason, message] = told(&world, "PackagesReady").await;
                assert_eq!([ready.as_str(), reason.as_str()], ["False", "PackageFailed"], "{message}");
                assert!(message.starts_with("the package addons-manager has failed: "), "{message}");
                assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);

                repair(&world, "addons-manager").await;
                rolled(&world, NEW_KUBERNETES).await;
                assert_eq!(all_at(&world).await, [AFTER]);
                assert_eq!(told(&world, "PackagesReady").await[0], "True");
            };
            tokio::select! {
                biased;
                () = upgrade_itself => {}
                () = never_cut_off(&world) => {}
            }
        });
    }
}
