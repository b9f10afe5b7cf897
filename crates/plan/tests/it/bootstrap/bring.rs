//! What is written for the packages of a cluster, look by look, until machines may follow.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::kind::release::{ClusterBootstrap, LocalReference};
use windlass_plan::bootstrap::values::{Found, FoundValues};
use windlass_plan::bootstrap::{
    Bringing, Brought, FINALIZER, Installed, Installs, Reference, Step, Subject, Workload, Write, bring, prerequisites,
};

use super::{NEW, bootstrap, cluster, named};

const PACKAGES: &str = "
kapp: {refName: kapp-controller.tanzu.vmware.com.0.45.2, valuesFrom: {inline: {namespace: tkg-system}}}
cni: {refName: antrea.tanzu.vmware.com.1.9.0, valuesFrom: {providerRef: {apiGroup: cni.tanzu.vmware.com, kind: AntreaConfig, name: wl-antrea-package}}}
csi: {refName: vsphere-csi.tanzu.vmware.com.2.7.1}
additionalPackages:
- {refName: own.example.com.1.0.0, valuesFrom: {secretRef: own}}
- {refName: metrics-server.tanzu.vmware.com.0.6.2}
";
const NAMES: [&str; 5] = [
    "kapp-controller.tanzu.vmware.com.0.45.2",
    "antrea.tanzu.vmware.com.1.9.0",
    "vsphere-csi.tanzu.vmware.com.2.7.1",
    "own.example.com.1.0.0",
    "metrics-server.tanzu.vmware.com.0.6.2",
];

/// A small world: what is written is there at the next look, and packages do as they are told.
struct Place {
    cluster: Subject,
    bootstrap: ClusterBootstrap,
    packages: BTreeMap<String, Value>,
    listed: Vec<LocalReference>,
    values: FoundValues,
    digests: BTreeMap<String, String>,
    kapp: Installed,
    workload: Workload,
    moving: Option<&'static str>,
    now: Timestamp,
}

fn place() -> Place {
    let held = |value: &mut Value| value["metadata"]["finalizers"] = json!([FINALIZER]);
    let package = |name: &str| {
        let (ref_name, version) = name.split_at(name.find(|it: char| it.is_ascii_digit()).unwrap() - 1);
        let body = json!({
            "apiVersion": "data.packaging.carvel.dev/v1alpha1", "kind": "Package", "metadata": {"name": name},
            "spec": {"refName": ref_name, "version": version[1..]},
        });
        (name.to_owned(), body)
    };
    let found = |secret: Result<(String, String), String>| Found {
        api_version: "cni.tanzu.vmware.com/v1alpha1".to_owned(),
        metadata: json!({"uid": "v", "resourceVersion": "1", "ownerReferences": []}),
        secret,
    };
    let provider = Reference {
        api_group: "cni.tanzu.vmware.com".to_owned(),
        kind: "AntreaConfig".to_owned(),
        name: "wl-antrea-package".to_owned(),
    };
    let values = [
        (provider, found(Ok(("wl-antrea-data-values".to_owned(), "digest-1".to_owned())))),
        (Reference::secret("own"), found(Ok(("own".to_owned(), "digest-2".to_owned())))),
    ];
    Place {
        cluster: cluster(|value| {
            held(value);
            value["spec"]["paused"] = true.into();
            value["metadata"]["annotations"]["tkg.tanzu.vmware.com/paused"] = NEW.into();
        }),
        bootstrap: bootstrap(PACKAGES, held),
        packages: NAMES.iter().map(|name| package(name)).collect(),
        listed: named(&NAMES),
        values: values.into(),
        digests: BTreeMap::new(),
        kapp: Installed::default(),
        workload: Workload::WithoutKinds,
        moving: None,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

impl Place {
    fn look(&self) -> Brought {
        bring(&Bringing {
            cluster: &self.cluster,
            bootstrap: &self.bootstrap,
            listed: Some(&self.listed),
            packages: &self.packages,
            values: &self.values,
            digests: &self.digests,
            kapp: &self.kapp,
            kubeconfig: None,
            workload: &self.workload,
            moving: self.moving,
            now: self.now,
        })
    }

    /// Looks, and keeps what the status says.
    fn told(&mut self) -> Brought {
        let brought = self.look();
        self.bootstrap.status = Some(brought.status.clone());
        brought
    }

    /// Does what was planned, for the workload cluster and for kapp-controller.
    fn write(&mut self, steps: &[Step]) {
        for step in steps {
            match &step.write {
                Write::Apply { object } => self.put(object, None),
                Write::CopySecret { from, object } => {
                    let digest = if from.name.as_str() == "own" { "digest-2" } else { "digest-1" };
                    self.put(object, Some(digest));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn put(&mut self, object: &Value, digest: Option<&str>) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let in_management = object["metadata"]["namespace"] == "dev";
        if object["kind"] == "Secret" {
            let text = object["stringData"]["values.yaml"].as_str().unwrap_or_default();
            let inline = windlass_plan::bootstrap::values::digest([("values.yaml", text.as_bytes())]);
            let digest = digest.map_or(inline, str::to_owned);
            let Workload::Reachable { digests, .. } = &mut self.workload else {
                assert!(in_management);
                self.digests.insert(name, digest);
                return;
            };
            digests.insert(name, digest);
            return;
        }
        if object["kind"] == "PackageInstall" {
            let installed =
                Installed { install: serde_json::from_value(object.clone()).unwrap(), ..Installed::default() };
            match &mut self.workload {
                Workload::Reachable { installs, .. } if !in_management => drop(installs.insert(name, installed)),
                _ => self.kapp = installed,
            }
            return;
        }
        let Workload::Reachable { prerequisites, packages, .. } = &mut self.workload else { panic!("{object}") };
        match object["kind"].as_str().unwrap() {
            "Package" => drop(packages.insert(name, object.clone())),
            _ => prerequisites.push(object.clone()),
        }
    }

    /// Everything that is written becomes well.
    fn settle(&mut self) {
        become_well(&mut self.kapp);
        if let Workload::Reachable { installs, .. } = &mut self.workload {
            installs.values_mut().for_each(become_well);
        }
    }

    fn with_kinds(&mut self) {
        let (prerequisites, packages) = (prerequisites(), BTreeMap::new());
        self.workload =
            Workload::Reachable { prerequisites, packages, installs: Installs::new(), digests: BTreeMap::new() };
    }
}

fn become_well(installed: &mut Installed) {
    let Some(install) = &mut installed.install else { return };
    let version = install.spec.package_ref.version_selection.as_ref().unwrap().constraints.clone();
    let conditions = json!([{"type": "ReconcileSucceeded", "status": "True"}]);
    let status = json!({"version": version, "conditions": conditions});
    install.status = Some(serde_json::from_value(status.clone()).unwrap());
    let app = json!({
        "apiVersion": "kappctrl.k14s.io/v1alpha1", "kind": "App", "spec": {}, "status": {"conditions": conditions},
        "metadata": {"name": "a", "annotations": {"packaging.carvel.dev/package-version": version}},
    });
    installed.app = Some(serde_json::from_value(app).unwrap());
}

fn told(steps: &[Step]) -> Vec<String> {
    let name = |object: &Value| {
        format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    };
    let tell = |step: &Step| match &step.write {
        Write::Apply { object } => name(object),
        Write::CopySecret { from, object } => format!("{} from {from}", name(object)),
        Write::Patch { object, patch, .. } => format!("{object} {patch}"),
        other => panic!("{other:?}"),
    };
    steps.iter().map(tell).collect()
}

fn reason(brought: &Brought) -> &str {
    brought.blocked.as_ref().map_or("", |blocked| blocked.reason())
}

fn conditions(brought: &Brought) -> Vec<String> {
    brought.status.conditions.iter().map(|it| format!("{} {} {}", it.type_, it.status, it.reason)).collect()
}

#[test]
fn packages_come_in_their_order_and_then_the_hold_ends() {
    let mut place = place();
    let first = place.told();
    assert_eq!(told(&first.steps), ["Secret wl-kapp-controller-data-values", "PackageInstall wl-kapp-controller"]);
    let Write::Apply { object } = &first.steps[1].write else { panic!() };
    assert_eq!(object["spec"]["noopDelete"], true);
    assert_eq!(object["spec"]["cluster"]["kubeconfigSecretRef"]["name"], "wl-kubeconfig");
    assert_eq!(
        object["spec"]["packageRef"]["versionSelection"],
        json!({"constraints": "0.45.2", "prereleases": {}}),
        "that version and no other"
    );
    place.write(&first.steps);
    let waits = place.told();
    assert!(waits.steps.is_empty(), "nothing is given to a kapp-controller that is not well");
    assert!(waits.awaits_workload);
    assert_eq!(reason(&waits), "PackageNotReady");

    place.settle();
    assert_eq!(reason(&place.told()), "PackageNotReady", "its kinds are not there");
    place.with_kinds();
    let second = place.told();
    assert_eq!(
        told(&second.steps),
        [
            "Package antrea.tanzu.vmware.com.1.9.0",
            "Secret wl-antrea-data-values from dev/wl-antrea-data-values",
            "PackageInstall wl-antrea",
            "Package vsphere-csi.tanzu.vmware.com.2.7.1",
            "PackageInstall wl-vsphere-csi",
            "Package own.example.com.1.0.0",
            "Secret wl-own-data-values from dev/own",
            "PackageInstall wl-own",
            "Package metrics-server.tanzu.vmware.com.0.6.2",
            "PackageInstall wl-metrics-server",
        ]
    );
    let alone: Vec<Option<&str>> = second.steps.iter().map(|step| step.alone.as_deref()).collect();
    assert_eq!(alone[..5], [None; 5], "what fails of the core stops those after it");
    assert_eq!(alone[5..], [Some("own"), Some("own"), Some("own"), Some("metrics-server"), Some("metrics-server")]);
    place.write(&second.steps);
    assert_eq!(reason(&place.told()), "PackageNotReady", "written is not well");

    place.settle();
    let last = place.told();
    let patch = r#"{"metadata":{"annotations":{"tkg.tanzu.vmware.com/paused":null,"windlass.dev/keep-paused":null}},"spec":{"paused":false}}"#;
    assert_eq!((told(&last.steps), reason(&last)), (vec![format!("Cluster dev/wl {patch}")], ""));
    assert_eq!(
        conditions(&last),
        [
            "Kapp-Controller-ReconcileSucceeded True ReconcileSucceeded",
            "Antrea-ReconcileSucceeded True ReconcileSucceeded",
            "Vsphere-Csi-ReconcileSucceeded True ReconcileSucceeded",
            "Own-ReconcileSucceeded True ReconcileSucceeded",
            "Metrics-Server-ReconcileSucceeded True ReconcileSucceeded",
            "PackagesReady True AllWell",
            "Stalled False Moving",
        ]
    );
    place.cluster = cluster(|value| value["metadata"]["finalizers"] = json!([FINALIZER]));
    assert!(place.told().steps.is_empty(), "planning again changes nothing");
}

/// All is in and well, and the cluster is held.
fn brought() -> Place {
    let mut place = place();
    for _ in 0..4 {
        let steps = place.look().steps;
        if matches!(steps.first(), Some(Step { write: Write::Patch { .. }, .. })) {
            break;
        }
        place.write(&steps);
        place.settle();
        if place.workload == Workload::WithoutKinds {
            place.with_kinds();
        }
    }
    assert_eq!(reason(&place.told()), "");
    place
}

fn held(change: impl FnOnce(&mut Value)) -> Subject {
    cluster(|value| {
        value["metadata"]["finalizers"] = json!([FINALIZER]);
        value["metadata"]["annotations"]["tkg.tanzu.vmware.com/paused"] = NEW.into();
        value["spec"]["paused"] = true.into();
        change(value);
    })
}

#[test]
fn only_our_own_hold_ends() {
    let mut place = brought();
    place.cluster = held(|value| value["metadata"]["annotations"]["windlass.dev/keep-paused"] = "".into());
    let marks = r#"{"metadata":{"annotations":{"tkg.tanzu.vmware.com/paused":null,"windlass.dev/keep-paused":null}}}"#;
    assert_eq!(told(&place.look().steps), [format!("Cluster dev/wl {marks}")], "the pause of somebody else stays");
    place.cluster = held(|value| {
        let annotations = value["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove("tkg.tanzu.vmware.com/paused");
    });
    assert!(place.look().steps.is_empty(), "a pause without our mark is not ours");
    place.cluster = held(|value| value["metadata"]["annotations"]["tkg.tanzu.vmware.com/paused"] = "v1.26.5".into());
    let other = place.look();
    assert_eq!((told(&other.steps), reason(&other)), (vec![], "HeldForAnother"));
}

fn fail(place: &mut Place, name: &str) {
    let Workload::Reachable { installs, .. } = &mut place.workload else { panic!() };
    let status = installs.get_mut(name).unwrap().install.as_mut().unwrap().status.as_mut().unwrap();
    status.conditions = serde_json::from_value(json!([{"type": "ReconcileFailed", "status": "True"}])).unwrap();
    status.useful_error_message = Some("kapp: Error: no image".to_owned());
}

#[test]
fn a_core_package_that_fails_holds_the_machines_and_in_the_end_says_how_they_could_go_on() {
    let mut place = brought();
    fail(&mut place, "wl-vsphere-csi");
    let failed = place.told();
    assert_eq!((told(&failed.steps), reason(&failed), failed.stalled), (vec![], "PackageFailed", false));
    place.now += SignedDuration::from_mins(29);
    assert!(!place.told().stalled);
    place.now += SignedDuration::from_mins(1);
    let stalled = place.told();
    assert!(stalled.stalled && stalled.steps.is_empty(), "no deadline opens the gate");
    let message = &stalled.status.conditions.iter().find(|it| it.type_ == "Stalled").unwrap().message;
    assert_eq!(
        message,
        "the package vsphere-csi has failed: kapp: Error: no image, and that for more than 30 min; way out: repair what it says; \
         PackageInstall tkg-system/wl-vsphere-csi is tried again by itself; to let the machines go on without it: \
         kubectl -n dev patch cluster wl --type=merge -p \
         '{\"metadata\":{\"annotations\":{\"tkg.tanzu.vmware.com/paused\":null}},\"spec\":{\"paused\":false}}'; to give the upgrade up while \
         no machine is new: windlass abort wl -n dev"
    );
    place.settle();
    let well = place.told();
    assert_eq!((well.steps.len(), well.stalled), (1, false));
}

#[test]
fn a_package_that_was_added_and_fails_holds_nobody() {
    let mut place = brought();
    fail(&mut place, "wl-own");
    let failed = place.told();
    assert_eq!((failed.steps.len(), reason(&failed)), (1, ""));
    assert!(conditions(&failed).contains(&"Own-ReconcileFailed True ReconcileFailed".to_owned()));
    place.values.get_mut(&Reference::secret("own")).unwrap().secret = Err("Secret own is not there".to_owned());
    let missing = place.told();
    assert!(conditions(&missing).contains(&"Own-ReconcileFailed True ValuesAwaited".to_owned()), "{missing:?}");
    assert_eq!(missing.steps.len(), 1);
}

/// What is said, and that nothing is written behind it.
fn check_stops(change: impl FnOnce(&mut Place), wanted: &str, steps: usize) {
    let mut place = place();
    place.write(&place.look().steps);
    place.settle();
    place.with_kinds();
    change(&mut place);
    let stopped = place.look();
    assert_eq!((reason(&stopped), stopped.steps.len()), (wanted, steps), "{:?}", told(&stopped.steps));
}

#[test]
fn what_a_core_package_lacks_keeps_those_after_it_from_being_written() {
    let provider = |place: &mut Place| place.values.keys().last().unwrap().clone();
    check_stops(
        |place| {
            let provider = provider(place);
            place.values.get_mut(&provider).unwrap().secret = Err("it has no status.secretRef".to_owned());
        },
        "ValuesAwaited",
        0,
    );
    check_stops(|place| drop(place.packages.remove("antrea.tanzu.vmware.com.1.9.0")), "PackageMissing", 0);
    check_stops(|place| drop(place.packages.remove("vsphere-csi.tanzu.vmware.com.2.7.1")), "PackageMissing", 3);
    check_stops(|place| place.workload = Workload::Unreachable { why: "no".to_owned() }, "WorkloadUnreachable", 0);
    check_stops(|place| place.cluster.provisioned = false, "NoWorkloadApi", 0);
    check_stops(|place| place.bootstrap = bootstrap("cni: {refName: antrea}", |_| {}), "Unreadable", 0);
}

#[test]
fn no_package_is_touched_while_somebody_has_not_let_go_of_a_cluster_that_is_held() {
    let mut place = place();
    place.moving = Some("MachineDeployment dev/wl-a");
    let waits = place.told();
    assert_eq!((told(&waits.steps), reason(&waits)), (vec![], "PauseAwaited"));
    let why = "MachineDeployment dev/wl-a has not said yet that it is paused";
    assert!(waits.blocked.unwrap().to_string().starts_with(why));
    // What is in stays in, and the hold ends: there is nothing left that would have to be quiet.
    let mut place = brought();
    place.moving = Some("MachineDeployment dev/wl-a");
    assert_eq!(reason(&place.look()), "");
}

#[test]
fn a_cluster_says_what_its_topology_says_of_its_network_before_anything_else_is_written_to_it() {
    let mut place = brought();
    place.cluster.network = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    place.cluster.finalizers.clear();
    assert_eq!(told(&place.look().steps), [r#"Cluster dev/wl {"metadata":{"annotations":{"a":"b"}}}"#]);
}

#[test]
fn a_package_that_goes_back_with_its_release_is_told_that_this_is_meant() {
    let mut place = brought();
    let Workload::Reachable { installs, .. } = &mut place.workload else { panic!() };
    let antrea = installs.get_mut("wl-antrea").unwrap().install.as_mut().unwrap();
    antrea.status.as_mut().unwrap().last_attempted_version = Some("1.10.0".to_owned());
    let steps = place.look().steps;
    let [Step { write: Write::Apply { object }, .. }] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(object["metadata"]["annotations"]["packaging.carvel.dev/downgradable"], "");
}

#[test]
fn values_that_changed_are_copied_again_and_what_is_outside_of_the_release_is_told() {
    let mut place = brought();
    let provider = place.values.keys().last().unwrap().clone();
    place.values.get_mut(&provider).unwrap().secret = Ok(("wl-antrea-data-values".to_owned(), "digest-9".to_owned()));
    assert_eq!(told(&place.look().steps), ["Secret wl-antrea-data-values from dev/wl-antrea-data-values"]);
    assert_eq!(reason(&place.look()), "PackageNotReady", "and machines wait for what comes of them");
    place.listed.retain(|listed| !listed.name.starts_with("own."));
    let told = place.look();
    let outside = told.status.conditions.iter().find(|it| it.type_ == "PackagesOutsideRelease").unwrap();
    assert!(
        outside.message.starts_with("the release has no version of own.example.com.1.0.0: they stay"),
        "{outside:?}"
    );
}

#[test]
fn a_network_of_somebody_else_and_the_management_cluster_are_left_alone() {
    let mut place = brought();
    place.bootstrap.metadata.annotations =
        Some(BTreeMap::from([("tkg.tanzu.vmware.com/unmanaged-cni".to_owned(), String::new())]));
    fail(&mut place, "wl-antrea");
    assert_eq!(reason(&place.look()), "", "nobody waits for it");
    let mut place = brought();
    place.cluster.management = true;
    place.kapp = Installed::default();
    assert_eq!(reason(&place.look()), "", "its kapp-controller is there already");
}

#[test]
fn what_was_told_of_a_package_stands_while_its_cluster_does_not_answer() {
    let mut place = brought();
    place.workload = Workload::Unreachable { why: "no route".to_owned() };
    let silent = place.told();
    assert!(conditions(&silent).contains(&"Antrea-ReconcileSucceeded True ReconcileSucceeded".to_owned()));
    assert!(conditions(&silent).contains(&"PackagesReady False WorkloadUnreachable".to_owned()));
}

#[test]
fn a_cluster_with_added_packages_is_kept_for_them_and_copies_belong_to_the_bootstrap() {
    let mut place = place();
    place.cluster.finalizers.clear();
    place.bootstrap.metadata.finalizers = None;
    let provider = place.values.keys().last().unwrap().clone();
    place.values.get_mut(&provider).unwrap().metadata["ownerReferences"] = json!([{"uid": "cluster-uid"}]);
    let steps = told(&place.look().steps);
    assert!(steps[0].starts_with("AntreaConfig dev/wl-antrea-package"), "{steps:?}");
    assert!(
        steps[0].contains(r#""uid":"bootstrap-uid""#) && steps[0].contains(r#"{"uid":"cluster-uid"}"#),
        "{steps:?}"
    );
    assert_eq!(steps[1], format!(r#"Cluster dev/wl {{"metadata":{{"finalizers":["{FINALIZER}"]}}}}"#));
    assert_eq!(steps[2], format!(r#"ClusterBootstrap dev/wl {{"metadata":{{"finalizers":["{FINALIZER}"]}}}}"#));
}

#[test]
fn the_machines_of_a_management_cluster_wait_for_what_makes_it_one() {
    // Not looked at by kapp-controller yet.
    let install = |name: &str| {
        let installed = json!({
            "metadata": {"name": name, "namespace": "tkg-system"},
            "spec": {
                "packageRef": {
                    "refName": format!("{name}.tanzu.vmware.com"), "versionSelection": {"constraints": "0.28.1"},
                },
            },
        });
        Installed { install: serde_json::from_value(installed).unwrap(), ..Installed::default() }
    };
    let put = |place: &mut Place, name: &str| {
        let Workload::Reachable { installs, .. } = &mut place.workload else { panic!() };
        installs.insert(name.to_owned(), install(name));
    };
    // In a workload cluster nobody waits for it: it is not to be there at all.
    let mut place = brought();
    put(&mut place, "addons-manager");
    assert_eq!(reason(&place.look()), "");
    place.cluster.management = true;
    place.kapp = Installed::default();
    let waits = place.look();
    assert_eq!((reason(&waits), told(&waits.steps)), ("PackageNotReady", vec![]));
    let why = waits.blocked.unwrap().to_string();
    assert_eq!(
        why,
        "the package addons-manager is not ready: reconciling; what makes this a management cluster comes first"
    );
    place.settle();
    let well = place.look();
    assert_eq!((reason(&well), well.steps.len()), ("", 1), "the hold ends");
    fail(&mut place, "addons-manager");
    assert_eq!(reason(&place.look()), "PackageFailed");
    // Its core packages do not wait: management packages need a network themselves.
    let Workload::Reachable { installs, .. } = &mut place.workload else { panic!() };
    installs.remove("wl-antrea");
    let steps = place.look().steps;
    assert_eq!(told(&steps), ["PackageInstall wl-antrea"]);
    place.write(&steps);
    place.settle();
    // What people have added to it is not waited for.
    put(&mut place, "shop");
    assert_eq!(reason(&place.look()), "");
}
