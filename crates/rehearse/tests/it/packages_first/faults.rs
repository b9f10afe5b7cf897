//! What goes wrong while packages come first.

use windlass_api::kind::release::{ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_sim::fault::{Fault, Pattern, Requests, Silence, Span, WebhookFault, When};

use super::*;

/// Packages are not in, for this reason, and nothing follows.
async fn held_by(world: &World, reason: &str) {
    let [status, found, message] = told(world, "PackagesReady").await;
    assert_eq!([status.as_str(), found.as_str()], ["False", reason], "{message}");
    assert_eq!(machines(world, NEW_KUBERNETES).await, 0);
}

/// The first new machine comes within an hour.
async fn goes_on(world: &World) {
    for _ in 0..240 {
        if machines(world, NEW_KUBERNETES).await > 0 {
            return;
        }
        seconds(15).await;
    }
    panic!("never went on: {:#?} {}", told(world, "PackagesReady").await, waits(world).await);
}

/// The same object, to be made again.
fn anew(metadata: &kube::core::ObjectMeta) -> kube::core::ObjectMeta {
    kube::core::ObjectMeta { name: metadata.name.clone(), ..Default::default() }
}

fn packages(world: &World) -> Api<Package> {
    Api::namespaced(world.client(), "tkg-system")
}

#[test]
fn a_package_that_is_not_there_holds_the_machines_and_says_so() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let package = packages(&world).get(ANTREA).await.unwrap();
            packages(&world).delete(ANTREA, &DeleteParams::default()).await.unwrap();
            upgrade(&world).await;
            seconds(300).await;
            held_by(&world, "NotWritten").await;
            let [_, _, message] = told(&world, "PackagesReady").await;
            assert!(message.contains(&format!("there is no Package tkg-system/{ANTREA}")), "{message}");
            let waits = waits(&world).await;
            assert!(by == HoldBy::Pause || waits.contains("there is no Package"), "{waits}");

            let package = Package { metadata: anew(&package.metadata), ..package };
            packages(&world).create(&PostParams::default(), &package).await.unwrap();
            goes_on(&world).await;
        });
    }
}

/// kapp-controller takes no package back by itself, and what it had tried before counts. What a release asks for is meant.
#[test]
fn a_package_that_somebody_has_raised_is_taken_to_the_version_of_the_release() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let installs: Api<PackageInstall> = Api::namespaced(inside(&world), "tkg-system");
            let mut newer = packages(&world).get(ANTREA).await.unwrap();
            newer.metadata = kube::core::ObjectMeta {
                name: Some("antrea.tanzu.vmware.com.1.99.0".to_owned()),
                ..Default::default()
            };
            "1.99.0".clone_into(&mut newer.spec.version);
            let inner: Api<Package> = Api::namespaced(inside(&world), "tkg-system");
            inner.create(&PostParams::default(), &newer).await.unwrap();
            let to = json!({"spec": {"packageRef": {"versionSelection": {"constraints": "1.99.0"}}}});
            installs.patch("wl-antrea", &PatchParams::default(), &Patch::Merge(&to)).await.unwrap();
            seconds(20).await;
            upgrade(&world).await;
            goes_on(&world).await;
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
        });
    }
}

#[test]
fn a_package_for_another_version_of_kubernetes_holds_the_machines_and_says_so() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let only = |constraints: &str| {
                Patch::Merge(json!({"spec": {"kubernetesVersionSelection": {"constraints": constraints}}}))
            };
            packages(&world).patch(ANTREA, &PatchParams::default(), &only(">=1.25.0")).await.unwrap();
            upgrade(&world).await;
            seconds(300).await;
            held_by(&world, "PackageFailed").await;
            let [_, _, message] = told(&world, "PackagesReady").await;
            assert!(message.contains("Expected to find at least one version"), "{message}");
            packages(&world).patch(ANTREA, &PatchParams::default(), &only(">=1.24.0")).await.unwrap();
            goes_on(&world).await;
        });
    }
}

#[test]
fn a_package_that_somebody_holds_holds_the_machines_and_says_by_what() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let installs: Api<PackageInstall> = Api::namespaced(inside(&world), "tkg-system");
            let hold = |paused: bool| Patch::Merge(json!({"spec": {"paused": paused}}));
            installs.patch("wl-antrea", &PatchParams::default(), &hold(true)).await.unwrap();
            upgrade(&world).await;
            seconds(2400).await;
            held_by(&world, "PackageHeld").await;
            assert_eq!(told(&world, "Stalled").await[0], "True", "it never comes by itself");
            installs.patch("wl-antrea", &PatchParams::default(), &hold(false)).await.unwrap();
            goes_on(&world).await;
        });
    }
}

#[test]
fn a_release_that_goes_or_is_taken_out_of_use_half_way_is_brought_to_its_end() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            upgrade(&world).await;
            // Before anybody has looked: all that there is of it is what admission has kept with the cluster.
            let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
            releases.delete(NEW, &DeleteParams::default()).await.unwrap();
            goes_on(&world).await;
            assert_eq!(bootstrap(&world).await.unwrap().status.unwrap().resolved_tkr.as_deref(), Some(NEW));
        });
        play(by, created(), start::later(), |world| async move {
            upgrade(&world).await;
            let releases: Api<TanzuKubernetesRelease> = Api::all(world.client());
            let incompatible = Patch::Merge(json!({"metadata": {"labels": {"incompatible": ""}}}));
            releases.patch(NEW, &PatchParams::default(), &incompatible).await.unwrap();
            goes_on(&world).await;
        });
    }
}

#[test]
fn a_release_without_its_template_holds_the_machines_and_says_so() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(world.client(), "tkg-system");
            let template = templates.get(NEW).await.unwrap();
            templates.delete(NEW, &DeleteParams::default()).await.unwrap();
            upgrade(&world).await;
            seconds(120).await;
            held_by(&world, "TemplateMissing").await;
            let template = ClusterBootstrapTemplate { metadata: anew(&template.metadata), ..template };
            templates.create(&PostParams::default(), &template).await.unwrap();
            goes_on(&world).await;
        });
    }
}

/// Where Cluster API asks, nothing of a cluster is made whose packages could not be chosen.
#[test]
fn a_cluster_whose_release_has_lost_its_template_is_made_when_it_is_back() {
    play(HoldBy::Hooks, &start::empty(), start::founded(), |world| async move {
        seconds(60).await;
        let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(world.client(), "tkg-system");
        let template = templates.get(OLD).await.unwrap();
        // Resolved, and not looked at yet by whoever would make it.
        let mut held = start::of_class();
        held.annotations_mut().insert("cluster.x-k8s.io/paused".to_owned(), String::new());
        Api::default_namespaced(world.client()).create(&PostParams::default(), &held).await.unwrap();
        templates.delete(OLD, &DeleteParams::default()).await.unwrap();
        seconds(30).await;
        change(&world, json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}})).await;
        seconds(600).await;
        let waits = waits(&world).await;
        assert!(waits.contains("BeforeClusterCreate: the release comes first: "), "{waits}");
        assert_eq!(machines(&world, "v1.24.9+vmware.1").await, 0);
        let template = ClusterBootstrapTemplate { metadata: anew(&template.metadata), ..template };
        templates.create(&PostParams::default(), &template).await.unwrap();
        ready(&world).await;
        rolled(&world, "v1.24.9+vmware.1").await;
    });
}

#[test]
fn while_nobody_can_be_asked_no_machine_follows_and_afterwards_they_do() {
    let down = (WebhookFault::Down, HoldBy::Pause);
    let for_ever = (WebhookFault::Slow { by: Span::seconds(3600) }, HoldBy::Hooks);
    let gone = (WebhookFault::Down, HoldBy::Hooks);
    for (how, by) in [down, for_ever, gone] {
        // It was answered when the release was changed, and not since.
        let when = When::between(Span::seconds(35), Span::seconds(1800));
        let faults = Scenario::default().and(Fault::Webhook { how }, when);
        play_with(faults, by, created(), start::later(), |world| async move {
            seconds(30).await;
            upgrade(&world).await;
            seconds(1700).await;
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);
            let waits = waits(&world).await;
            assert!(by == HoldBy::Pause || waits.contains("failed to call extension handler"), "{waits}");
            goes_on(&world).await;
        });
    }
}

#[test]
fn what_is_asked_for_while_nobody_answers_is_refused_and_changes_nothing() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let when = When::between(Span::seconds(60), Span::seconds(600));
        let faults = Scenario::default().and(Fault::Webhook { how: WebhookFault::Down }, when);
        play_with(faults, by, created(), start::later(), |world| async move {
            seconds(90).await;
            let before = found(&world).await;
            let api: Api<Cluster> = Api::default_namespaced(world.client());
            let wish = Patch::Merge(json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}}));
            let refused = api.patch("wl", &PatchParams::default(), &wish).await.unwrap_err().to_string();
            assert!(refused.contains("releases.clusters.windlass.dev"), "{refused}");
            let now = found(&world).await;
            assert_eq!((now.labels(), now.annotations()), (before.labels(), before.annotations()));
            assert_eq!(now.spec.paused, before.spec.paused);
            seconds(600).await;
            upgrade(&world).await;
            goes_on(&world).await;
        });
    }
}

#[test]
fn a_cluster_that_is_deleted_while_it_is_held_goes_whether_or_not_it_answers() {
    let clusters = Pattern::new("default/wl");
    let silent = Fault::Unreachable { clusters, on: Requests::default(), how: Silence::Timeout };
    let silence = Scenario::default().and(silent, When::from(Span::seconds(60)));
    let both = [HoldBy::Pause, HoldBy::Hooks];
    for (faults, by) in [Scenario::default(), silence].iter().flat_map(|faults| both.map(|by| (faults.clone(), by))) {
        play_with(faults, by, created(), start::later(), |world| async move {
            fetches(&world, "v9.9.9").await;
            upgrade(&world).await;
            seconds(120).await;
            assert_eq!(machines(&world, NEW_KUBERNETES).await, 0);
            let clusters: Api<Cluster> = Api::default_namespaced(world.client());
            clusters.delete("wl", &DeleteParams::default()).await.unwrap();
            for _ in 0..240 {
                if clusters.get_opt("wl").await.unwrap().is_none() {
                    assert!(bootstrap(&world).await.is_none());
                    return;
                }
                seconds(15).await;
            }
            panic!("the cluster never went: {:#?}", clusters.get("wl").await);
        });
    }
}
