//! What people do while packages come first: they change their minds, and pause.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_api::kind::release::{ClusterBootstrapTemplate, TanzuKubernetesRelease};

use super::*;
use crate::releases::states;

const OLD_KUBERNETES: &str = "v1.24.9+vmware.1";
/// A release of the same Kubernetes as the new one, of another build.
const NEWER: &str = "v1.25.7---vmware.2-tkg.2";

/// Adds a release of the same packages.
async fn another_release(world: &World) {
    let more: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "more", "labels": {"run.tanzu.vmware.com/additional-compatible-tkrs": ""}},
        "data": {"tkrVersions": "- v1.25.7+vmware.2-tkg.2\n"},
    }))
    .unwrap();
    let configs: Api<ConfigMap> = Api::namespaced(world.client(), "tkg-system");
    configs.create(&PostParams::default(), &more).await.unwrap();
    let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(world.client(), "tkg-system");
    let template = ClusterBootstrapTemplate::new(NEWER, templates.get(NEW).await.unwrap().spec);
    templates.create(&PostParams::default(), &template).await.unwrap();
    let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
    let mut release = TanzuKubernetesRelease::new(NEWER, releases.get(NEW).await.unwrap().spec);
    "v1.25.7+vmware.2-tkg.2".clone_into(&mut release.spec.version);
    releases.create(&PostParams::default(), &release).await.unwrap();
    seconds(30).await;
}

/// Asks for a release by its label. Cluster API would refuse to lower the version, unless it is told not to.
async fn ask(world: &World, release: &str) -> Cluster {
    let annotations = json!({"unsafe.topology.cluster.x-k8s.io/disable-update-version-check": ""});
    let labels = json!({"run.tanzu.vmware.com/tkr": release});
    change(world, json!({"metadata": {"labels": labels, "annotations": annotations}})).await
}

async fn resolved(world: &World) -> Option<String> {
    bootstrap(world).await.and_then(|it| it.status?.resolved_tkr)
}

async fn first_new_machine(world: &World) {
    for _ in 0..720 {
        if machines(world, NEW_KUBERNETES).await > 0 {
            return;
        }
        seconds(5).await;
    }
    panic!("no machine followed: {:#?} {}", told(world, "PackagesReady").await, waits(world).await);
}

#[test]
fn a_release_that_is_added_changes_no_cluster_of_a_class() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        seconds(1200).await;
        let (before, installed) = (states(&world).await, bootstrap(&world).await.unwrap().spec);
        assert!(before.contains_key("Cluster/wl") && before.len() > 5, "{before:?}");
        another_release(&world).await;
        seconds(3600).await;
        assert_eq!(states(&world).await, before);
        let now = bootstrap(&world).await.unwrap().spec;
        assert_eq!(serde_json::to_value(now).unwrap(), serde_json::to_value(installed).unwrap());
    });
}

#[test]
fn of_two_changes_of_release_in_quick_succession_the_second_counts() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            another_release(&world).await;
            ask(&world, NEW).await;
            seconds(5).await;
            let held = ask(&world, NEWER).await;
            let held_for = held.annotations().get("tkg.tanzu.vmware.com/paused").map(String::as_str);
            assert_eq!(held_for, (by == HoldBy::Pause).then_some(NEWER));
            first_new_machine(&world).await;
            assert_eq!(resolved(&world).await.as_deref(), Some(NEWER));
            assert!(!found(&world).await.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
        });
    }
}

#[test]
fn of_two_changes_there_and_back_in_quick_succession_nothing_is_left() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            ask(&world, NEW).await;
            seconds(5).await;
            let back = ask(&world, OLD).await;
            let version = back.spec.topology.as_ref().map(|topology| topology.version.as_str());
            assert_eq!(version, Some(OLD_KUBERNETES));
            seconds(900).await;
            assert_eq!(resolved(&world).await.as_deref(), Some(OLD), "{:#?}", told(&world, "PackagesReady").await);
            assert_eq!(told(&world, "PackagesReady").await[0], "True");
            assert_eq!(package(&world, "antrea").await, "1.7.2+vmware.1-tkg.1-advanced ReconcileSucceeded");
            let cluster = found(&world).await;
            assert!(!cluster.spec.paused.unwrap_or_default());
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);
            assert_eq!(machines(&world, OLD_KUBERNETES).await, 2);
        });
    }
}

#[test]
fn once_a_machine_has_followed_the_release_before_is_refused() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            upgrade(&world).await;
            first_new_machine(&world).await;
            let api: Api<Cluster> = Api::default_namespaced(world.client());
            let back = Patch::Merge(json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": OLD}}}));
            let refused = api.patch("wl", &PatchParams::default(), &back).await.unwrap_err().to_string();
            assert!(refused.contains("v1.24.9"), "{refused}");
            assert!(!found(&world).await.spec.paused.unwrap_or_default());
            rolled(&world, NEW_KUBERNETES).await;
            assert_eq!(resolved(&world).await.as_deref(), Some(NEW));
        });
    }
}

#[test]
fn a_change_that_is_given_up_before_the_first_machine_takes_the_packages_back() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            // The network comes in, and what connects volumes does not: no machine follows.
            let installs: Api<PackageInstall> = Api::namespaced(inside(&world), "tkg-system");
            let hold = |paused: bool| Patch::Merge(json!({"spec": {"paused": paused}}));
            installs.patch("wl-vsphere-csi", &PatchParams::default(), &hold(true)).await.unwrap();
            ask(&world, NEW).await;
            seconds(300).await;
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
            installs.patch("wl-vsphere-csi", &PatchParams::default(), &hold(false)).await.unwrap();
            ask(&world, OLD).await;
            seconds(900).await;
            assert_eq!(resolved(&world).await.as_deref(), Some(OLD), "{:#?}", told(&world, "PackagesReady").await);
            let [ready, _, message] = told(&world, "PackagesReady").await;
            assert_eq!(ready, "True", "{message}");
            assert_eq!(package(&world, "antrea").await, "1.7.2+vmware.1-tkg.1-advanced ReconcileSucceeded");
            assert_eq!(package(&world, "kapp-controller").await, "0.41.5+vmware.1-tkg.1 ReconcileSucceeded");
            let cluster = found(&world).await;
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
            assert!(!cluster.spec.paused.unwrap_or_default());
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);
            assert_eq!(machines(&world, OLD_KUBERNETES).await, 2);
        });
    }
}

#[test]
fn whoever_pauses_a_cluster_that_is_held_or_was_finds_it_paused() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            upgrade(&world).await;
            seconds(5).await;
            change(&world, paused_by_its_owner(by)).await;
            seconds(1200).await;
            assert_eq!(told(&world, "PackagesReady").await[0], "True", "packages come in all the same");
            let cluster = found(&world).await;
            assert_eq!(cluster.spec.paused, Some(true));
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);

            // Afterwards, and when machines have begun to come: it is not ours to end.
            change(&world, json!({"spec": {"paused": false}})).await;
            first_new_machine(&world).await;
            change(&world, json!({"spec": {"paused": true}})).await;
            seconds(1800).await;
            assert_eq!(found(&world).await.spec.paused, Some(true));
            assert_eq!(machines(&world, OLD_KUBERNETES).await, 2, "the old ones stay until somebody goes on");
            change(&world, json!({"spec": {"paused": false}})).await;
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}

/// A pool grows when the release changes: nobody is stopped half-way, and packages wait for it.
#[test]
fn what_is_under_way_when_the_release_changes_comes_to_rest_before_packages_are_touched() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            let pool = json!([{"class": "tkg-worker", "name": "a", "replicas": 2}]);
            change(&world, json!({"spec": {"topology": {"workers": {"machineDeployments": pool}}}})).await;
            seconds(20).await;
            let of_old = machines(&world, OLD_KUBERNETES).await;
            assert_eq!(of_old, 3, "one is on its way");
            upgrade(&world).await;
            first_new_machine(&world).await;
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
            let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(inside(&world));
            for _ in 0..400 {
                let listed = nodes.list(&ListParams::default()).await.map(|nodes| nodes.items).unwrap_or_default();
                let kubelets = listed.iter().filter_map(|node| node.status.as_ref()?.node_info.as_ref());
                if listed.len() == 3 && kubelets.filter(|info| info.kubelet_version == NEW_KUBERNETES).count() == 3 {
                    return;
                }
                seconds(15).await;
            }
            panic!("three nodes never came to {NEW_KUBERNETES}: {}", waits(&world).await);
        });
    }
}

/// An older release has no packages: nobody waits for what will never come.
#[test]
fn for_a_release_without_packages_nobody_waits() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let script = |world: World| async move {
            another_release(&world).await;
            let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
            let without = Patch::Merge(json!({"spec": {"bootstrapPackages": null}}));
            releases.patch(NEWER, &PatchParams::default(), &without).await.unwrap();
            seconds(30).await;
            let asked = ask(&world, NEWER).await;
            assert!(!asked.annotations().contains_key("tkg.tanzu.vmware.com/paused"), "a hold would never end");
            first_new_machine(&world).await;
            seconds(1).await;
        };
        let (world, complaints) = witnessed(Scenario::default(), by, created(), start::later(), script);
        assert_eq!(world.recorder().violations(), []);
        let of_before =
            format!("the first machine of {NEW_KUBERNETES} is there, and packages are those of Some({OLD:?})");
        assert_eq!(complaints.first(), Some(&of_before), "{by}");
    }
}
