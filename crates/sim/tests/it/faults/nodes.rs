//! Nodes that are not as they should be, and joins that fail half-way.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Machine;
use windlass_sim::fault::{Fault, NodeFault, Scenario, Span, When, Whom};

use super::{is_available, said};
use crate::management::stage::{Stage, stage_with};

const FIRST: &str = "c-control-plane-0";

fn check<F: Future<Output = ()>>(how: NodeFault, when: When, body: impl FnOnce(Stage) -> F) {
    let fault = Fault::Node { of: Whom { clusters: "default/c".into(), names: "c-*".into() }, how };
    stage_with(Scenario::default().and(fault, when), |stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.pass(9 * 60).await;
        body(stage).await;
    });
}

async fn node(stage: &Stage) -> Node {
    Api::all(stage.workload("c").client()).get(FIRST).await.unwrap()
}

async fn ready(stage: &Stage) -> String {
    let conditions = node(stage).await.status.unwrap().conditions.unwrap();
    conditions.into_iter().find(|condition| condition.type_ == "Ready").unwrap().status
}

#[test]
fn a_node_is_not_heard_of_for_a_while() {
    check(NodeFault::NotReady, When::between(Span::minutes(10), Span::minutes(12)), |stage| async move {
        assert_eq!(ready(&stage).await, "True");
        stage.pass(90).await;
        assert_eq!(ready(&stage).await, "Unknown");
        assert!(!is_available(&stage.get::<Machine>(FIRST).await), "its Machine says so, too");
        stage.pass(90).await;
        assert_eq!(ready(&stage).await, "True");
        said(&stage.world, "F20: c-control-plane-0 is not heard of");
    });
}

#[test]
fn a_node_flaps() {
    let flaps = NodeFault::Flaps { every: Span::seconds(20) };
    check(flaps, When::between(Span::minutes(10), Span::minutes(12)), |stage| async move {
        stage.pass(65).await;
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(ready(&stage).await);
            stage.pass(20).await;
        }
        assert_eq!(seen, ["Unknown", "True", "Unknown", "True"]);
        stage.pass(60).await;
        assert_eq!(ready(&stage).await, "True", "it ends well");
        said(&stage.world, "F20: c-control-plane-0 is heard of again");
    });
}

#[test]
fn a_node_with_the_provider_id_of_another_machine_is_not_taken_for_its_own() {
    check(NodeFault::WrongProviderId, When::default(), |stage| async move {
        let machine: Machine = stage.get(FIRST).await;
        assert_ne!(node(&stage).await.spec.unwrap().provider_id, machine.spec.provider_id);
        assert!(machine.status.unwrap().node_ref.is_none());
        said(&stage.world, "F20: c-control-plane-0 registers with the provider id of another machine");
    });
}

#[test]
fn a_node_gets_its_labels_late() {
    check(NodeFault::LateLabels { by: Span::minutes(10) }, When::default(), |stage| async move {
        let label = |node: Node| node.metadata.labels.unwrap().get("a").cloned();
        assert_eq!(label(node(&stage).await), None);
        stage.pass(600).await;
        assert_eq!(label(node(&stage).await).as_deref(), Some("b"));
        said(&stage.world, "F20: c-control-plane-0 has its labels now");
    });
}

#[test]
fn a_node_gets_the_label_of_its_role_late() {
    check(NodeFault::LateRole { by: Span::minutes(10) }, When::default(), |stage| async move {
        let role = |node: Node| node.metadata.labels.unwrap().contains_key("node-role.kubernetes.io/master");
        assert!(!role(node(&stage).await));
        stage.pass(600).await;
        assert!(role(node(&stage).await));
        said(&stage.world, "F20: c-control-plane-0 registers without the label of its role");
    });
}

#[test]
fn a_fault_may_last_from_its_first_bite_on() {
    // The first machine is of minute three or so, and the second long after it: the fault would bite it, too, if it still were.
    let when = When::default().lasting(Span::minutes(5));
    check(NodeFault::LateRole { by: Span::minutes(600) }, when, |stage| async move {
        stage.control_plane_machine("c", 1).await;
        stage.until("c-control-plane-1", is_available).await;
        let nodes: Vec<Node> =
            Api::<Node>::all(stage.workload("c").client()).list(&ListParams::default()).await.unwrap().items;
        let role = |node: &Node| node.metadata.labels.as_ref().unwrap().contains_key("node-role.kubernetes.io/master");
        assert_eq!(nodes.iter().map(role).collect::<Vec<_>>(), [false, true]);
        assert_eq!(stage.world.faults().bites(), [1]);
    });
}

#[test]
fn a_join_that_fails_leaves_a_member_behind_that_never_starts() {
    let fails = Scenario::of(Fault::JoinFails { of: Whom::named("c-control-plane-1") });
    stage_with(fails, |stage| async move {
        stage.cluster("c").await;
        for ordinal in 0..3 {
            stage.control_plane_machine("c", ordinal).await;
            stage.pass(600).await;
        }
        // Before there were learners, a member that does not start takes the quorum of one with it.
        let workload = stage.workload("c");
        assert!(!workload.answers() && workload.members().is_err());
        assert_eq!(workload.running().len(), 3, "the others wait");
        said(&stage.world, "F21: c-control-plane-1 fails to join after it has added a member to etcd");
    });
}
