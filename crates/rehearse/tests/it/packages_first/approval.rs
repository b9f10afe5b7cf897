//! Where upgrades have to be approved, packages wait for that as machines wait for packages, however those are held.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_apiserver::reviews::Rights;
use windlass_plan::gate::Blocked;
use windlass_rehearse::preview::{Foreseen, preview};
use windlass_rehearse::rehearsal::Request;
use windlass_sim::fault::{Fault, Moment, When};

use super::*;
use crate::play::somebody;
use crate::start::{SEED, later};

/// What the namespace of the cluster wants.
async fn want(client: &Client, policy: &str) {
    let label = json!({"metadata": {"labels": {"windlass.dev/approval": policy}}});
    Api::<Namespace>::all(client.clone())
        .patch("default", &PatchParams::default(), &Patch::Merge(label))
        .await
        .unwrap();
}

async fn patch(client: &Client, patch: Value) -> Result<Cluster, String> {
    let api: Api<Cluster> = Api::default_namespaced(client.clone());
    let patched = api.patch("wl", &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map_err(|error| error.to_string())
}

async fn ask(client: &Client) -> Result<Cluster, String> {
    patch(client, json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}})).await
}

async fn annotate(client: &Client, key: &str, value: &str) -> Result<Cluster, String> {
    patch(client, json!({"metadata": {"annotations": {key: value}}})).await
}

/// Until it is said for this reason what is waited for; all of it.
async fn said(world: &World, reason: &str) -> String {
    for _ in 0..120 {
        let [_, why, message] = told(world, "PackagesReady").await;
        if why == reason {
            return message;
        }
        seconds(5).await;
    }
    panic!("never {reason}: {:?}", told(world, "PackagesReady").await);
}

/// Until it is said what has to be approved; its digest.
async fn pending(world: &World) -> String {
    let message = said(world, "ApprovalNeeded").await;
    assert!(message.contains("agree to it: windlass approve wl"), "{message}");
    Blocked::asked_to_agree_to(&message).unwrap().to_owned()
}

/// All of a cluster that an upgrade changes: its packages as they are asked for, in both clusters, and its machines.
async fn touched(world: &World) -> Value {
    let bootstrap = bootstrap(world).await.unwrap();
    let resolved = bootstrap.status.clone().unwrap().resolved_tkr;
    let mut installs = Vec::new();
    for (client, namespace) in [(world.client(), "default"), (inside(world), "tkg-system")] {
        let api: Api<PackageInstall> = Api::namespaced(client, namespace);
        installs.extend(api.list(&ListParams::default()).await.unwrap().items.into_iter().map(|it| it.spec));
    }
    let machines = Api::<Machine>::default_namespaced(world.client()).list(&ListParams::default()).await.unwrap();
    let machines: Vec<_> = machines.items.iter().map(|it| (it.uid(), it.spec.version.clone())).collect();
    json!([bootstrap.spec, resolved, json!(installs), json!(machines)])
}

async fn updates(world: &World) -> Vec<ClusterUpdate> {
    let api: Api<ClusterUpdate> = Api::default_namespaced(world.client());
    api.list(&ListParams::default()).await.unwrap().items
}

fn state(update: &ClusterUpdate) -> Option<UpdateState> {
    update.status.as_ref().and_then(|status| status.state)
}

/// What is planned before anybody asks.
fn planned(by: HoldBy) -> String {
    let cluster = "default/wl".parse().unwrap();
    let request = Request { hold_by: by, ..Request::new(cluster, NEW, SEED, later()) };
    let Foreseen::OfClass(seen) = preview(created(), &request).unwrap() else { panic!() };
    seen.envelope.unwrap().digest()
}

#[test]
fn packages_come_when_just_that_is_approved_and_who_did_is_on_record() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let planned = planned(by);
        play(by, created(), start::later(), |world| async move {
            let client = &world.client();
            seconds(30).await;
            want(client, "required").await;
            let before = touched(&world).await;
            let asked = ask(client).await.unwrap();
            assert_eq!(asked.spec.paused.unwrap_or_default(), by == HoldBy::Pause);
            assert_eq!(asked.annotations()["windlass.dev/asked-by"], "system:admin");
            let digest = pending(&world).await;
            assert_eq!(digest, planned, "what is planned is what waits");
            annotate(client, "windlass.dev/approved", "sha256:something-else").await.unwrap();
            seconds(4 * 3600).await;
            assert_eq!(touched(&world).await, before, "nothing in hours");
            assert!(updates(&world).await.is_empty());
            assert_eq!(told(&world, "Stalled").await[0], "False", "it is for somebody to decide");
            assert!(by == HoldBy::Pause || waits(&world).await.contains("is not approved, and has to be here"));

            let reject = json!({"metadata": {"annotations": {
                "windlass.dev/approved": null, "windlass.dev/rejected": digest, "windlass.dev/decided-because": "not now",
            }}});
            patch(client, reject).await.unwrap();
            let message = said(&world, "Rejected").await;
            assert!(message.starts_with("system:admin has rejected the upgrade: not now; "), "{message}");
            assert!(message.contains("windlass abort wl"), "{message}");
            seconds(900).await;
            assert_eq!(touched(&world).await, before, "it is not wanted");

            let ada = &somebody(&world, "ada");
            annotate(ada, "windlass.dev/approved", &digest).await.unwrap();
            until_the_first_new_machine(&world).await;
            rolled(&world, NEW_KUBERNETES).await;
            seconds(600).await;
            let updates = updates(&world).await;
            let [update] = updates.as_slice() else { panic!("{updates:#?}") };
            assert_eq!(update.spec.envelope_digest, digest, "what was approved is what was done");
            assert_eq!(update.spec.approval.as_ref().unwrap().by, "ada");
            assert_eq!(state(update), Some(UpdateState::Succeeded), "{update:#?}");
            let ends = (update.spec.from.distribution.as_str(), update.spec.to.distribution.as_str());
            assert_eq!(ends, ("v1.24.9+vmware.1-tkg.1", "v1.25.7+vmware.2-tkg.1"));
            // Nothing is left to do, and nothing to ask.
            let version = found(&world).await.metadata.resource_version;
            seconds(1200).await;
            assert_eq!(found(&world).await.metadata.resource_version, version);
        });
    }
}

#[test]
fn nobody_gets_around_an_approval_by_letting_the_cluster_go() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let client = &world.client();
            seconds(30).await;
            want(client, "required").await;
            let before = touched(&world).await;
            ask(client).await.unwrap();
            pending(&world).await;
            let free =
                json!({"metadata": {"annotations": {"tkg.tanzu.vmware.com/paused": null}}, "spec": {"paused": false}});
            if by == HoldBy::Pause {
                let refused = patch(client, free).await.unwrap_err();
                assert!(
                    refused.contains("has to be approved, and is held until then: windlass approve wl"),
                    "{refused}"
                );
                let unpaused = patch(client, json!({"spec": {"paused": false}})).await.unwrap();
                assert_eq!(unpaused.spec.paused, Some(true), "our hold does not end so");
            }
            annotate(client, "windlass.dev/go-on-without-packages", NEW).await.unwrap();
            let forged = json!({"metadata": {"annotations": {
                "windlass.dev/approval": null, "windlass.dev/asked-by": "bob", "windlass.dev/decided-by": "bob",
            }}});
            let written = patch(client, forged).await.unwrap().metadata.annotations.unwrap();
            assert_eq!(written["windlass.dev/approval"], "required");
            assert_eq!(written["windlass.dev/asked-by"], "system:admin");
            assert!(!written.contains_key("windlass.dev/decided-by"));
            seconds(3600).await;
            assert_eq!(touched(&world).await, before);
        });
    }
}

#[test]
fn an_upgrade_that_is_rejected_is_given_up_and_nothing_was_touched() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let client = &world.client();
            seconds(30).await;
            want(client, "required").await;
            let before = touched(&world).await;
            ask(client).await.unwrap();
            let digest = pending(&world).await;
            annotate(client, "windlass.dev/rejected", &digest).await.unwrap();
            said(&world, "Rejected").await;
            annotate(client, "windlass.dev/abort", NEW).await.unwrap();
            seconds(900).await;
            assert_eq!(touched(&world).await, before);
            let cluster = found(&world).await;
            assert_eq!(cluster.labels()["run.tanzu.vmware.com/tkr"], OLD);
            assert!(!cluster.spec.paused.unwrap_or_default());
            assert!(!cluster.annotations().contains_key("tkg.tanzu.vmware.com/paused"));
            assert_eq!(told(&world, "PackagesReady").await[0], "True");
            assert!(updates(&world).await.is_empty(), "nothing had begun");
        });
    }
}

#[test]
fn an_upgrade_that_was_approved_is_given_up_without_another_approval_and_that_is_on_record() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            let client = &world.client();
            seconds(30).await;
            want(client, "required").await;
            fetches(&world, "v9.9.9").await;
            ask(client).await.unwrap();
            let digest = pending(&world).await;
            annotate(client, "windlass.dev/approved", &digest).await.unwrap();
            said(&world, "PackageFailed").await;
            assert_eq!(updates(&world).await.iter().map(state).collect::<Vec<_>>(), [Some(UpdateState::Running)]);
            annotate(client, "windlass.dev/abort", NEW).await.unwrap();
            seconds(1800).await;
            assert_eq!(found(&world).await.labels()["run.tanzu.vmware.com/tkr"], OLD);
            let [ready, _, message] = told(&world, "PackagesReady").await;
            assert_eq!(ready, "True", "{message}");
            assert_eq!(package(&world, "antrea").await, "1.7.2+vmware.1-tkg.1-advanced ReconcileSucceeded");
            assert_eq!(updates(&world).await.iter().map(state).collect::<Vec<_>>(), [Some(UpdateState::Aborted)]);
        });
    }
}

#[test]
fn what_was_approved_is_worth_nothing_when_the_upgrade_is_another_by_now() {
    play(HoldBy::Pause, created(), start::later(), |world| async move {
        let client = &world.client();
        want(client, "required").await;
        let before = touched(&world).await;
        ask(client).await.unwrap();
        let first = pending(&world).await;
        // Approved, and a pool held back in the same moment: other machines would be replaced.
        let mut topology = json!(found(&world).await.spec.topology);
        topology["workers"]["machineDeployments"][0]["metadata"] =
            json!({"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}});
        let both =
            json!({"metadata": {"annotations": {"windlass.dev/approved": first}}, "spec": {"topology": topology}});
        patch(client, both).await.unwrap();
        seconds(600).await;
        let second = pending(&world).await;
        assert_ne!(first, second);
        assert_eq!(touched(&world).await, before);
        annotate(client, "windlass.dev/approved", &second).await.unwrap();
        until_the_first_new_machine(&world).await;
        assert_eq!(updates(&world).await[0].spec.envelope_digest, second);
    });
}

/// Everybody may do everything, but bob may not approve.
struct NotBob;

impl Rights for NotBob {
    fn refuses(&self, user: &str, attributes: &Value) -> Option<String> {
        let asked =
            ["verb", "group", "resource", "namespace", "name"].map(|key| attributes[key].as_str().unwrap_or("-"));
        let is_approval = asked == ["approve", "cluster.x-k8s.io", "clusters", "default", "wl"];
        (user == "bob" && is_approval).then(|| "bob is not an approver".to_owned())
    }
}

#[test]
fn who_may_not_approve_cannot_and_a_second_person_is_another() {
    play(HoldBy::Hooks, created(), start::later(), |world| async move {
        world.management().answer_about_rights(Arc::new(NotBob));
        let (client, ada, bob) = (&world.client(), &somebody(&world, "ada"), &somebody(&world, "bob"));
        seconds(30).await;
        // What somebody writes there before anybody has to approve is for nothing.
        annotate(bob, "windlass.dev/approved", "sha256:foreseen").await.unwrap();
        want(client, "second-person").await;
        let asked = ask(ada).await.unwrap();
        assert!(!asked.annotations().contains_key("windlass.dev/approved"));
        let digest = pending(&world).await;
        let refused = annotate(bob, "windlass.dev/approved", &digest).await.unwrap_err();
        let why = "bob may not decide about updates of wl: the verb approve on clusters.cluster.x-k8s.io is missing";
        assert!(refused.contains(why), "{refused}");
        let refused = annotate(ada, "windlass.dev/approved", &digest).await.unwrap_err();
        assert!(refused.contains("somebody else has to approve it: windlass approve wl"), "{refused}");
        annotate(&somebody(&world, "eve"), "windlass.dev/approved", &digest).await.unwrap();
        until_the_first_new_machine(&world).await;
        assert_eq!(updates(&world).await[0].spec.approval.as_ref().unwrap().by, "eve");
    });
}

#[test]
fn what_makes_a_cluster_is_waited_for_by_nobody_and_what_was_reviewed_is_all_that_begins() {
    play(HoldBy::Pause, &empty(), start::founded(), |world| async move {
        let client = &world.client();
        want(client, "required").await;
        cluster(&world).await;
        ready(&world).await;
        want(client, "none").await;
        rolled(&world, "v1.24.9+vmware.1").await;
        let asks = |digest: &str| {
            json!({"metadata": {
                "labels": {"run.tanzu.vmware.com/tkr": NEW},
                "annotations": {"windlass.dev/reviewed-envelope": format!("{NEW} {digest} sha256:r")},
            }})
        };
        let refused = patch(client, asks("sha256:other")).await.unwrap_err();
        let (_, found) = refused.split_once("and what would be done has ").unwrap_or_else(|| panic!("{refused}"));
        let digest = found.split(';').next().unwrap().to_owned();
        assert_eq!(told(&world, "PackagesReady").await[0], "True");
        patch(client, asks(&digest)).await.unwrap();
        until_the_first_new_machine(&world).await;
    });
}

#[test]
fn a_crash_when_an_upgrade_is_approved_costs_time_and_nothing_else() {
    // What is told, the record, and the first of its packages.
    for (write, moment) in [(1, Moment::After), (3, Moment::Before), (3, Moment::After), (4, Moment::After)] {
        let faults = Scenario::default().and(Fault::Crash { write, moment }, When::default());
        play_with(faults, HoldBy::Pause, created(), start::later(), |world| async move {
            let client = &world.client();
            want(client, "required").await;
            ask(client).await.unwrap();
            let digest = pending(&world).await;
            annotate(client, "windlass.dev/approved", &digest).await.unwrap();
            until_the_first_new_machine(&world).await;
            let updates = updates(&world).await;
            assert_eq!(updates.iter().map(|it| it.spec.ordinal).collect::<Vec<_>>(), [1], "{updates:#?}");
            assert_eq!(updates[0].spec.envelope_digest, digest);
        });
    }
}
