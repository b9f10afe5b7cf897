//! An upgrade of a cluster of a class that is given up.

use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_plan::bootstrap::abort::{Abort, Aborting, abort, back};
use windlass_plan::bootstrap::{Blocked, Step, Subject, Write, waiting};

use super::{NEW, OLD};

const OLD_KUBERNETES: &str = "v1.24.9+vmware.1";
const NEW_KUBERNETES: &str = "v1.25.7+vmware.2";

/// A cluster that is asked to have the new release, and has both on record.
fn cluster(change: impl FnOnce(&mut Value)) -> Cluster {
    let entry = |release: &str| json!({"labels": {"run.tanzu.vmware.com/tkr": release, "run.tanzu.vmware.com/os-image": "photon"}});
    let mut cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "name": "wl", "namespace": "dev", "uid": "cluster-uid", "resourceVersion": "7",
            "labels": {"run.tanzu.vmware.com/tkr": NEW}, "annotations": {},
        },
        "spec": {"topology": {
            "classRef": {"name": "a"}, "version": NEW_KUBERNETES,
            "variables": [{"name": "TKR_DATA", "value": {(OLD_KUBERNETES): entry(OLD), (NEW_KUBERNETES): entry(NEW)}}],
        }},
    });
    change(&mut cluster);
    serde_json::from_value(cluster).unwrap()
}

fn machine(name: &str, version: &str) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name},
        "spec": {"clusterName": "wl", "version": version},
    }))
    .unwrap()
}

/// What a cluster would go back to, by the version of its control plane and those of its machines.
fn check_back(change: impl FnOnce(&mut Value), control_plane: &str, versions: &[&str], expected: &str) {
    let machines: Vec<Machine> = versions.iter().map(|version| machine("m", version)).collect();
    let told = match back(&cluster(change), control_plane.parse().ok().as_ref(), &machines) {
        Ok(back) => format!("{} to {} {}", back.from, back.release, back.kubernetes),
        Err(refused) => format!("{}: {refused}", refused.reason()),
    };
    assert_eq!(told, expected);
}

#[test]
fn what_a_cluster_goes_back_to_is_what_its_machines_have_as_long_as_none_is_new() {
    let (old, new) = (OLD_KUBERNETES, NEW_KUBERNETES);
    check_back(|_| {}, old, &[old, old], &format!("{NEW} to {OLD} {old}"));
    check_back(
        |_| {},
        new,
        &[old, old],
        &format!(
            "AbortTooLate: the upgrade of wl to {NEW} goes on: its control plane is to have {new} already, and from there on there is only forward"
        ),
    );
    check_back(
        |_| {},
        old,
        &[old, new],
        &format!(
            "AbortTooLate: the upgrade of wl to {NEW} goes on: Machine m has {new}, and from there on there is only forward"
        ),
    );
    check_back(
        |_| {},
        new,
        &[new, new],
        &format!("NothingToGiveUp: the machines of wl have the Kubernetes of {NEW}: there is nothing to give up"),
    );
    let unknown = "AbortImpossible: what wl would go back to is not known: ";
    check_back(|_| {}, "", &[old], &format!("{unknown}its control plane has no version"));
    check_back(
        |_| {},
        "v1.23.1+vmware.1",
        &[],
        &format!("{unknown}no release with v1.23.1+vmware.1 is on record in its topology"),
    );
    check_back(
        |value| value["metadata"]["labels"] = json!({}),
        old,
        &[old],
        &format!("{unknown}it has no label run.tanzu.vmware.com/tkr with a release"),
    );
}

/// What comes next of an order, in words.
fn check(
    annotations: &Value,
    paused: bool,
    (order, control_plane): (&str, &str),
    moving: Option<&str>,
    expected: &str,
) {
    let cluster = cluster(|value| {
        value["metadata"]["annotations"] = annotations.clone();
        value["spec"]["paused"] = json!(paused);
    });
    let subject = Subject::of(&cluster).unwrap().unwrap();
    let back = back(&cluster, control_plane.parse().ok().as_ref(), &[machine("m", OLD_KUBERNETES)]);
    let patch = |step: Step| match step.write {
        Write::Patch { patch, expect, .. } if expect.resource_version == "7" => patch.to_string(),
        other => panic!("{other:?}"),
    };
    let told = match abort(&Aborting { cluster: &subject, order, back, moving }) {
        Abort::Write(step) => patch(step),
        Abort::Refuse(step, refused) => {
            format!("{} {}", refused.map_or("-", |refused| refused.reason()), patch(step))
        }
        Abort::Wait(Blocked::PauseAwaited { object }) => format!("waits for {object}"),
        Abort::Wait(other) => panic!("{other:?}"),
    };
    assert_eq!(told, expected);
}

#[test]
fn an_order_is_followed_under_a_hold_when_everybody_has_let_go() {
    let (none, held) = (json!({}), json!({"tkg.tanzu.vmware.com/paused": NEW}));
    let taken = format!(
        r#"{{"metadata":{{"annotations":{{"tkg.tanzu.vmware.com/paused":"{NEW}"}}}},"spec":{{"paused":true}}}}"#
    );
    check(&none, false, (NEW, OLD_KUBERNETES), None, &taken);
    // A pause that is there is its owner's.
    let kept = format!(
        r#"{{"metadata":{{"annotations":{{"tkg.tanzu.vmware.com/paused":"{NEW}","windlass.dev/keep-paused":""}}}},"spec":{{"paused":true}}}}"#
    );
    check(&none, true, (NEW, OLD_KUBERNETES), None, &kept);
    check(&held, true, (NEW, OLD_KUBERNETES), Some("Machine dev/a"), "waits for Machine dev/a");
    let back = |check: &str| {
        format!(
            r#"{{"metadata":{{"annotations":{{{check}"windlass.dev/abort":null,"windlass.dev/go-on-without-packages":null}},"labels":{{"run.tanzu.vmware.com/tkr":"{OLD}"}}}},"spec":{{"topology":{{"version":"{OLD_KUBERNETES}"}}}}}}"#
        )
    };
    let unsafe_check = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    check(&held, true, (NEW, OLD_KUBERNETES), None, &back(&format!(r#""{unsafe_check}":"windlass.dev/abort","#)));
    // Whoever has switched these checks off keeps it so.
    let off = json!({"tkg.tanzu.vmware.com/paused": NEW, (unsafe_check): ""});
    check(&off, true, (NEW, OLD_KUBERNETES), None, &back(""));
}

#[test]
fn an_order_that_comes_too_late_goes_and_pauses_nobody() {
    let forget = r#"{"metadata":{"annotations":{"windlass.dev/abort":null}}}"#;
    check(&json!({}), false, (NEW, NEW_KUBERNETES), None, &format!("AbortTooLate {forget}"));
    check(&json!({}), false, (OLD, OLD_KUBERNETES), None, &format!("- {forget}"));
    let held = json!({"tkg.tanzu.vmware.com/paused": NEW});
    check(&held, true, (NEW, NEW_KUBERNETES), None, &format!("AbortTooLate {forget}"));
    // Machines that somebody has let go on without packages are not kept by it.
    let goes_on = json!({"tkg.tanzu.vmware.com/paused": NEW, "windlass.dev/go-on-without-packages": NEW});
    let let_go = r#"{"metadata":{"annotations":{"tkg.tanzu.vmware.com/paused":null,"windlass.dev/abort":null,"windlass.dev/keep-paused":null}},"spec":{"paused":false}}"#;
    check(&goes_on, true, (NEW, NEW_KUBERNETES), None, &format!("AbortTooLate {let_go}"));
}

/// Packages were waited for for so long that it stalls. What keeps the order waiting has only begun to.
#[test]
fn what_keeps_an_order_from_being_followed_has_not_lasted_for_as_long_as_the_upgrade() {
    let since = "2026-01-01T00:00:00Z";
    let ready =
        json!({"type": "PackagesReady", "status": "False", "reason": "R", "message": "", "lastTransitionTime": since});
    let packages = super::bootstrap("{}", |it| it["status"]["conditions"] = json!([ready]));
    let blocked = Blocked::PauseAwaited { object: "Cluster dev/wl".to_owned() };
    let stalled = |annotations: &Value| {
        let cluster = cluster(|it| it["metadata"]["annotations"] = annotations.clone());
        let subject = Subject::of(&cluster).unwrap().unwrap();
        let conditions = waiting(&subject, &packages, &blocked, "2026-01-01T02:00:00Z".parse().unwrap());
        conditions.into_iter().find(|it| it.type_ == "Stalled").unwrap().status
    };
    assert_eq!(stalled(&json!({"tkg.tanzu.vmware.com/paused": NEW})), "True");
    assert_eq!(stalled(&json!({"tkg.tanzu.vmware.com/paused": NEW, "windlass.dev/abort": NEW})), "False");
}
