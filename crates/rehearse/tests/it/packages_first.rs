//! A cluster of a class gets the packages of its release, and on a change of release they come before its machines.

mod abort;
mod approval;
mod choices;
mod crashes;
mod faults;
mod images;
mod management;
mod new_nodes;
mod people;
mod removal;
mod table;
mod way_on;
mod witness;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::packaging::{Package, PackageInstall};
use windlass_api::kind::release::{BootstrapPackages, ClusterBootstrap};
use windlass_api::kind::{condition, is_true};
use windlass_plan::hook::unasked;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::Scenario;
use windlass_sim::world::World;

use crate::play::{now, played_with};
use crate::start::{self, empty};

const OLD: &str = "v1.24.9---vmware.1-tkg.1";
const NEW: &str = "v1.25.7---vmware.2-tkg.1";
const NEW_KUBERNETES: &str = "v1.25.7+vmware.2";
const NEW_RELEASE: &str = "v1.25.7+vmware.2-tkg.1";
const ANTREA: &str = "antrea.tanzu.vmware.com.1.9.0+vmware.2-tkg.1-advanced";

/// Makes a cluster of the class that every World has, by the beginning of a version.
async fn cluster(world: &World) {
    Api::default_namespaced(world.client()).create(&PostParams::default(), &start::of_class()).await.unwrap();
}

async fn change(world: &World, patch: Value) -> Cluster {
    let api: Api<Cluster> = Api::default_namespaced(world.client());
    api.patch("wl", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
}

/// Asks for the new release, by its label alone.
async fn upgrade(world: &World) -> Cluster {
    change(world, json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}})).await
}

/// What the owner of a cluster writes to pause it: where we hold it by that, the field is set already.
fn paused_by_its_owner(by: HoldBy) -> Value {
    match by {
        HoldBy::Pause => json!({"metadata": {"annotations": {"windlass.dev/keep-paused": ""}}}),
        HoldBy::Hooks => json!({"spec": {"paused": true}}),
    }
}

async fn found(world: &World) -> Cluster {
    Api::default_namespaced(world.client()).get("wl").await.unwrap()
}

async fn bootstrap(world: &World) -> Option<ClusterBootstrap> {
    Api::default_namespaced(world.client()).get_opt("wl").await.unwrap()
}

/// A condition of the packages: whether it holds, why in a word, and in a sentence.
async fn told(world: &World, type_: &str) -> [String; 3] {
    let status = bootstrap(world).await.and_then(|it| it.status).unwrap_or_default();
    let found = condition(&status.conditions, type_).cloned().unwrap_or_default();
    [found.status, found.reason, found.message]
}

fn inside(world: &World) -> kube::Client {
    world.workload(&"default/wl".parse().unwrap()).unwrap().client()
}

/// How a package is: its version, and the word for it.
async fn package(world: &World, short: &str) -> String {
    let (client, namespace) = match short {
        "kapp-controller" => (world.client(), "default"),
        _ => (inside(world), "tkg-system"),
    };
    let api: Api<PackageInstall> = Api::namespaced(client, namespace);
    let Ok(install) = api.get(&format!("wl-{short}")).await else { return "none".to_owned() };
    let status = install.status.unwrap_or_default();
    let state = status.conditions.first().map(|it| it.type_.clone()).unwrap_or_default();
    format!("{} {state}", status.version.unwrap_or_default())
}

async fn machines(world: &World, version: &str) -> usize {
    let all = Api::<Machine>::default_namespaced(world.client()).list(&ListParams::default()).await.unwrap();
    all.items.iter().filter(|machine| machine.spec.version.as_deref() == Some(version)).count()
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// Waits until the cluster is what its topology says, at this version.
async fn rolled(world: &World, version: &str) {
    for _ in 0..400 {
        let conditions = found(world).await.status.unwrap_or_default().conditions;
        let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(inside_or_nowhere(world));
        let nodes = nodes.list(&ListParams::default()).await.map(|nodes| nodes.items).unwrap_or_default();
        let kubelets = nodes.iter().filter_map(|node| node.status.as_ref()?.node_info.as_ref());
        let at_version = kubelets.filter(|info| info.kubelet_version == version).count();
        if is_true(&conditions, "TopologyReconciled") && nodes.len() == 2 && at_version == 2 {
            return;
        }
        seconds(15).await;
    }
    let cluster = found(world).await;
    panic!("never at {version}: {:#?} {:#?}", cluster.status, bootstrap(world).await.and_then(|it| it.status));
}

/// The workload cluster, or an API that has no nodes while there is none.
fn inside_or_nowhere(world: &World) -> kube::Client {
    world.workload(&"default/wl".parse().unwrap()).map_or_else(|| world.client(), |workload| workload.client())
}

async fn ready(world: &World) {
    for _ in 0..240 {
        if told(world, "PackagesReady").await[0] == "True" {
            return;
        }
        seconds(5).await;
    }
    panic!("the packages never became ready: {:#?}", bootstrap(world).await);
}

fn play<F: Future<Output = ()>>(by: HoldBy, start: &World, from: Timestamp, script: impl FnOnce(World) -> F) -> World {
    play_with(Scenario::default(), by, start, from, script)
}

/// The same, and something goes wrong. Whatever does: packages come in order, and before machines.
fn play_with<F: Future<Output = ()>>(
    faults: Scenario,
    by: HoldBy,
    start: &World,
    from: Timestamp,
    script: impl FnOnce(World) -> F,
) -> World {
    let (world, complaints) = witnessed(faults, by, start, from, script);
    assert!(complaints.is_empty(), "{complaints:#?}");
    world
}

/// The same, and what was seen that must not be.
fn witnessed<F: Future<Output = ()>>(
    faults: Scenario,
    by: HoldBy,
    start: &World,
    from: Timestamp,
    script: impl FnOnce(World) -> F,
) -> (World, Vec<String>) {
    let complaints = Arc::default();
    let seen = Arc::clone(&complaints);
    let (world, _) = played_with(start, from, (faults, Defaults::default(), Some(by)), |world| async move {
        let script = async {
            if by == HoldBy::Hooks {
                known(&world).await;
            }
            script(world.clone()).await;
        };
        tokio::select! {
            biased;
            () = witness::watch(&world, &seen) => {}
            () = script => {}
        }
    });
    let violations = world.recorder().violations();
    assert!(violations.is_empty(), "{violations:#?}");
    (world, witness::complaints(&complaints))
}

/// Waits until Cluster API knows that it is to ask us: before, a pause holds what hooks are to hold.
async fn known(world: &World) {
    let extensions: Api<ExtensionConfig> = Api::all(world.client());
    for _ in 0..120 {
        let found = extensions.get_opt("windlass").await.unwrap();
        if unasked(found.as_ref()).is_none() {
            return;
        }
        seconds(1).await;
    }
    panic!("Cluster API never asks us: {:#?}", extensions.get_opt("windlass").await);
}

/// A cluster of the old release, with its packages. Made once.
fn created() -> &'static World {
    static CREATED: OnceLock<World> = OnceLock::new();
    CREATED.get_or_init(|| {
        play(HoldBy::Pause, &empty(), start::founded(), |world| async move {
            cluster(&world).await;
            ready(&world).await;
            rolled(&world, "v1.24.9+vmware.1").await;
            // Those that were added come last, and need a worker.
            seconds(600).await;
        })
    })
}

/// The same, as its owner has changed it, when its machines have followed that.
pub fn marked<F: Future<Output = ()>>(script: impl FnOnce(World) -> F) -> World {
    let (world, _) = played_with(
        created(),
        start::later(),
        (Scenario::default(), Defaults::default(), Some(HoldBy::Pause)),
        |world| async move {
            script(world.clone()).await;
            seconds(3600).await;
        },
    );
    world
}

/// The same, while something is tried.
pub fn tried<F: Future<Output = ()>>(script: impl FnOnce(World) -> F) {
    play(HoldBy::Pause, created(), start::later(), script);
}

/// What Cluster API says that it waits for.
async fn waits(world: &World) -> String {
    let conditions = found(world).await.status.unwrap_or_default().conditions;
    condition(&conditions, "TopologyReconciled").map(|it| it.message.clone()).unwrap_or_default()
}

#[test]
fn a_new_cluster_gets_the_packages_of_its_release_in_order() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        for (short, wanted) in [
            ("kapp-controller", "0.41.5+vmware.1-tkg.1"),
            ("antrea", "1.7.2+vmware.1-tkg.1-advanced"),
            ("vsphere-cpi", "1.24.3+vmware.1-tkg.1"),
            ("vsphere-csi", "2.6.2+vmware.2-tkg.1"),
            ("metrics-server", "0.6.2+vmware.1-tkg.1"),
            ("secretgen-controller", "0.11.2+vmware.1-tkg.1"),
            ("tkg-storageclass", "0.28.0+vmware.1"),
            ("pinniped", "0.12.1+vmware.2-tkg.3"),
        ] {
            assert_eq!(package(&world, short).await, format!("{wanted} ReconcileSucceeded"), "{short}");
        }
        let made = bootstrap(&world).await.unwrap();
        let status = made.status.clone().unwrap();
        assert_eq!(status.resolved_tkr.as_deref(), Some(OLD));
        let types: Vec<&str> = status.conditions.iter().map(|it| it.type_.as_str()).collect();
        assert_eq!(types[..2], ["Kapp-Controller-ReconcileSucceeded", "Antrea-ReconcileSucceeded"], "{types:?}");
        let BootstrapPackages { cni, .. } = &made.spec.packages;
        let values = cni.clone().unwrap().values_from.unwrap().provider_ref.unwrap();
        assert_eq!((values.kind.as_str(), values.name.as_str()), ("AntreaConfig", "wl-antrea-package"));
        assert_eq!(made.owner_references()[0].name, "wl");

        // Who installs the others was well before any of them was there.
        let outside: Api<PackageInstall> = Api::default_namespaced(world.client());
        let within: Api<PackageInstall> = Api::namespaced(inside(&world), "tkg-system");
        let kapp = outside.get("wl-kapp-controller").await.unwrap();
        let antrea = within.get("wl-antrea").await.unwrap();
        assert!(kapp.creation_timestamp() < antrea.creation_timestamp());
        assert_eq!(kapp.spec.noop_delete, Some(true));

        // Planning again changes nothing.
        seconds(1200).await;
        let later = bootstrap(&world).await.unwrap();
        assert_eq!(later.metadata.resource_version, made.metadata.resource_version);
    });
}

#[test]
fn on_a_change_of_release_the_network_is_new_and_well_before_the_first_new_machine() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            // Whoever is to be asked is known before.
            seconds(30).await;
            let asked = upgrade(&world).await;
            assert_eq!(asked.spec.paused.unwrap_or_default(), by == HoldBy::Pause);
            seconds(20).await;
            match by {
                HoldBy::Pause => assert_eq!(waits(&world).await, "Cluster spec.paused is set to true"),
                HoldBy::Hooks => {
                    let waits = waits(&world).await;
                    let held = format!("blocking upgrade: BeforeClusterUpgrade: packages of {NEW} come first: ");
                    assert!(waits.contains(&held), "{waits}");
                }
            }
            until_the_first_new_machine(&world).await;
            let cluster = found(&world).await;
            assert!(!cluster.spec.paused.unwrap_or_default());
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"), "the hold has ended");
            assert_eq!(bootstrap(&world).await.unwrap().status.unwrap().resolved_tkr.as_deref(), Some(NEW));

            rolled(&world, NEW_KUBERNETES).await;
            seconds(600).await;
            assert_eq!(told(&world, "PackagesReady").await[0], "True");
            for (short, version) in [("tkg-storageclass", "0.28.1+vmware.1"), ("pinniped", "0.12.1+vmware.3-tkg.3")] {
                assert_eq!(package(&world, short).await, format!("{version} ReconcileSucceeded"), "{short}");
            }
        });
    }
}

/// Waits for the first machine of the new release: a second before it the new network is there, and runs on the old nodes.
async fn until_the_first_new_machine(world: &World) {
    let began = now(world);
    let mut before = String::new();
    while machines(world, NEW_KUBERNETES).await == 0 {
        before = package(world, "antrea").await;
        seconds(1).await;
        assert!(now(world).duration_since(began).as_secs() < 3600, "{:#?}", bootstrap(world).await);
    }
    assert_eq!(before, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded", "a second before the first new machine");
    assert_eq!(package(world, "kapp-controller").await, "0.41.7+vmware.1-tkg.1 ReconcileSucceeded");
    let agents: Api<DaemonSet> = Api::namespaced(inside(world), "kube-system");
    let status = agents.get("antrea-agent").await.unwrap().status.unwrap();
    assert_eq!((status.number_ready, status.updated_number_scheduled), (2, Some(2)), "on the old nodes, and they run");
}

/// The image of the new network, as its Package names it.
async fn fetches(world: &World, image: &str) {
    let api: Api<Package> = Api::namespaced(world.client(), "tkg-system");
    let fetch =
        json!([{"imgpkgBundle": {"image": format!("projects.registry.vmware.com/tkg/packages/core/antrea:{image}")}}]);
    let patch = json!({"spec": {"template": {"spec": {"fetch": fetch}}}});
    api.patch(ANTREA, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

#[test]
fn a_package_that_fails_holds_the_machines_says_so_and_lets_them_go_when_it_is_repaired() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            fetches(&world, "v9.9.9").await;
            upgrade(&world).await;
            seconds(600).await;
            let [status, reason, message] = told(&world, "PackagesReady").await;
            assert_eq!([status.as_str(), reason.as_str()], ["False", "PackageFailed"], "{message}");
            assert!(
                message.starts_with("the package antrea has failed: ") && message.contains("MANIFEST_UNKNOWN"),
                "{message}"
            );
            assert!(message.contains("PackageInstall tkg-system/wl-antrea"), "{message}");
            assert_eq!(told(&world, "Stalled").await[0], "False");

            seconds(2400).await;
            let [stalled, _, message] = told(&world, "Stalled").await;
            assert_eq!(stalled, "True");
            let way_on = match by {
                HoldBy::Pause => "to let the machines go on without it: kubectl -n default patch cluster wl",
                HoldBy::Hooks => {
                    "kubectl -n default annotate --overwrite cluster wl windlass.dev/go-on-without-packages=v1.25.7---"
                }
            };
            assert!(message.contains(way_on), "{message}");
            let held = found(&world).await;
            assert_eq!(held.spec.paused.unwrap_or_default(), by == HoldBy::Pause, "no deadline opens the gate");
            assert_eq!(held.annotations().contains_key("tkg.tanzu.vmware.com/paused"), by == HoldBy::Pause);
            assert!(by == HoldBy::Pause || waits(&world).await.contains("the package antrea has failed"));
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);

            fetches(&world, "v1.9.0_vmware.2-tkg.1-advanced").await;
            seconds(900).await;
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
            assert!(!found(&world).await.spec.paused.unwrap_or_default());
            assert!(machines(&world, NEW_KUBERNETES).await > 0);
        });
    }
}

#[test]
fn what_hooks_would_not_hold_because_nobody_asks_is_held_by_a_pause() {
    play(HoldBy::Hooks, created(), start::later(), |world| async move {
        // As in the first minute after an installation, and as when somebody takes it away: Cluster API has nobody to ask.
        let extensions: Api<ExtensionConfig> = Api::all(world.client());
        extensions.delete("windlass", &DeleteParams::default()).await.unwrap();
        seconds(10).await;
        let asked = upgrade(&world).await;
        assert_eq!(asked.spec.paused, Some(true));
        assert_eq!(asked.annotations()["tkg.tanzu.vmware.com/paused"], NEW);
        seconds(20).await;
        assert_eq!(waits(&world).await, "Cluster spec.paused is set to true");
        until_the_first_new_machine(&world).await;
        let cluster = found(&world).await;
        assert!(!cluster.spec.paused.unwrap_or_default());
        assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"), "the hold has ended");
        rolled(&world, NEW_KUBERNETES).await;
    });
}

#[test]
fn the_pause_of_somebody_else_stays_when_our_hold_ends() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            change(&world, json!({"spec": {"paused": true}})).await;
            let topology = json!({"topology": {"version": NEW_KUBERNETES}});
            let labels = json!({"labels": {"run.tanzu.vmware.com/tkr": NEW}});
            change(&world, json!({"metadata": labels, "spec": topology})).await;
            seconds(900).await;
            assert_eq!(told(&world, "PackagesReady").await[0], "True");
            let cluster = found(&world).await;
            assert_eq!(cluster.spec.paused, Some(true));
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);

            change(&world, json!({"spec": {"paused": false}})).await;
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}

#[test]
fn what_a_bootstrap_may_not_say_is_refused_and_a_cluster_that_goes_takes_its_packages_along() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        let api: Api<ClusterBootstrap> = Api::default_namespaced(world.client());
        let change = |patch: Value| {
            let api = api.clone();
            async move { api.patch("wl", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap_err().to_string() }
        };
        let calico = json!({"refName": "calico.tanzu.vmware.com.3.24.1+vmware.1-tkg.1"});
        let refused = change(json!({"spec": {"cni": calico}})).await;
        assert!(refused.contains("spec.cni.refName: cannot be made calico.tanzu.vmware.com"), "{refused}");
        let refused = change(json!({"spec": {"additionalPackages": []}})).await;
        assert!(
            refused.contains("metrics-server.tanzu.vmware.com.0.6.2+vmware.1-tkg.1 cannot be taken out"),
            "{refused}"
        );

        let clusters: Api<Cluster> = Api::default_namespaced(world.client());
        clusters.delete("wl", &DeleteParams::default()).await.unwrap();
        for _ in 0..120 {
            if clusters.get_opt("wl").await.unwrap().is_none() {
                assert!(api.get_opt("wl").await.unwrap().is_none());
                return;
            }
            seconds(15).await;
        }
        panic!("the cluster never went: {:#?}", clusters.get("wl").await);
    });
}
