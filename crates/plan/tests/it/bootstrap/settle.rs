//! From a label to a `ClusterBootstrap` that says what it means, one look after the other.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_plan::bootstrap::{Copies, Settled, Settling, Step, Subject, Write, settle};

use super::{NEW, OLD, bootstrap, cluster, yaml};

const ANTREA_OLD: &str = "antrea.tanzu.vmware.com.1.7.2";
const ANTREA_NEW: &str = "antrea.tanzu.vmware.com.1.9.0";

fn release(change: impl FnOnce(&mut Value)) -> TanzuKubernetesRelease {
    let mut release = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease",
        "metadata": {"name": NEW, "labels": {}},
        "spec": {
            "version": "v1.25.7+vmware.2-tkg.1", "kubernetes": {"version": "v1.25.7+vmware.2"},
            "bootstrapPackages": [{"name": "kapp-controller.tanzu.vmware.com.0.45.2"}, {"name": ANTREA_NEW}],
        },
    });
    change(&mut release);
    serde_json::from_value(release).unwrap()
}

fn templates() -> BTreeMap<String, ClusterBootstrapTemplate> {
    let template = |name: &str, kapp: &str, antrea: &str| {
        let provider = json!({"apiGroup": "cni.tanzu.vmware.com", "kind": "AntreaConfig", "name": name});
        let template = json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrapTemplate",
            "metadata": {"name": name, "namespace": "tkg-system"},
            "spec": {
                "kapp": {"refName": format!("kapp-controller.tanzu.vmware.com.{kapp}"), "valuesFrom": {"secretRef": "kapp"}},
                "cni": {"refName": antrea, "valuesFrom": {"providerRef": provider}},
            },
        });
        (name.to_owned(), serde_json::from_value(template).unwrap())
    };
    BTreeMap::from([template(OLD, "0.41.5", ANTREA_OLD), template(NEW, "0.45.2", ANTREA_NEW)])
}

fn decide(cluster: &Subject, bootstrap: Option<&ClusterBootstrap>, copies: &Copies) -> Settled {
    let (release, templates) = (release(|_| {}), templates());
    settle(&Settling { cluster, release: Some(&release), templates: &templates, bootstrap, copies })
}

fn told(steps: &[Step]) -> Vec<String> {
    let name = |object: &Value| {
        format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    };
    let tell = |step: &Step| match &step.write {
        Write::Create { object } => format!("create {}", name(object)),
        Write::CopySecret { from, object } => format!("copy {from} to {}", name(object)),
        Write::Patch { object, patch, .. } => format!("patch {object} {patch}"),
        Write::PatchStatus { object, patch, .. } => format!("status {object} {patch}"),
        other => panic!("{other:?}"),
    };
    steps.iter().map(tell).collect()
}

fn sources(orders: &[windlass_plan::bootstrap::CopyOrder], existing: Option<&Value>) -> Copies {
    let inside = json!({"apiVersion": "v1", "kind": "Secret"});
    let source =
        |kind: &str, spec: Value| json!({"apiVersion": "cni.tanzu.vmware.com/v1alpha1", "kind": kind, "spec": spec});
    let of = |order: &windlass_plan::bootstrap::CopyOrder| {
        let found = match order.from.kind.as_str() {
            "Secret" => inside.clone(),
            kind => source(kind, json!({"antrea": {"nsxLocalObjRef": {"kind": "Secret", "name": "nsx"}}})),
        };
        (order.clone(), (Some(found), existing.cloned()))
    };
    orders.iter().map(of).collect()
}

/// Looks for what is to be copied until it is known what to do.
fn settled(cluster: &Subject, bootstrap: Option<&ClusterBootstrap>, existing: Option<&Value>) -> Settled {
    let mut copies = Copies::new();
    loop {
        match decide(cluster, bootstrap, &copies) {
            Settled::Look(orders) => copies.extend(sources(&orders, existing)),
            settled => return settled,
        }
    }
}

#[test]
fn a_new_cluster_gets_copies_and_then_what_refers_to_them() {
    let cluster = cluster(|_| {});
    let Settled::Write(steps) = settled(&cluster, None, None) else { panic!() };
    assert_eq!(
        told(&steps),
        [
            "create AntreaConfig/wl-antrea-package",
            "copy tkg-system/nsx to Secret/nsx",
            "copy tkg-system/kapp to Secret/wl-kapp-controller-package",
            "create ClusterBootstrap/wl",
        ]
    );
    let Write::Create { object } = &steps[0].write else { panic!() };
    assert_eq!(
        object["metadata"],
        json!({
            "name": "wl-antrea-package", "namespace": "dev",
            "labels": {
                "tkg.tanzu.vmware.com/cluster-name": "wl", "tkg.tanzu.vmware.com/package-name": ANTREA_NEW,
            },
            "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "wl", "uid": "cluster-uid"},
            ],
        }),
        "no annotation that says it is only a template"
    );
    let Write::CopySecret { object, .. } = &steps[2].write else { panic!() };
    assert_eq!(object["type"], "clusterbootstrap-secret");
    let Write::Create { object } = &steps[3].write else { panic!() };
    assert_eq!(object["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(object["spec"]["cni"]["valuesFrom"]["providerRef"]["name"], "wl-antrea-package");
}

#[test]
fn what_somebody_prepared_is_kept_and_becomes_the_clusters_own() {
    let prepared = json!({"uid": "a", "resourceVersion": "3", "labels": {"mine": "yes"}});
    let Settled::Write(steps) = settled(&cluster(|_| {}), None, Some(&prepared)) else { panic!() };
    let owner = r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"wl","uid":"cluster-uid"}"#;
    let labels =
        format!(r#"{{"tkg.tanzu.vmware.com/cluster-name":"wl","tkg.tanzu.vmware.com/package-name":"{ANTREA_NEW}"}}"#);
    let patch = format!(r#"{{"metadata":{{"labels":{labels},"ownerReferences":[{owner}]}}}}"#);
    assert_eq!(told(&steps)[0], format!("patch AntreaConfig dev/wl-antrea-package {patch}"));
}

#[test]
fn after_a_change_of_release_the_packages_change_first_and_then_the_word_for_which_release() {
    let current = format!(
        "kapp: {{refName: kapp-controller.tanzu.vmware.com.0.41.5}}\ncni: {{refName: {ANTREA_OLD}, valuesFrom: {{inline: {{own: 1}}}}}}"
    );
    let of_old = |value: &mut Value| {
        value["status"] = json!({"resolvedTKR": OLD, "conditions": [
            {"type": "Antrea-ReconcileSucceeded", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "PackagesReady", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]});
    };
    let before = bootstrap(&current, of_old);
    let cluster = cluster(|_| {});
    let Settled::Write(steps) = settled(&cluster, Some(&before), None) else { panic!() };
    let [Step { write: Write::Patch { patch, expect, .. }, .. }] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(patch["spec"]["cni"], json!({"refName": ANTREA_NEW, "valuesFrom": {"inline": {"own": 1}}}));
    assert_eq!(expect.resource_version, "9");

    let mut between = before.clone();
    between.spec = serde_json::from_value(patch["spec"].clone()).unwrap();
    let Settled::Write(steps) = settled(&cluster, Some(&between), None) else { panic!() };
    let [Step { write: Write::PatchStatus { patch, .. }, .. }] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(patch["status"]["resolvedTKR"], NEW);
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 1, "how long it was waited for the last release does not count: {conditions:?}");

    let mut after = between;
    after.status.as_mut().unwrap().resolved_tkr = Some(NEW.to_owned());
    assert_eq!(settled(&cluster, Some(&after), None), Settled::Done, "planning again changes nothing");
}

#[test]
fn what_somebody_else_made_is_used_as_it_is_or_filled() {
    let cluster = cluster(|_| {});
    let own = "kapp: {refName: kapp-controller.tanzu.vmware.com.0.41.5}\ncni: {refName: cilium.example.com.1.0.0}";
    let unresolved = bootstrap(own, |value| value["status"] = json!({}));
    let Settled::Write(steps) = settled(&cluster, Some(&unresolved), None) else { panic!() };
    let status = format!(r#"status ClusterBootstrap dev/wl {{"status":{{"conditions":[],"resolvedTKR":"{NEW}"}}}}"#);
    assert_eq!(told(&steps), [status]);

    let begun = bootstrap("cni: {refName: antrea*}", |value| {
        value["status"] = json!({});
        value["metadata"]["annotations"] = json!({"tkg.tanzu.vmware.com/add-missing-fields-from-tkr": NEW});
    });
    let Settled::Write(steps) = settled(&cluster, Some(&begun), None) else { panic!() };
    let Some(Step { write: Write::Patch { patch, .. }, .. }) = steps.last() else { panic!("{steps:?}") };
    assert_eq!(patch["spec"]["cni"]["refName"], ANTREA_NEW);
    assert_eq!(patch["spec"]["kapp"]["valuesFrom"]["secretRef"], "wl-kapp-controller-package");
}

fn check_waits(settled: &Settled, reason: &str) {
    let Settled::Wait(blocked) = settled else { panic!("{settled:?}") };
    assert_eq!(blocked.reason(), reason);
    assert!(!blocked.way_out().is_empty() && !blocked.to_string().is_empty());
}

#[test]
fn what_is_missing_is_waited_for_by_name() {
    let plain = cluster(|_| {});
    let (of_release, no_templates, copies) = (release(|_| {}), BTreeMap::new(), Copies::new());
    let seen = Settling { cluster: &plain, release: None, templates: &no_templates, bootstrap: None, copies: &copies };
    check_waits(&settle(&seen), "ReleaseMissing");
    let of_release_that_is_gone = bootstrap("{}", |_| {});
    let gone = Settling { bootstrap: Some(&of_release_that_is_gone), ..seen };
    assert_eq!(settle(&gone), Settled::Done, "a cluster goes on with what it has");
    check_waits(&settle(&Settling { release: Some(&of_release), ..seen }), "TemplateMissing");
    let custom =
        cluster(|it| it["metadata"]["annotations"]["tkg.tanzu.vmware.com/custom-clusterbootstrap"] = "".into());
    check_waits(&settled(&custom, None, None), "BootstrapAwaited");
    let paused = bootstrap("paused: true", |_| {});
    check_waits(&settled(&plain, Some(&paused), None), "BootstrapPaused");
    let Settled::Look(orders) = decide(&plain, None, &copies) else { panic!() };
    let gone: Copies = orders.into_iter().map(|order| (order, (None, None))).collect();
    check_waits(&decide(&plain, None, &gone), "SourceMissing");
    let legacy = release(|it| it["metadata"]["labels"]["run.tanzu.vmware.com/legacy-tkr"] = "".into());
    assert_eq!(settle(&Settling { release: Some(&legacy), ..seen }), Settled::Nothing);
}

#[test]
fn the_templates_that_are_needed_are_known() {
    let of_old = bootstrap("{}", |value| value["status"]["resolvedTKR"] = yaml(OLD));
    assert_eq!(Settling::templates(&cluster(|_| {}), Some(&of_old)), [OLD, NEW]);
    assert_eq!(Settling::templates(&cluster(|_| {}), None), [NEW]);
}
