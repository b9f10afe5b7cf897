//! What people do in the middle of an upgrade.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;
use windlass_api::annotation;
use windlass_rehearse::rehearsal::Change;
use windlass_rehearse::settle;
use windlass_sim::fault::{Fault, Scenario, Span, When, Whom};

use super::{End, Row, Told, action, check, delete, fault, late_role, patch};

use crate::start;

const TKC: (&str, &str, &str) = ("run.tanzu.vmware.com/v1alpha1", "TanzuKubernetesCluster", "default/my-tkc");

#[test]
fn pods_that_are_restarted_on_old_nodes_come_back_as_they_were() {
    let restarted = Fault::PodRestart { of: Whom::named("kube-system/kube-proxy-*"), nodes: "*".into() };
    let scenario = fault("kube-proxy is restarted on every node", restarted, When::from(Span::seconds(5)));
    let told = Told::Nothing;
    check(&Row { ids: &["F9"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
}

#[test]
fn new_pods_that_wait_for_new_nodes_hold_nothing_up() {
    let scenario = Scenario { name: "new pods have no node yet".to_owned(), ..Scenario::default() };
    let told = Told::Words(&["the add-on authsvc is not ready: Deployment/guest-cluster-auth-svc"]);
    let ended = check(&Row { ids: &["F10"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
    let packages = &ended.rehearsal.stages[0];
    let at = |time: &Option<String>| time.as_ref().unwrap().parse::<Timestamp>().unwrap();
    let took = at(&packages.finished_at).duration_since(at(&packages.started_at));
    assert!(took.as_secs() < 60, "{took}\n{}", ended.rehearsal);
}

#[test]
fn a_machine_that_another_update_has_marked_is_left_alone_and_told() {
    let mark = |id: Option<&str>| {
        let annotations = json!({"metadata": {"annotations": {(annotation::MACHINE_UPDATE_ID.name): id}}});
        patch("cluster.x-k8s.io/v1beta2", "Machine", "default/my-tkc-control-plane-*", annotations)
    };
    let scenario = action("another tool has marked a machine", Span::default(), mark(Some("1280807")));
    let told = Told::Words(&["1280807"]);
    let waits = scenario.clone();
    check(&Row { ids: &["F17"], size: (3, 1), scenario: waits, end: End::Waits, tolerated: &[], told });
    let scenario = scenario.then(Span::minutes(30), mark(None));
    check(&Row { ids: &["F17"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
}

#[test]
fn a_cluster_that_is_deleted_in_the_middle_of_an_upgrade_goes() {
    for seconds in [1, 60, 185, 400, 800] {
        let gone = delete(None, TKC.0, TKC.1, TKC.2);
        let scenario = action("the cluster is deleted", Span::seconds(seconds), gone);
        let told = Told::Words(&["is still there"]);
        check(&Row { ids: &["F19"], size: (3, 1), scenario, end: End::Gone, tolerated: &[], told });
    }
}

#[test]
fn an_attempt_that_was_left_behind_is_gone_on_with_under_the_same_id() {
    // All four attempts fail, the controllers are gone for a while, and then somebody deletes the Job.
    let job = delete(None, "batch/v1", "Job", "vmware-system-tkg/update-*");
    let split = Fault::SplitLeadership { takeover: Span::minutes(1), notices_after: Span::seconds(30) };
    let when = When::between(Span::minutes(66), Span::minutes(68));
    let late = late_role(When::default().lasting(Span::minutes(62))).and(split, when);
    let scenario = Scenario { name: "a failed attempt is left behind".to_owned(), ..late.then(Span::minutes(70), job) };
    let told = Told::Words(&["is not labelled as one of the control plane"]);
    let ended = check(&Row { ids: &["F18"], size: (1, 1), scenario, end: End::Reached, tolerated: &[], told });
    let update = settle::update(&ended.world, &start::cluster_name()).unwrap();
    assert_eq!(update.metadata.name.as_deref(), Some("my-tkc-1"));
    let made = ended.rehearsal.machines.iter().filter(|machine| machine.change == Change::Created);
    let names: BTreeSet<&str> = made.map(|machine| &*machine.name).collect();
    let control_plane: Vec<&&str> = names.iter().filter(|name| name.contains("control-plane")).collect();
    assert!(control_plane.len() == 1 && control_plane[0].ends_with(&update.spec.id), "{names:?}");
}
