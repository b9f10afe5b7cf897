//! What a Machine says of itself.

use serde_json::json;

use super::*;

fn node(conditions: &[(&str, &str, &str)]) -> Seen {
    let node = json!({
        "metadata": {"name": "n"},
        "status": {"conditions": conditions
            .iter()
            .map(|(type_, status, message)| json!({"type": type_, "status": status, "message": message}))
            .collect::<Vec<_>>()},
    });
    super::super::node::seen(serde_json::from_value(node).unwrap())
}

#[track_caller]
fn check_health(conditions: &[(&str, &str, &str)], status: &str, reason: &str, message: &str) {
    let health = node_health(&node(conditions));
    assert_eq!((health.status.to_string().as_str(), health.reason, health.message.as_str()), (status, reason, message));
}

#[test]
fn a_node_is_healthy_when_it_is_ready_and_under_no_pressure() {
    let ready = ("Ready", "True", "");
    check_health(&[ready], "True", "NodeHealthy", "");
    check_health(&[ready, ("DiskPressure", "False", "")], "True", "NodeHealthy", "");
    check_health(
        &[ready, ("DiskPressure", "True", "disk is full")],
        "False",
        "NodeNotHealthy",
        "* Node.DiskPressure: disk is full",
    );
    check_health(&[("Ready", "False", "")], "False", "NodeNotHealthy", "* Node.Ready: Condition is False");
    check_health(&[("Ready", "Unknown", "silent")], "Unknown", "NodeHealthUnknown", "* Node.Ready: silent");
    check_health(&[], "Unknown", "NodeHealthUnknown", "* Node.Ready: Condition not yet reported");
}

fn machine(spec: &serde_json::Value, conditions: &[(&str, &str, &str)], deleting: Option<&str>) -> Machine {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(type_, status, said)| {
            let (reason, message) = said.split_once(' ').unwrap_or((said, ""));
            json!({
                "type": type_, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": reason, "message": message,
            })
        })
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "deletionTimestamp": deleting}, "spec": spec,
        "status": {"conditions": conditions, "deletion": {"nodeDrainStartTime": deleting}},
    }))
    .unwrap()
}

#[track_caller]
fn check_summary(machine: &Machine, expected: (&str, &str, &str)) {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let ready = summary(machine, machine.status.as_ref().unwrap(), now);
    assert_eq!((ready.status.to_string().as_str(), ready.reason, ready.message.as_str()), expected);
}

const WELL: [(&str, &str, &str); 4] = [
    ("Deleting", "False", "NotDeleting"),
    ("BootstrapConfigReady", "True", "Ready"),
    ("InfrastructureReady", "True", "Ready"),
    ("NodeHealthy", "True", "NodeHealthy"),
];

fn with(condition: (&'static str, &'static str, &'static str)) -> Vec<(&'static str, &'static str, &'static str)> {
    WELL.iter().copied().filter(|(type_, ..)| *type_ != condition.0).chain([condition]).collect()
}

#[test]
fn a_machine_is_ready_when_nothing_is_wrong_with_it() {
    let spec = json!({});
    check_summary(&machine(&spec, &WELL, None), ("True", "Ready", ""));
    let broken = with(("NodeHealthy", "False", "NodeNotHealthy * Node.Ready: off"));
    check_summary(&machine(&spec, &broken, None), ("False", "NotReady", "* NodeHealthy: * Node.Ready: off"));
    let silent = with(("NodeHealthy", "Unknown", "ConnectionDown"));
    let expected = ("Unknown", "ReadyUnknown", "* NodeHealthy: No additional info provided");
    check_summary(&machine(&spec, &silent, None), expected);
    let ill = with(("HealthCheckSucceeded", "False", "UnhealthyNode Health check failed"));
    check_summary(&machine(&spec, &ill, None), ("False", "NotReady", "* HealthCheckSucceeded: Health check failed"));
}

#[test]
fn others_may_have_a_say_in_whether_a_machine_is_ready() {
    let gates =
        json!({"readinessGates": [{"conditionType": "Cold", "polarity": "Negative"}, {"conditionType": "Seen"}]});
    let seen: Vec<_> = with(("Seen", "True", "Seen")).into_iter().chain([("Cold", "False", "Warm")]).collect();
    check_summary(&machine(&gates, &seen, None), ("True", "Ready", ""));
    let cold: Vec<_> = with(("Seen", "True", "Seen")).into_iter().chain([("Cold", "True", "Cold freezes")]).collect();
    check_summary(&machine(&gates, &cold, None), ("False", "NotReady", "* Cold: freezes"));
    let expected = ("Unknown", "ReadyUnknown", "* Seen: Condition not yet reported");
    check_summary(&machine(&gates, &with(("Cold", "False", "Warm")), None), expected);
}

#[test]
fn a_removal_that_takes_long_says_why() {
    let pdb = "DrainingNode * Pod a/1: cannot evict pod as it would violate the pod's disruption budget. Really";
    let going = with(("Deleting", "True", pdb));
    check_summary(
        &machine(&json!({}), &going, Some("2026-01-01T00:59:00Z")),
        ("False", "NotReady", "* Deleting: Machine deletion in progress, stage: DrainingNode"),
    );
    check_summary(
        &machine(&json!({}), &going, Some("2026-01-01T00:44:00Z")),
        (
            "False",
            "NotReady",
            "* Deleting: Machine deletion in progress since more than 15m, stage: DrainingNode, \
             delay likely due to PodDisruptionBudgets",
        ),
    );
    let gone: Vec<_> = with(("Deleting", "True", "DeletingNode"))
        .into_iter()
        .filter(|(type_, ..)| *type_ != "InfrastructureReady")
        .chain([("InfrastructureReady", "False", "ObjectDeleted it is gone")])
        .collect();
    check_summary(
        &machine(&json!({}), &gone, Some("2026-01-01T00:59:00Z")),
        ("False", "NotReady", "* Deleting: Machine deletion in progress, stage: DeletingNode"),
    );
}
