//! A release outlives its image: what was begun goes on, and what is there is kept as it should be, by the copy that is kept for
//! the cluster.

use std::time::Duration;

use serde_json::json;
use windlass_api::kind::cluster_update::WaitingFor;
use windlass_api::label;
use windlass_apiserver::store::{Key, Range};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict, Wish};
use windlass_rehearse::settle;
use windlass_sim::fault::{Action, Scenario, Span};
use windlass_sim::world::World;

use crate::start::{self, FROM, TO};

const IMAGES: (&str, &str) = ("vmoperator.vmware.com/v1alpha1", "VirtualMachineImage");
const OLD: &str = "photon-k8sd-v1.15.5-vmware.1-guest.1";
const NEW: &str = "photon-k8sd-v1.16.7-vmware.1-guest.1";

fn delete(name: &str) -> Action {
    Action::Delete { cluster: None, api_version: IMAGES.0.into(), kind: IMAGES.1.into(), name: name.into() }
}

/// Changes what an image says about an add-on that has nothing on its disk.
fn say(name: &str, text: Option<&str>) -> Action {
    let patch = json!({"metadata": {"annotations": {"vmware-system.guest.kubernetes.addons.defaultpsp": text}}});
    Action::Patch { cluster: None, api_version: IMAGES.0.into(), kind: IMAGES.1.into(), name: name.into(), patch }
}

/// What is asked for is reached while this happens.
fn check(start: &Ended, ask: Wish, scenario: Scenario, release: &str) -> Ended {
    let deadline = Duration::from_secs(3 * 60 * 60);
    let request = Request { ask, deadline, faults: scenario, ..start::update() };
    let ended = rehearsal::hold(&start.world, &request, Crashes::none()).unwrap();
    let rehearsal = &ended.rehearsal;
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: release.to_owned() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    ended
}

/// Why the image of the release is not available, as the cluster says at the end; that it is said to who asks why, too.
fn told(ended: &Ended) -> Option<String> {
    let status = settle::cluster(&ended.world, &start::cluster_name()).unwrap().status.unwrap();
    assert_eq!(status.waiting_for, None, "nothing waits for it");
    let condition = status.conditions.into_iter().find(|condition| condition.type_ == "ReleaseAvailable");
    let warned: Vec<String> = status.waits.into_iter().map(|wait| wait.message).collect();
    assert_eq!(warned, condition.iter().map(|condition| condition.message.clone()).collect::<Vec<_>>());
    condition.map(|condition| condition.reason)
}

/// The releases that are kept for the cluster.
fn kept(world: &World) -> Vec<String> {
    let everything = Range { namespace: None, after: None, limit: 0 };
    let page = world.management().store().list("configmaps", everything, |_| true);
    page.entries.iter().filter_map(|entry| entry.label(label::KEPT_RELEASE.name).map(str::to_owned)).collect()
}

#[test]
fn an_upgrade_whose_image_is_gone_when_its_last_machine_is_made_ends_by_the_copy() {
    // The last worker boots after twelve and a half minutes.
    let gone = Scenario::default().then(Span::seconds(770), delete(NEW));
    let ended = check(&start::of(3, 1), start::update().ask, gone, TO);
    assert_eq!(told(&ended).as_deref(), Some("ImageGone"));
    assert_eq!(kept(&ended.world), ["v1.16.7_vmware.1-guest.1"]);
    // Nor is anything left of what the machines before were made from.
    let ours = Range { namespace: Some("default"), after: None, limit: 0 };
    let count = |resource: &str| ended.world.management().store().list(resource, ours, |_| true).entries.len();
    assert_eq!(count("wcpmachinetemplates.infrastructure.cluster.vmware.com"), 1);
    assert_eq!(count("kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io"), 1);
}

#[test]
fn an_upgrade_whose_machines_cannot_be_made_any_more_fails_and_says_that_its_image_is_gone() {
    let deadline = Duration::from_secs(3 * 60 * 60);
    let faults = Scenario::default().then(Span::seconds(400), delete(NEW));
    let request = Request { deadline, faults, ..start::update() };
    let ended = rehearsal::hold(&start::of(3, 1).world, &request, Crashes::none()).unwrap();
    let rehearsal = &ended.rehearsal;
    assert!(matches!(rehearsal.verdict, Verdict::Failed { .. }), "{rehearsal}");
    let status = settle::cluster(&ended.world, &start::cluster_name()).unwrap().status.unwrap();
    let is_told = |wait: &WaitingFor| wait.reason == "ImageGone" && wait.object.ends_with(NEW);
    assert!(status.waits.iter().any(is_told), "{status:?}");
    assert_eq!(kept(&ended.world).len(), 2, "both ends of it are kept");
}

#[test]
fn what_an_image_says_in_the_middle_of_an_upgrade_changes_nothing_about_it() {
    for (text, end) in [(Some("{"), Some("ImageMalformed")), (None, None)] {
        let changed = Scenario::default().then(Span::seconds(100), say(NEW, text));
        let ended = check(&start::of(3, 1), start::update().ask, changed, TO);
        assert_eq!(told(&ended).as_deref(), end, "what can be read is an update of its own");
        assert_eq!(ended.rehearsal.machines.len(), 8, "four come and four go\n{}", ended.rehearsal);
        let update = settle::update(&ended.world, &start::cluster_name()).unwrap();
        assert_eq!(update.spec.ordinal, if end.is_some() { 1 } else { 2 });
        assert_eq!(update.spec.from.distribution == TO, end.is_none());
    }
}

#[test]
fn a_cluster_whose_image_is_gone_is_kept_as_it_should_be_and_can_be_changed() {
    let coredns = Action::Delete {
        cluster: Some(start::cluster_name()),
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: "kube-system/coredns".into(),
    };
    let scenario = Scenario::default().then(Span::seconds(0), delete(OLD)).then(Span::minutes(1), coredns);
    let fewer = json!({"spec": {"topology": {"workers": {"count": 1}}}});
    let ended = check(&start::of(1, 2), Wish::Patch(fewer), scenario, FROM);
    assert_eq!(told(&ended).as_deref(), Some("ImageGone"));
    let workload = ended.world.workload(&start::cluster_name()).unwrap();
    let found = workload.server().store().get("deployments.apps", &Key::new("kube-system", "coredns"));
    assert!(found.is_some(), "what somebody deleted is back");
}
