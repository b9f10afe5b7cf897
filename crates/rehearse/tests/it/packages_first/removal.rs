//! A cluster goes: first what was added to it, then its machines.

use k8s_openapi::api::apps::v1::Deployment;
use windlass_api::kind::wcp::WCPMachine;
use windlass_sim::fault::{Fault, Pattern, Requests, Silence, Span, When};

use super::*;

/// What was added to every cluster of the old release.
const ADDED: [&str; 4] = ["metrics-server", "secretgen-controller", "tkg-storageclass", "pinniped"];
const HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/tkg.tanzu.vmware.com";

async fn delete(world: &World) {
    Api::<Cluster>::default_namespaced(world.client()).delete("wl", &DeleteParams::default()).await.unwrap();
}

/// The packages that were added and are still there.
async fn added(world: &World) -> usize {
    let api: Api<PackageInstall> = Api::namespaced(inside(world), "tkg-system");
    let all = api.list(&ListParams::default()).await.unwrap().items;
    let names = ADDED.map(|short| format!("wl-{short}"));
    all.iter().filter(|install| names.contains(&install.name_any())).count()
}

/// The machines that have not been switched off.
async fn switched_on(world: &World) -> usize {
    Api::<WCPMachine>::default_namespaced(world.client()).list(&ListParams::default()).await.unwrap().items.len()
}

/// Whether each machine has the hook.
async fn hooks(world: &World) -> Vec<bool> {
    let all = Api::<Machine>::default_namespaced(world.client()).list(&ListParams::default()).await.unwrap();
    all.items.iter().map(|machine| machine.annotations().contains_key(HOOK)).collect()
}

async fn gone(world: &World) {
    let clusters: Api<Cluster> = Api::default_namespaced(world.client());
    for _ in 0..120 {
        if clusters.get_opt("wl").await.unwrap().is_none() {
            return;
        }
        seconds(15).await;
    }
    panic!("the cluster never went: {:#?}", clusters.get("wl").await);
}

#[test]
fn machines_are_switched_off_when_what_was_added_to_their_cluster_has_gone() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            assert_eq!(hooks(&world).await, [true, true]);
            assert_eq!(added(&world).await, ADDED.len());
            delete(&world).await;
            while added(&world).await > 0 {
                assert_eq!(switched_on(&world).await, 2);
                assert!(found(&world).await.metadata.deletion_timestamp.is_some());
                seconds(1).await;
            }
            // Not only their records are gone.
            let deployments: Api<Deployment> = Api::namespaced(inside(&world), "kube-system");
            assert!(deployments.get_opt("metrics-server").await.unwrap().is_none());
            gone(&world).await;
            assert_eq!(switched_on(&world).await, 0);
        });
    }
}

#[test]
fn a_machine_that_goes_alone_waits_for_no_package() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        let machines: Api<Machine> = Api::default_namespaced(world.client());
        let labels = ListParams::default().labels("topology.cluster.x-k8s.io/deployment-name=a");
        let worker = machines.list(&labels).await.unwrap().items.remove(0).name_any();
        machines.delete(&worker, &DeleteParams::default()).await.unwrap();
        seconds(600).await;
        assert!(machines.get_opt(&worker).await.unwrap().is_none());
        assert_eq!(hooks(&world).await, [true, true], "the one that came for it has the hook, too");
        assert_eq!(added(&world).await, ADDED.len());
    });
}

#[test]
fn what_a_cluster_waits_for_before_it_goes_is_told_and_ten_minutes_are_the_most() {
    let clusters = Pattern::new("default/wl");
    let silent = Fault::Unreachable { clusters, on: Requests::default(), how: Silence::Timeout };
    let faults = Scenario::default().and(silent, When::from(Span::seconds(60)));
    play_with(faults, HoldBy::Pause, created(), start::later(), |world| async move {
        seconds(90).await;
        delete(&world).await;
        seconds(8 * 60).await;
        let [status, reason, message] = told(&world, "PackagesReady").await;
        assert_eq!([status.as_str(), reason.as_str()], ["False", "PackagesGoFirst"], "{message}");
        assert!(message.contains("10 min after its deletion the cluster goes without that"), "{message}");
        assert_eq!(told(&world, "Stalled").await[0], "False", "its time ends by itself");
        assert_eq!(switched_on(&world).await, 2);
        gone(&world).await;
        let events: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(world.client());
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let left = events.iter().find(|event| event.reason.as_deref() == Some("PackagesLeftBehind"));
        let note = left.and_then(|event| event.note.clone()).unwrap_or_default();
        assert!(note.contains("what its packages have made elsewhere may stay"), "{note}");
    });
}
