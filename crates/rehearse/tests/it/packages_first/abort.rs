//! An upgrade is given up: before the first new machine, too late, and in the moment in which nobody knows.

use k8s_openapi::api::events::v1::Event;
use windlass_sim::fault::{Fault, Moment, When};

use super::*;

const OLD_KUBERNETES: &str = "v1.24.9+vmware.1";

/// Says that the upgrade is to be given up, as `windlass abort` does.
async fn order(world: &World) {
    change(world, json!({"metadata": {"annotations": {"windlass.dev/abort": NEW}}})).await;
}

/// The machines there are.
async fn identities(world: &World) -> Vec<(String, String)> {
    let all = Api::<Machine>::default_namespaced(world.client()).list(&ListParams::default()).await.unwrap();
    let mut all: Vec<_> = all.items.iter().map(|it| (it.name_any(), it.uid().unwrap())).collect();
    all.sort();
    all
}

/// What an order leaves behind on a Cluster; nothing when it has been followed to its end.
fn marks(cluster: &Cluster) -> Vec<&str> {
    let ours = ["windlass.dev/", "tkg.tanzu.vmware.com/paused", "unsafe.topology."];
    cluster.annotations().keys().map(String::as_str).filter(|key| ours.iter().any(|it| key.starts_with(it))).collect()
}

/// Why Windlass has warned people of something about the cluster.
async fn warned(world: &World) -> Vec<(String, String)> {
    let events: Api<Event> = Api::default_namespaced(world.client());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    events.into_iter().map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// The cluster has what it had before, and nobody touches it any more.
async fn is_back(world: &World, before: &[(String, String)]) {
    let cluster = found(world).await;
    assert_eq!(cluster.labels().get("run.tanzu.vmware.com/tkr").map(String::as_str), Some(OLD));
    let topology = cluster.spec.topology.as_ref().unwrap();
    assert_eq!(topology.version, OLD_KUBERNETES);
    assert!(!cluster.spec.paused.unwrap_or_default());
    assert_eq!(marks(&cluster), Vec::<&str>::new());
    let [ready, _, message] = told(world, "PackagesReady").await;
    assert_eq!(ready, "True", "{message}");
    assert_eq!(bootstrap(world).await.unwrap().status.unwrap().resolved_tkr.as_deref(), Some(OLD));
    assert_eq!(package(world, "antrea").await, "1.7.2+vmware.1-tkg.1-advanced ReconcileSucceeded");
    assert_eq!(package(world, "kapp-controller").await, "0.41.5+vmware.1-tkg.1 ReconcileSucceeded");
    assert_eq!(identities(world).await, before, "no node was touched");
    let version = cluster.metadata.resource_version;
    let packages = bootstrap(world).await.unwrap().metadata.resource_version;
    seconds(1200).await;
    assert_eq!(found(world).await.metadata.resource_version, version, "planning again changes nothing");
    assert_eq!(bootstrap(world).await.unwrap().metadata.resource_version, packages);
}

#[test]
fn an_upgrade_that_is_given_up_while_packages_hold_it_takes_them_back_and_touches_no_node() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let before = identities(&world).await;
            // The network comes in, and what connects volumes does not: no machine follows.
            let installs: Api<PackageInstall> = Api::namespaced(inside(&world), "tkg-system");
            let hold = |paused: bool| Patch::Merge(json!({"spec": {"paused": paused}}));
            installs.patch("wl-vsphere-csi", &PatchParams::default(), &hold(true)).await.unwrap();
            seconds(30).await;
            upgrade(&world).await;
            seconds(2400).await;
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
            let [_, _, message] = told(&world, "Stalled").await;
            assert!(message.contains("windlass abort wl -n default"), "{message}");
            installs.patch("wl-vsphere-csi", &PatchParams::default(), &hold(false)).await.unwrap();
            order(&world).await;
            seconds(900).await;
            is_back(&world, &before).await;

            // What was given up can be asked for again.
            upgrade(&world).await;
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}

#[test]
fn an_upgrade_of_a_cluster_that_its_owner_has_paused_is_given_up_and_the_pause_stays() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let before = identities(&world).await;
            fetches(&world, "v9.9.9").await;
            seconds(30).await;
            upgrade(&world).await;
            seconds(60).await;
            change(&world, paused_by_its_owner(by)).await;
            order(&world).await;
            seconds(900).await;
            assert_eq!(found(&world).await.spec.paused, Some(true));
            change(&world, json!({"spec": {"paused": false}})).await;
            seconds(300).await;
            is_back(&world, &before).await;
        });
    }
}

#[test]
fn once_a_machine_has_followed_an_order_to_give_up_is_refused_and_the_upgrade_goes_on() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            seconds(30).await;
            upgrade(&world).await;
            until_the_first_new_machine(&world).await;
            order(&world).await;
            seconds(30).await;
            assert_eq!(marks(&found(&world).await), Vec::<&str>::new());
            assert!(!found(&world).await.spec.paused.unwrap_or_default(), "who is too late pauses nothing");
            let warned = warned(&world).await;
            let note = warned.iter().find(|(reason, _)| reason == "AbortTooLate").map(|(_, note)| note.as_str());
            assert!(note.is_some_and(|note| note.contains("there is only forward")), "{warned:#?}");
            rolled(&world, NEW_KUBERNETES).await;
        });
    }
}

#[test]
fn an_order_for_another_release_goes_and_nothing_comes_of_it() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        order(&world).await;
        seconds(60).await;
        let before = identities(&world).await;
        is_back(&world, &before).await;
    });
}

/// After how many seconds the first new machine is there, when nobody gives anything up.
fn moment(by: HoldBy) -> u64 {
    let mut after = 0;
    play(by, created(), start::later(), |world| {
        let after = &mut after;
        async move {
            seconds(30).await;
            upgrade(&world).await;
            while machines(&world, NEW_KUBERNETES).await == 0 {
                seconds(1).await;
                *after += 1;
            }
        }
    });
    after
}

/// Whoever is asked has answered already, and nobody sees yet what comes of it.
#[test]
fn in_the_moment_in_which_machines_are_let_go_an_order_is_followed_or_refused_and_nothing_in_between() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let (moment, mut followed, mut refused) = (moment(by), 0, 0);
        for early in [0, 1, 2, 4, 8, 12, 16, 24] {
            let mut is_followed = false;
            play(by, created(), start::later(), |world| {
                let is_followed = &mut is_followed;
                async move {
                    let before = identities(&world).await;
                    seconds(30).await;
                    upgrade(&world).await;
                    seconds(moment.saturating_sub(early)).await;
                    order(&world).await;
                    seconds(1200).await;
                    *is_followed = found(&world).await.labels()["run.tanzu.vmware.com/tkr"] == OLD;
                    if *is_followed {
                        is_back(&world, &before).await;
                    } else {
                        rolled(&world, NEW_KUBERNETES).await;
                        assert_eq!(told(&world, "PackagesReady").await[0], "True");
                        assert_eq!(marks(&found(&world).await), Vec::<&str>::new());
                    }
                }
            });
            followed += u32::from(is_followed);
            refused += u32::from(!is_followed);
        }
        assert!(followed > 0 && refused > 0, "{by}: {followed} were followed and {refused} refused");
    }
}

#[test]
fn a_crash_while_an_upgrade_is_given_up_costs_time_and_nothing_else() {
    for (by, write, moment) in [
        (HoldBy::Pause, 14, Moment::After),
        (HoldBy::Hooks, 15, Moment::Before),
        (HoldBy::Hooks, 16, Moment::After),
        (HoldBy::Pause, 18, Moment::Before),
    ] {
        let faults = Scenario::default().and(Fault::Crash { write, moment }, When::default());
        play_with(faults, by, created(), start::later(), |world| async move {
            let before = identities(&world).await;
            fetches(&world, "v9.9.9").await;
            seconds(30).await;
            upgrade(&world).await;
            seconds(300).await;
            order(&world).await;
            seconds(1200).await;
            is_back(&world, &before).await;
        });
    }
}
