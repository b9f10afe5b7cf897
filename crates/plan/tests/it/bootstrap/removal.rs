//! A cluster goes when packages that were added to it are gone, or have had their time.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_plan::bootstrap::{Blocked, FINALIZER, Installed, Installs, Leaving, Left, Step, Workload, Write, leave};

use super::{bootstrap, cluster};

const PACKAGES: &str = "
cni: {refName: antrea.tanzu.vmware.com.1.7.2}
additionalPackages: [{refName: one.example.com.1.0.0}, {refName: two.example.com.1.0.0}, {refName: kept.example.com.1.0.0}]
";

fn install(name: &str, more: &Value) -> (String, Installed) {
    let mut install = json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
        "metadata": {"name": name, "namespace": "tkg-system", "uid": name, "resourceVersion": "1"},
        "spec": {"packageRef": {"refName": name}},
    });
    json_patch(&mut install, more);
    let install = serde_json::from_value(install).unwrap();
    (name.to_owned(), Installed { install: Some(install), ..Installed::default() })
}

fn json_patch(value: &mut Value, more: &Value) {
    for (key, more) in more.as_object().unwrap() {
        match (value.get_mut(key), more) {
            (Some(inner @ Value::Object(_)), Value::Object(_)) => json_patch(inner, more),
            _ => value[key] = more.clone(),
        }
    }
}

fn having(installs: Installs) -> Workload {
    Workload::Reachable { prerequisites: vec![], packages: BTreeMap::new(), installs, digests: BTreeMap::new() }
}

fn left(workload: &Workload, minutes: i64) -> Left {
    let held = |value: &mut Value| value["metadata"]["finalizers"] = json!(["other", FINALIZER]);
    let bootstrap = bootstrap(PACKAGES, |value| {
        held(value);
        value["metadata"]["annotations"]["run.tanzu.vmware.com/skip-packageinstall-deletion"] = "kept, nobody".into();
    });
    let since: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    leave(&Leaving {
        cluster: &cluster(held),
        since,
        bootstrap: Some(&bootstrap),
        kubeconfig: Some(&json!({"uid": "k", "resourceVersion": "2", "finalizers": [FINALIZER]})),
        workload,
        now: since + jiff::SignedDuration::from_mins(minutes),
    })
}

fn told(left: &Left) -> Vec<String> {
    let tell = |step: &Step| match &step.write {
        Write::Delete { object, .. } => format!("delete {object}"),
        Write::Patch { object, patch, .. } => format!("patch {object} {}", patch["metadata"]["finalizers"]),
        other => panic!("{other:?}"),
    };
    let waits = left.waits_for.iter().map(|blocked| match blocked {
        Blocked::PackagesGoFirst { why } => why.clone(),
        other => panic!("{other:?}"),
    });
    let given_up = left.given_up.iter().map(|what| format!("given up: {what}"));
    left.steps.iter().map(tell).chain(waits).chain(given_up).collect()
}

const LET_GO: [&str; 3] = [
    r#"patch ClusterBootstrap dev/wl ["other"]"#,
    "patch Secret dev/wl-kubeconfig []",
    r#"patch Cluster dev/wl ["other"]"#,
];

#[test]
fn what_was_added_goes_first_and_then_everything_lets_go_in_order() {
    let all = ["wl-antrea", "wl-one", "wl-two", "wl-kept"].map(|name| install(name, &json!({})));
    assert_eq!(
        told(&left(&having(all.into()), 0)),
        [
            "delete PackageInstall tkg-system/wl-one",
            "delete PackageInstall tkg-system/wl-two",
            "PackageInstall tkg-system/wl-one is still there",
        ]
    );
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let failed = json!({"status": {"conditions": [{"type": "DeleteFailed", "status": "True"}]}});
    let some = [install("wl-one", &leaving), install("wl-two", &failed), install("wl-kept", &json!({}))];
    assert_eq!(told(&left(&having(some.into()), 1)), ["PackageInstall tkg-system/wl-one is still there"]);
    let gone = [install("wl-antrea", &json!({})), install("wl-two", &failed), install("wl-kept", &json!({}))];
    assert_eq!(told(&left(&having(gone.into()), 1)), LET_GO);
}

#[test]
fn an_api_that_does_not_answer_keeps_a_cluster_for_ten_minutes_and_no_longer() {
    let silent = Workload::Unreachable { why: "no route".to_owned() };
    assert_eq!(told(&left(&silent, 9)), ["the workload cluster does not answer: no route"]);
    let without = |what: &str| LET_GO.map(str::to_owned).into_iter().chain([format!("given up: {what}")]);
    assert!(told(&left(&silent, 10)).into_iter().eq(without("the workload cluster does not answer: no route")));
    let stuck = install("wl-one", &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let still_there = "PackageInstall tkg-system/wl-one is still there";
    assert!(told(&left(&having([stuck].into()), 10)).into_iter().eq(without(still_there)));
    assert_eq!(told(&left(&Workload::NotYet, 0)), LET_GO, "there never was one");
}

#[test]
fn a_cluster_that_is_held_is_let_go_of_first() {
    let held = |keep: bool| {
        cluster(|value| {
            value["metadata"]["annotations"]["tkg.tanzu.vmware.com/paused"] = "a".into();
            value["spec"]["paused"] = true.into();
            if keep {
                value["metadata"]["annotations"]["windlass.dev/keep-paused"] = "".into();
            }
        })
    };
    for keep in [false, true] {
        let since: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (cluster, workload) = (held(keep), Workload::NotYet);
        let seen =
            Leaving { cluster: &cluster, since, bootstrap: None, kubeconfig: None, workload: &workload, now: since };
        let left = leave(&seen);
        let [Step { write: Write::Patch { patch, .. }, .. }] = left.steps.as_slice() else { panic!("{left:?}") };
        assert!(patch["metadata"]["annotations"]["tkg.tanzu.vmware.com/paused"].is_null());
        assert_eq!(patch["spec"]["paused"].as_bool(), (!keep).then_some(false), "the owner's own pause stays");
    }
}
