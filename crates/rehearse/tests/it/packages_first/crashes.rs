//! Whoever brings packages in crashes between its writes, or is there twice.

use windlass_sim::fault::{Fault, Moment, Span, WebhookFault, When};

use super::*;

/// The packages come in, and the first machine follows.
async fn upgraded(world: &World) {
    seconds(30).await;
    upgrade(world).await;
    for _ in 0..120 {
        if machines(world, NEW_KUBERNETES).await > 0 {
            break;
        }
        seconds(15).await;
    }
    assert!(machines(world, NEW_KUBERNETES).await > 0, "{:#?}", told(world, "PackagesReady").await);
    let cluster = found(world).await;
    assert!(!cluster.spec.paused.unwrap_or_default());
    assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
    assert_eq!(package(world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
}

#[test]
fn a_crash_between_its_writes_costs_time_and_nothing_else() {
    // From what the ClusterBootstrap says to the end of the hold: after a write, before one, and at two.
    for (by, crashes) in [
        (HoldBy::Pause, vec![(1, Moment::After)]),
        (HoldBy::Pause, vec![(2, Moment::After)]),
        (HoldBy::Hooks, vec![(3, Moment::Before)]),
        (HoldBy::Pause, vec![(5, Moment::After)]),
        (HoldBy::Hooks, vec![(7, Moment::After)]),
        (HoldBy::Pause, vec![(9, Moment::Before), (10, Moment::After)]),
        (HoldBy::Pause, vec![(14, Moment::After)]),
    ] {
        let crash = |faults: Scenario, (write, moment)| faults.and(Fault::Crash { write, moment }, When::default());
        let faults = crashes.into_iter().fold(Scenario::default(), crash);
        play_with(faults, by, created(), start::later(), |world| async move { upgraded(&world).await });
    }
}

#[test]
fn two_who_bring_the_same_packages_in_do_not_hurt_each_other() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let split = Fault::SplitLeadership { takeover: Span::seconds(15), notices_after: Span::seconds(60) };
        let faults = Scenario::default().and(split, When::between(Span::seconds(40), Span::seconds(80)));
        play_with(faults, by, created(), start::later(), |world| async move { upgraded(&world).await });
    }
}

#[test]
fn machines_that_do_not_wait_for_an_answer_come_before_their_packages_and_are_seen() {
    // Whoever answers crashes, and Cluster API is told that this does not matter.
    let faults = Scenario::default().and(Fault::Webhook { how: WebhookFault::Down }, When::from(Span::seconds(35)));
    let (_, complaints) = witnessed(faults, HoldBy::Hooks, created(), start::later(), |world| async move {
        fetches(&world, "v9.9.9").await;
        seconds(30).await;
        upgrade(&world).await;
        // What can be asked is not found out again while nobody answers.
        seconds(10).await;
        let extensions: Api<ExtensionConfig> = Api::all(world.client());
        let mut status = extensions.get("windlass").await.unwrap().status.unwrap();
        status.handlers.iter_mut().for_each(|handler| handler.failure_policy = Some("Ignore".to_owned()));
        let patch = Patch::Merge(json!({"status": status}));
        extensions.patch_status("windlass", &PatchParams::default(), &patch).await.unwrap();
        for _ in 0..120 {
            if machines(&world, NEW_KUBERNETES).await > 0 {
                seconds(1).await;
                return;
            }
            seconds(15).await;
        }
    });
    let seen = complaints.first().map(String::as_str).unwrap_or_default();
    assert!(seen.starts_with("the first machine of v1.25.7+vmware.2 is there, and "), "{complaints:#?}");
}
