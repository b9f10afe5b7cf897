//! What people do in the middle of an upgrade.

use serde_json::json;
use windlass_api::annotation;
use windlass_sim::fault::{Fault, Scenario, Span, When, Whom};

use super::{End, Row, action, check, delete, fault, patch};

const TKC: (&str, &str, &str) = ("run.tanzu.vmware.com/v1alpha1", "TanzuKubernetesCluster", "default/my-tkc");

#[test]
fn pods_that_are_restarted_on_old_nodes_come_back_as_they_were() {
    let restarted = Fault::PodRestart { of: Whom::named("kube-system/kube-proxy-*"), nodes: "*".into() };
    let scenario = fault("kube-proxy is restarted on every node", restarted, When::from(Span::seconds(5)));
    check(&Row { id: "F9", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
}

#[test]
fn new_pods_that_wait_for_new_nodes_hold_nothing_up() {
    let scenario = Scenario { name: "new pods have no node yet".to_owned(), ..Scenario::default() };
    check(&Row { id: "F10", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
}

#[test]
fn a_machine_that_another_update_has_marked_is_left_alone_and_told() {
    let mark = |id: Option<&str>| {
        let annotations = json!({"metadata": {"annotations": {(annotation::MACHINE_UPDATE_ID.name): id}}});
        patch("cluster.x-k8s.io/v1beta2", "Machine", "default/my-tkc-control-plane-*", annotations)
    };
    let scenario = action("another tool has marked a machine", Span::default(), mark(Some("1280807")));
    let because = &["1280807"];
    check(&Row { id: "F17", size: (3, 1), scenario: scenario.clone(), end: End::Waits, tolerated: &[], because });
    let scenario = scenario.then(Span::minutes(30), mark(None));
    check(&Row { id: "F17", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because });
}

#[test]
fn a_cluster_that_is_deleted_in_the_middle_of_an_upgrade_goes() {
    for seconds in [1, 60, 185, 400, 800] {
        let gone = delete(None, TKC.0, TKC.1, TKC.2);
        let scenario = action("the cluster is deleted", Span::seconds(seconds), gone);
        check(&Row { id: "F19", size: (3, 1), scenario, end: End::Gone, tolerated: &[], because: &[] });
    }
}
