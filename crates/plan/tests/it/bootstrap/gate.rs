//! Machines follow packages that are at their version and well, and nothing else.

use serde_json::{Value, json};
use windlass_plan::bootstrap::{Installed, Judged, listed, packages_first};

use super::packages;

const VERSION: &str = "1.9.0+vmware.2-tkg.1";
const OLD_VERSION: &str = "1.7.2+vmware.1-tkg.1";

/// A package that is in, changed as a test wants it: its `PackageInstall`, its App and its pods.
fn installed(change: impl FnOnce(&mut [Value; 3])) -> Installed {
    let well = json!([{"type": "ReconcileSucceeded", "status": "True"}]);
    let install = json!({
        "apiVersion": "packaging.carvel.dev/v1alpha1", "kind": "PackageInstall",
        "metadata": {"name": "wl-antrea", "namespace": "tkg-system", "generation": 2},
        "spec": {"packageRef": {"refName": "antrea.tanzu.vmware.com"}},
        "status": {"observedGeneration": 2, "version": VERSION, "conditions": well},
    });
    let app = json!({
        "apiVersion": "kappctrl.k14s.io/v1alpha1", "kind": "App",
        "metadata": {
            "name": "wl-antrea", "generation": 5, "annotations": {"packaging.carvel.dev/package-version": VERSION},
        },
        "spec": {},
        "status": {"observedGeneration": 5, "conditions": well, "deploy": {"exitCode": 0}},
    });
    let mut parts = [install, app, json!([])];
    change(&mut parts);
    let [install, app, pods] = parts;
    Installed {
        install: serde_json::from_value(install).unwrap(),
        app: serde_json::from_value(app).unwrap(),
        pods: serde_json::from_value(pods).unwrap(),
    }
}

fn complaint(installed: &Installed, may_wait: bool) -> String {
    let listed = listed(&packages(&format!("cni: {{refName: antrea.tanzu.vmware.com.{VERSION}}}"))).unwrap();
    let install = "tkg-system/wl-antrea".to_owned();
    let judged = Judged { listed: &listed[0], installed: Some(installed), install, may_wait };
    packages_first([judged]).map(|blocked| format!("{}: {blocked}", blocked.reason())).unwrap_or_default()
}

fn check(change: impl FnOnce(&mut [Value; 3]), wanted: &str) {
    assert_eq!(complaint(&installed(change), false), wanted);
}

fn state(state: &str) -> Value {
    json!([{"type": state, "status": "True"}])
}

#[test]
fn only_what_was_observed_of_the_wanted_version_opens_the_gate() {
    check(|_| {}, "");
    check(
        |[install, ..]| *install = Value::Null,
        "PackageNotReady: the package antrea is not ready: it is not installed yet",
    );
    check(
        |[install, ..]| install["metadata"]["generation"] = 3.into(),
        "PackageNotReady: the package antrea is not ready: its latest change was not seen yet",
    );
    check(
        |[install, ..]| install["status"]["version"] = OLD_VERSION.into(),
        "PackageNotReady: the package antrea is not ready: it is at 1.7.2+vmware.1-tkg.1, and should be at 1.9.0+vmware.2-tkg.1",
    );
    check(
        |[_, app, _]| *app = Value::Null,
        "PackageNotReady: the package antrea is not ready: nothing is deployed yet",
    );
    // What a PackageInstall says of the new version may be what was true of the old one.
    check(
        |[_, app, _]| app["metadata"]["annotations"]["packaging.carvel.dev/package-version"] = OLD_VERSION.into(),
        "PackageNotReady: the package antrea is not ready: what is deployed is 1.7.2+vmware.1-tkg.1, and should be 1.9.0+vmware.2-tkg.1",
    );
    check(
        |[_, app, _]| app["metadata"]["generation"] = 6.into(),
        "PackageNotReady: the package antrea is not ready: what it deploys was not looked at yet",
    );
    check(
        |[install, app, _]| {
            install["status"]["conditions"] = state("Reconciling");
            app["status"]["conditions"] = state("Reconciling");
            app["status"]["deploy"]["stdout"] = "deployment/antrea-controller: waiting for 1 replicas\nmore".into();
        },
        "PackageNotReady: the package antrea is not ready: 1.9.0+vmware.2-tkg.1: deployment/antrea-controller: waiting for 1 replicas",
    );
}

#[test]
fn what_failed_and_what_is_held_is_said_as_such() {
    check(
        |[install, ..]| {
            install["status"]["conditions"] = state("ReconcileFailed");
            install["status"]["usefulErrorMessage"] = "vendir: no; kapp: Error: no such image".into();
        },
        "PackageFailed: the package antrea has failed: kapp: Error: no such image",
    );
    // No version fits: the version in the status is that of before.
    check(
        |[install, ..]| {
            install["status"]["version"] = OLD_VERSION.into();
            install["status"]["conditions"] = state("ReconcileFailed");
            install["status"]["usefulErrorMessage"] = "Expected to find at least one version, but did not".into();
        },
        "PackageFailed: the package antrea has failed: Expected to find at least one version, but did not",
    );
    for field in ["paused", "canceled"] {
        check(
            |[install, ..]| install["spec"][field] = true.into(),
            &format!("PackageHeld: the package antrea is held: spec.{field} is true"),
        );
    }
    check(
        |[_, app, _]| app["metadata"]["annotations"]["ext.packaging.carvel.dev/manually-controlled"] = "".into(),
        "PackageHeld: the package antrea is held: somebody deploys it by hand: its App has the annotation \
         ext.packaging.carvel.dev/manually-controlled",
    );
}

/// A package whose new pods have no node yet.
fn waiting(conditions: &str, available: u64, applied: bool) -> Installed {
    installed(|[install, app, pods]| {
        install["status"]["conditions"] = state(conditions);
        app["status"]["conditions"] = state(conditions);
        install["status"]["usefulErrorMessage"] = "kapp: Error: Timed out waiting after 900s for resources".into();
        if !applied {
            app["status"]["deploy"] = Value::Null;
        }
        *pods = json!([{
            "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 2, "availableReplicas": available, "updatedReplicas": 1},
        }]);
    })
}

#[test]
fn new_pods_may_wait_for_new_nodes_only_where_that_is_declared_and_the_old_ones_run() {
    for conditions in ["Reconciling", "ReconcileFailed"] {
        assert_eq!(complaint(&waiting(conditions, 2, true), true), "", "{conditions}");
        assert_ne!(complaint(&waiting(conditions, 2, true), false), "", "it is not declared");
        assert_ne!(complaint(&waiting(conditions, 1, true), true), "", "an old pod does not run");
        assert_ne!(complaint(&waiting(conditions, 2, false), true), "", "nothing was applied");
    }
    let mut other = waiting("ReconcileFailed", 2, true);
    other.install.as_mut().unwrap().status.as_mut().unwrap().useful_error_message = Some("kapp: Error: no".to_owned());
    assert_eq!(complaint(&other, true), "PackageFailed: the package antrea has failed: kapp: Error: no");
    let none = Installed { pods: Vec::new(), ..waiting("Reconciling", 2, true) };
    assert_ne!(complaint(&none, true), "", "no pods are no proof");
}

#[test]
fn packages_that_were_added_hold_no_machines() {
    let listed = listed(&packages("additionalPackages: [{refName: own.example.com.1.0.0}]")).unwrap();
    let install = "tkg-system/wl-own".to_owned();
    assert_eq!(packages_first([Judged { listed: &listed[0], installed: None, install, may_wait: false }]), None);
}
