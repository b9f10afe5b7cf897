//! What is told of a cluster, from objects as they are while it is updated.

use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;

use super::*;

const OLD: &str = "v1.16.7+vmware.1-guest.1";
const NEW: &str = "v1.17.4+vmware.1-guest.1";

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn cluster(status: &Value) -> TanzuKubernetesCluster {
    let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
    object(json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1",
        "kind": "TanzuKubernetesCluster",
        "metadata": {"name": "my-tkc", "namespace": "default"},
        "spec": {"distribution": {"fullVersion": NEW}, "topology": {"controlPlane": machines, "workers": machines}},
        "status": status,
    }))
}

fn machine(name: &str, role: &str, created: &str, ready: bool) -> Machine {
    let labels = match role {
        CONTROL_PLANE => json!({"cluster.x-k8s.io/control-plane": ""}),
        pool => json!({"cluster.x-k8s.io/deployment-name": pool}),
    };
    let status = if ready { "True" } else { "False" };
    let condition = json!({"type": "Ready", "status": status, "reason": "x", "message": "it boots",
        "lastTransitionTime": created});
    object(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "creationTimestamp": created, "labels": labels},
        "spec": {"clusterName": "my-tkc", "version": "v1.17.4+vmware.1",
            "bootstrap": {"configRef": {"apiGroup": "b", "kind": "K", "name": "n"}},
            "infrastructureRef": {"apiGroup": "i", "kind": "W", "name": "n"}},
        "status": {"phase": "Running", "conditions": [condition]},
    }))
}

fn end(distribution: &str, workers: &str) -> Value {
    let machines = |count: u32, class: &str| json!({"count": count, "class": class, "storageClass": "fast"});
    json!({"distribution": distribution, "kubernetes": distribution, "controlPlane": machines(3, "small"),
        "workers": machines(2, workers)})
}

fn update(from: &Value, to: &Value, status: &Value) -> ClusterUpdate {
    object(json!({
        "apiVersion": "windlass.dev/v1alpha1",
        "kind": "ClusterUpdate",
        "metadata": {"name": "my-tkc-1"},
        "spec": {"cluster": "my-tkc", "ordinal": 1, "id": "7", "envelopeDigest": "sha256:0", "from": from, "to": to},
        "status": status,
    }))
}

fn at(time: &str) -> String {
    format!("2026-05-04T{time}Z")
}

fn half_way() -> Report {
    let waiting = json!([{"stage": "controlPlane", "reason": "Job", "object": "Job/update-7", "message": "it goes on",
        "since": at("10:01:00"), "wayOut": "wait"}]);
    let stages = json!([
        {"stage": "packages", "startedAt": at("10:00:00"), "finishedAt": at("10:01:00")},
        {"stage": "controlPlane", "startedAt": at("10:01:00")},
        {"stage": "workers"},
    ]);
    let status = json!({"state": "Running", "startedAt": at("10:00:00"), "waitingFor": waiting, "stages": stages});
    let update = update(&end(OLD, "small"), &end(NEW, "small"), &status);
    let machines = [
        machine("w-0", "pool", &at("09:00:00"), true),
        machine("cp-0", CONTROL_PLANE, &at("09:00:00"), true),
        machine("cp-0-7", CONTROL_PLANE, &at("10:01:10"), true),
        machine("cp-1-7", CONTROL_PLANE, &at("10:05:00"), false),
    ];
    let addons = json!({"dns": {"name": "CoreDNS", "status": "applied", "version": "v1.6.5"}});
    let cluster = cluster(&json!({"phase": "updating", "version": OLD, "update": "my-tkc-1",
        "waitingFor": "it goes on", "addons": addons}));
    Report::of(&cluster, Some(&update), &machines, at("10:06:00").parse().unwrap())
}

#[test]
fn a_stage_tells_how_far_it_is_by_what_was_made_since_the_update_began() {
    let update = half_way().update.unwrap();
    let told: Vec<_> = update.stages.iter().map(|stage| (stage.state, stage.progress, stage.seconds)).collect();
    let count = |done, of| Some(Count { done, of });
    assert_eq!(
        told,
        [
            (StageWord::Done, count(1, 1), Some(60)),
            (StageWord::Waiting, count(1, 3), Some(300)),
            (StageWord::NotBegun, count(0, 2), None),
        ]
    );
    assert_eq!(update.seconds, Some(360));
}

#[test]
fn a_machine_that_is_only_coming_takes_nothing_back() {
    let check = |machines: &[(&str, bool)], expected: u64| {
        let status = json!({"state": "Running", "startedAt": at("10:00:00")});
        let update = update(&end(OLD, "small"), &end(NEW, "small"), &status);
        let machines: Vec<Machine> =
            machines.iter().map(|(created, ready)| machine("w", "pool", &at(created), *ready)).collect();
        let report = Report::of(&cluster(&json!({})), Some(&update), &machines, at("10:06:00").parse().unwrap());
        let workers = report.update.unwrap().stages.pop().unwrap();
        assert_eq!(workers.progress, Some(Count { done: expected, of: 2 }), "{expected} of {}", machines.len());
    };
    let (old, coming, new) = (("09:00:00", true), ("10:01:00", false), ("10:01:00", true));
    check(&[old, old], 0);
    check(&[old, old, new], 0);
    check(&[old, new], 1);
    check(&[old, new, coming], 1);
    check(&[old, new, new], 1);
    check(&[new, new], 2);
}

#[test]
fn what_an_update_does_not_touch_is_told_as_such() {
    let status = json!({"state": "Running", "startedAt": at("10:00:00"), "stages": [
        {"stage": "packages"}, {"stage": "controlPlane"}, {"stage": "workers", "startedAt": at("10:00:00")}]});
    let update = update(&end(NEW, "small"), &end(NEW, "large"), &status);
    let cluster = cluster(&json!({"phase": "updating", "update": "my-tkc-1"}));
    let report = Report::of(&cluster, Some(&update), &[], at("10:01:00").parse().unwrap());
    let words: Vec<_> = report.update.unwrap().stages.iter().map(|stage| stage.state).collect();
    assert_eq!(words, [StageWord::Untouched, StageWord::Untouched, StageWord::Running]);
}

#[test]
fn the_word_comes_first_then_the_stages_then_the_machines() {
    let text = half_way().text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("my-tkc  UPDATING  {OLD} -> {NEW}  elapsed 6m"));
    assert_eq!(lines[1], "  waiting for: it goes on");
    assert!(text.contains("✔ done"), "{text}");
    assert!(text.contains("… waiting"), "{text}");
    assert!(text.contains("1/3 ████░░░░░░░░"), "{text}");
    assert!(text.contains("way out: wait"), "{text}");
    assert!(text.find("cp-0 ").unwrap() < text.find("w-0").unwrap(), "the control plane comes first: {text}");
}

#[test]
fn a_log_has_one_line_and_a_board_only_what_moves() {
    let report = half_way();
    assert_eq!(report.line(), "updating, controlPlane 1/3, waiting for: it goes on");
    let board = report.board(16);
    assert_eq!(board.len(), 4, "{board:?}");
    assert!(board[3].contains("cp-1-7") && board[3].contains("it boots"), "{board:?}");
    assert_eq!(report.board(3).len(), 3, "no more than there is room for");
}

#[test]
fn a_bar_is_never_longer_than_its_room() {
    let check = |done, of, expected: &str| assert_eq!(Count { done, of }.bar(4), expected);
    check(0, 3, "░░░░");
    check(1, 2, "██░░");
    check(3, 3, "████");
    check(5, 3, "████");
    check(0, 0, "░░░░");
}
