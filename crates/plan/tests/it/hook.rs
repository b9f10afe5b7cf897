//! What Cluster API is told when it asks.

use serde_json::{Value, json};
use windlass_api::hook::{Answer, AnswerStatus, HookName, Question};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::release::TanzuKubernetesRelease;
use windlass_plan::hook::{Known, RETRY_SECONDS, answer, reached, upgrade_plan};
use windlass_plan::resolve::copy;

const RELEASE: &str = "v1.25.7---vmware.2-tkg.1";

fn cluster(labels: &Value, finalizers: &Value) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "wl", "namespace": "dev", "labels": labels, "finalizers": finalizers}, "spec": {},
    }))
    .unwrap()
}

fn bootstrap(resolved: &str, conditions: &Value) -> ClusterBootstrap {
    serde_json::from_value(json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap",
        "metadata": {"name": "wl", "namespace": "dev"}, "spec": {},
        "status": {"resolvedTKR": resolved, "conditions": conditions},
    }))
    .unwrap()
}

fn ready(status: &str, message: &str) -> Value {
    json!([{"type": "PackagesReady", "status": status, "reason": "R", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

/// The message of an answer; nothing for: go on.
fn check(hook: HookName, cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>, wanted: &str) {
    check_with(hook, cluster, &Known { bootstrap, ..ready_release() }, wanted);
}

/// The release is there, with its template.
fn ready_release() -> Known<'static> {
    static RELEASE_OBJECT: std::sync::LazyLock<TanzuKubernetesRelease> = std::sync::LazyLock::new(|| release(|_| {}));
    Known { release: Some(&RELEASE_OBJECT), has_template: true, ..Known::default() }
}

/// The release, changed as a test wants it.
fn release(change: impl FnOnce(&mut Value)) -> TanzuKubernetesRelease {
    let mut object = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease",
        "metadata": {"name": RELEASE, "labels": {}},
        "spec": {"version": "v1.25.7+vmware.2-tkg.1", "kubernetes": {"version": "v1.25.7+vmware.2"}, "bootstrapPackages": []},
        "status": {"conditions": []},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn check_with(hook: HookName, cluster: &Cluster, known: &Known<'_>, wanted: &str) {
    let answer = answer(hook, cluster, known);
    assert_eq!((answer.status, answer.message.as_str()), (AnswerStatus::Success, wanted), "{hook}");
    assert_eq!(answer.retry_after_seconds, if wanted.is_empty() { 0 } else { RETRY_SECONDS });
    assert_eq!(answer.kind, format!("{hook}Response"));
}

#[test]
fn machines_follow_when_the_packages_of_their_release_are_ready() {
    let ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    let first = format!("packages of {RELEASE} come first: ");
    for hook in [
        HookName::BeforeClusterUpgrade,
        HookName::BeforeControlPlaneUpgrade,
        HookName::AfterControlPlaneUpgrade,
        HookName::BeforeWorkersUpgrade,
    ] {
        check(hook, &ours, None, &format!("{first}there is no ClusterBootstrap yet"));
        let old = bootstrap("v1.24.9---vmware.1-tkg.1", &ready("True", ""));
        check(hook, &ours, Some(&old), &format!("{first}they are not chosen yet"));
        let unseen = bootstrap(RELEASE, &json!([]));
        check(hook, &ours, Some(&unseen), &format!("{first}nobody has looked at them yet"));
        let waits = bootstrap(RELEASE, &ready("False", "antrea is at 1.7.2"));
        check(hook, &ours, Some(&waits), &format!("{first}antrea is at 1.7.2"));
        check(hook, &ours, Some(&bootstrap(RELEASE, &ready("True", ""))), "");
    }
}

#[test]
fn machines_go_on_without_packages_where_somebody_says_so_and_for_that_release_only() {
    let mut ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    let hook = HookName::BeforeClusterUpgrade;
    let mut say = |release: &str| {
        let annotation = ("windlass.dev/go-on-without-packages".to_owned(), release.to_owned());
        ours.metadata.annotations = Some([annotation].into());
        answer(hook, &ours, &Known::default()).retry_after_seconds
    };
    assert_eq!(say(RELEASE), 0);
    assert_eq!(say("v1.24.9---vmware.1-tkg.1"), RETRY_SECONDS);
}

#[test]
fn who_wants_machines_without_their_packages_has_approved_nothing() {
    let mut ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    let annotations = [("windlass.dev/go-on-without-packages", RELEASE), ("windlass.dev/approval", "required")];
    ours.metadata.annotations = Some(annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let waits = |known: Known<'_>| answer(HookName::BeforeClusterUpgrade, &ours, &known).retry_after_seconds > 0;
    let old = bootstrap("v1.24.9---vmware.1-tkg.1", &ready("False", "the upgrade is not approved"));
    assert!(waits(Known { bootstrap: Some(&old), ..Known::default() }));
    assert!(!waits(Known { bootstrap: Some(&old), is_begun: true, ..Known::default() }), "it is on record");
    let chosen = bootstrap(RELEASE, &ready("False", "antrea has failed"));
    assert!(!waits(Known { bootstrap: Some(&chosen), ..Known::default() }), "its packages are chosen");
}

#[test]
fn nobody_waits_for_the_packages_of_a_release_that_has_none() {
    let mut ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    let old = bootstrap("v1.24.9---vmware.1-tkg.1", &ready("True", ""));
    let without: fn(&mut Value) = |it| it["spec"]["bootstrapPackages"] = Value::Null;
    let labelled: fn(&mut Value) = |it| it["metadata"]["labels"] = json!({"run.tanzu.vmware.com/legacy-tkr": ""});
    let waits = |ours: &Cluster, release: Option<&TanzuKubernetesRelease>, bootstrap: Option<&ClusterBootstrap>| {
        let known = Known { bootstrap, release, has_template: false, is_begun: false };
        answer(HookName::BeforeClusterUpgrade, ours, &known).retry_after_seconds > 0
    };
    for bootstrap in [None, Some(&old)] {
        for change in [without, labelled] {
            assert!(!waits(&ours, Some(&release(change)), bootstrap));
        }
        assert!(waits(&ours, Some(&release(|_| {})), bootstrap));
        assert!(waits(&ours, None, bootstrap), "nobody knows what it has");
    }
    // It is gone, and kept with the cluster.
    let mut keep = |release: &TanzuKubernetesRelease| {
        let kept = ("run.tanzu.vmware.com/tkr-spec".to_owned(), copy::write(release));
        ours.metadata.annotations = Some([kept].into());
        waits(&ours, None, Some(&old))
    };
    assert!(!keep(&release(without)));
    assert!(keep(&release(|_| {})));
    assert!(keep(&release(
        |it| (it["metadata"]["name"], it["spec"]["bootstrapPackages"]) = (json!("other"), Value::Null)
    )));
}

#[test]
fn what_is_not_ours_and_what_needs_no_packages_passes() {
    let foreign = cluster(&json!({}), &json!(["tkg.tanzu.vmware.com/addon"]));
    HookName::all().for_each(|hook| check(hook, &foreign, None, ""));
    let ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    for hook in [
        HookName::BeforeClusterCreate,
        HookName::AfterControlPlaneInitialized,
        HookName::AfterWorkersUpgrade,
        HookName::AfterClusterUpgrade,
        HookName::BeforeClusterDelete,
    ] {
        check(hook, &ours, None, "");
    }
}

#[test]
fn a_cluster_is_made_when_its_release_is_there_with_all_that_its_packages_need() {
    let hook = HookName::BeforeClusterCreate;
    let ours = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!([]));
    let check = |change: fn(&mut Value), has_template: bool, wanted: &str| {
        let release = release(change);
        let wanted = if wanted.is_empty() { String::new() } else { format!("the release comes first: {wanted}") };
        check_with(hook, &ours, &Known { release: Some(&release), has_template, ..Known::default() }, &wanted);
    };
    check(|_| {}, true, "");
    check(|_| {}, false, &format!("there is no ClusterBootstrapTemplate tkg-system/{RELEASE}; put it back"));
    check(|it| it["spec"]["bootstrapPackages"] = Value::Null, false, "");
    check(|it| it["metadata"]["labels"] = json!({"run.tanzu.vmware.com/legacy-tkr": ""}), false, "");
    check(
        |it| it["metadata"]["labels"] = json!({"deactivated": ""}),
        true,
        &format!("TanzuKubernetesRelease {RELEASE} is deactivated; ask for one that can be used"),
    );
    check(
        |it| {
            let message = "an image is missing";
            it["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": "Invalid",
                "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        },
        true,
        &format!("TanzuKubernetesRelease {RELEASE} is not ready: an image is missing"),
    );
    let missing = format!("there is no TanzuKubernetesRelease {RELEASE}; put it back, or ask for one that is there");
    check_with(hook, &ours, &Known::default(), &format!("the release comes first: {missing}"));
    // One that was to be resolved when it was written, and was not.
    let mut unresolved = cluster(&json!({}), &json!([]));
    unresolved.metadata.annotations = Some([("run.tanzu.vmware.com/resolve-tkr".to_owned(), String::new())].into());
    let label = "the release comes first: the Cluster has no label run.tanzu.vmware.com/tkr with one";
    check_with(hook, &unresolved, &Known::default(), label);
    check_with(HookName::BeforeClusterUpgrade, &unresolved, &Known::default(), "");
}

#[test]
fn what_has_come_to_its_end_is_told_and_nothing_else() {
    let told: Vec<&str> = HookName::all().filter_map(|hook| Some(reached(hook)?.reason)).collect();
    assert_eq!(told, ["ControlPlaneInitialized", "ControlPlaneUpgraded", "WorkersUpgraded", "ClusterUpgraded"]);
}

#[test]
fn machines_stay_until_packages_that_need_them_have_gone() {
    let held = cluster(&json!({"run.tanzu.vmware.com/tkr": RELEASE}), &json!(["tkg.tanzu.vmware.com/addon"]));
    check(HookName::BeforeClusterDelete, &held, None, "packages that were added to the cluster go first");
}

fn planned(from: &str, to: &str) -> Answer {
    let offered = ["v1.30.8", "v1.30.2", "v1.31.4", "v1.33.0"].map(|version| version.parse().unwrap());
    let question = Question {
        from_control_plane_kubernetes_version: Some(from.to_owned()),
        to_kubernetes_version: Some(to.to_owned()),
        ..Question::default()
    };
    upgrade_plan(&question, &offered)
}

#[test]
fn a_plan_goes_through_every_minor_by_its_newest_release() {
    let versions = |answer: &Answer| -> Vec<String> {
        answer.control_plane_upgrades.iter().map(|step| step.version.clone()).collect()
    };
    assert_eq!(versions(&planned("v1.29.0", "v1.32.1")), ["v1.30.8", "v1.31.4", "v1.32.1"]);
    assert_eq!(versions(&planned("v1.30.2", "v1.30.8")), ["v1.30.8"]);
    assert_eq!(versions(&planned("v1.31.4", "v1.31.4")), Vec::<String>::new());
    let gap = planned("v1.31.4", "v1.33.0");
    assert_eq!(gap.status, AnswerStatus::Failure);
    assert_eq!(gap.message, "there is no release of v1.32, which is between v1.31.4 and v1.33.0");
    assert!(planned("now", "v1.33.0").message.starts_with("fromControlPlaneKubernetesVersion: "));
}
