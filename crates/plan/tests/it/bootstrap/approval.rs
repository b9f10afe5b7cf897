//! An upgrade of a cluster of a class that has to be approved: what is approved, and when it begins.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_plan::bootstrap::approval::{Considering, May, ended, may_begin};
use windlass_plan::bootstrap::course::Course;
use windlass_plan::bootstrap::envelope::{ClassEnvelope, Enclosing};
use windlass_plan::bootstrap::{Copies, Settled, Settling, Step, Subject, Write, settle};
use windlass_plan::step::Place;

use super::{NEW, OLD};

const OLD_KUBERNETES: &str = "v1.24.9+vmware.1";
const NEW_KUBERNETES: &str = "v1.25.7+vmware.2";
const ANTREA_OLD: &str = "antrea.tanzu.vmware.com.1.7.2";
const ANTREA_NEW: &str = "antrea.tanzu.vmware.com.1.9.0";

/// All that an envelope is made of, and what decides whether the upgrade begins.
struct Known {
    cluster: Value,
    release: Value,
    templates: Value,
    bootstrap: Value,
    control_plane: &'static str,
    latest: Option<Value>,
}

impl Known {
    /// A cluster of the old release that is asked to have the new one, where that has to be approved.
    fn new() -> Self {
        let entry = |release: &str, image: &str| json!({"labels": {"run.tanzu.vmware.com/tkr": release, "run.tanzu.vmware.com/os-image": image}});
        let template = |name: &str, kapp: &str, antrea: &str| {
            json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrapTemplate",
                "metadata": {"name": name, "namespace": "tkg-system"},
                "spec": {
                    "kapp": {"refName": format!("kapp-controller.tanzu.vmware.com.{kapp}"), "valuesFrom": {"inline": {"a": 1}}},
                    "cni": {"refName": antrea},
                },
            })
        };
        Self {
            cluster: json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {
                    "name": "wl", "namespace": "dev", "uid": "cluster-uid", "resourceVersion": "7",
                    "labels": {"run.tanzu.vmware.com/tkr": NEW},
                    "annotations": {"windlass.dev/approval": "required", "tkg.tanzu.vmware.com/paused": NEW},
                },
                "spec": {"paused": true, "topology": {
                    "classRef": {"name": "a"}, "version": NEW_KUBERNETES,
                    "controlPlane": {"replicas": 3},
                    "workers": {"machineDeployments": [
                        {"name": "md-0", "class": "worker", "replicas": 2}, {"name": "md-1", "class": "worker"},
                    ]},
                    "variables": [
                        {"name": "size", "value": "large"},
                        {"name": "TKR_DATA", "value": {
                            (OLD_KUBERNETES): entry(OLD, "photon-1"), (NEW_KUBERNETES): entry(NEW, "photon-2"),
                        }},
                    ],
                }},
                "status": {"initialization": {"controlPlaneInitialized": true}},
            }),
            release: json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease", "metadata": {"name": NEW},
                "spec": {
                    "version": "v1.25.7+vmware.2-tkg.1", "kubernetes": {"version": NEW_KUBERNETES},
                    "bootstrapPackages": [{"name": "kapp-controller.tanzu.vmware.com.0.45.2"}, {"name": ANTREA_NEW}],
                },
            }),
            templates: json!({OLD: template(OLD, "0.41.5", ANTREA_OLD), NEW: template(NEW, "0.45.2", ANTREA_NEW)}),
            bootstrap: json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap",
                "metadata": {"name": "wl", "namespace": "dev", "uid": "bootstrap-uid", "resourceVersion": "9"},
                "spec": {
                    "kapp": {"refName": "kapp-controller.tanzu.vmware.com.0.41.5", "valuesFrom": {"inline": {"a": 1}}},
                    "cni": {"refName": ANTREA_OLD},
                },
                "status": {"resolvedTKR": OLD, "conditions": []},
            }),
            control_plane: OLD_KUBERNETES,
            latest: None,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut known = Self::new();
        change(&mut known);
        known
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        self.cluster["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn read<T>(&self, seen: impl FnOnce(&Considering<'_>) -> T) -> T {
        let cluster: Cluster = serde_json::from_value(self.cluster.clone()).unwrap();
        let subject = Subject::of(&cluster).unwrap().unwrap();
        let release: TanzuKubernetesRelease = serde_json::from_value(self.release.clone()).unwrap();
        let templates: BTreeMap<String, ClusterBootstrapTemplate> =
            serde_json::from_value(self.templates.clone()).unwrap();
        let bootstrap: ClusterBootstrap = serde_json::from_value(self.bootstrap.clone()).unwrap();
        let control_plane = self.control_plane.parse().unwrap();
        let latest: Option<ClusterUpdate> = self.latest.clone().map(|it| serde_json::from_value(it).unwrap());
        let enclosing = Enclosing {
            cluster: &cluster,
            subject: &subject,
            release: Some(&release),
            templates: &templates,
            bootstrap: Some(&bootstrap),
        };
        seen(&Considering { enclosing, control_plane: Some(&control_plane), latest: latest.as_ref() })
    }

    fn envelope(&self) -> ClassEnvelope {
        self.read(|seen| ClassEnvelope::of(&seen.enclosing).unwrap())
    }

    fn digest(&self) -> String {
        self.envelope().digest()
    }

    /// What keeps it, in one word; `begins` or `goes on`, if nothing does.
    fn may(&self) -> String {
        self.read(|seen| match may_begin(seen) {
            May::GoOn => "goes on".to_owned(),
            May::Begin(_) => "begins".to_owned(),
            May::Wait(blocked) => blocked.reason().to_owned(),
        })
    }

    /// The record of it, as it is made.
    fn recorded(&self) -> Value {
        let May::Begin(spec) = self.read(may_begin) else { panic!("{}", self.may()) };
        json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate", "metadata": {"name": "wl-1"}, "spec": spec,
            "status": {"state": "Running"}})
    }
}

#[test]
fn what_is_approved_is_what_the_release_says_and_not_what_is_its_owners() {
    let first = Known::new().digest();
    let same = |what: &str, change: fn(&mut Known)| assert_eq!(Known::with(change).digest(), first, "{what}");
    same("as many machines as ever", |it| it.cluster["spec"]["topology"]["controlPlane"]["replicas"] = json!(5));
    same("other values of the owner", |it| it.cluster["spec"]["topology"]["variables"][0]["value"] = json!("small"));
    same("the hold, and who has decided what", |it| it.cluster["metadata"]["annotations"] = json!({}));
    same("another state of the same objects", |it| it.bootstrap["metadata"]["resourceVersion"] = json!("10"));
    same("inline values, which may be secret", |it| {
        it.bootstrap["spec"]["kapp"]["valuesFrom"]["inline"] = json!({"b": 2});
    });
    same("its packages are written, and not yet said to be those of the release", |it| {
        it.bootstrap["spec"]["kapp"]["refName"] = json!("kapp-controller.tanzu.vmware.com.0.45.2");
        it.bootstrap["spec"]["cni"]["refName"] = json!(ANTREA_NEW);
    });
    let other = |what: &str, change: fn(&mut Known)| assert_ne!(Known::with(change).digest(), first, "{what}");
    other("another cluster of that name", |it| it.cluster["metadata"]["uid"] = json!("other"));
    other("the release says something else", |it| it.release["spec"]["kubernetes"]["imageRepository"] = json!("there"));
    other("another image", |it| {
        let labels = &mut it.cluster["spec"]["topology"]["variables"][1]["value"][NEW_KUBERNETES]["labels"];
        labels["run.tanzu.vmware.com/os-image"] = json!("photon-3");
    });
    other("another network", |it| it.templates[NEW]["spec"]["cni"]["refName"] = json!("antrea.tanzu.vmware.com.1.9.1"));
    other("a package that somebody has added", |it| {
        it.bootstrap["spec"]["additionalPackages"] = json!([{"refName": "mine.example.com.1.0.0"}]);
    });
    other("a pool more", |it| {
        let pools = &mut it.cluster["spec"]["topology"]["workers"]["machineDeployments"];
        pools.as_array_mut().unwrap().push(json!({"name": "md-2", "class": "worker"}));
    });
    other("a pool that is held back", |it| {
        let held = json!({"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}});
        it.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] = held;
    });
    other("another class", |it| it.cluster["spec"]["topology"]["classRef"]["name"] = json!("b"));
    other("from another release", |it| it.bootstrap["status"]["resolvedTKR"] = json!("v1.24.8---vmware.1-tkg.1"));
}

#[test]
fn the_machines_that_may_be_replaced_are_those_that_nobody_holds_back() {
    let replaced = |key: &str| {
        let known = Known::with(|it| {
            it.cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] =
                json!({"annotations": {key: ""}});
        });
        known.envelope().replaced.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(replaced("example.com/a"), "control-plane workers/md-0 workers/md-1");
    assert_eq!(replaced("topology.cluster.x-k8s.io/defer-upgrade"), "control-plane workers/md-1");
    assert_eq!(replaced("topology.cluster.x-k8s.io/hold-upgrade-sequence"), "control-plane");
}

#[test]
fn an_upgrade_begins_when_just_that_is_approved_and_goes_on_from_its_record() {
    let digest = Known::new().digest();
    assert_eq!(Known::new().may(), "ApprovalNeeded");
    assert_eq!(Known::new().annotated("windlass.dev/approved", "sha256:of-another").may(), "ApprovalNeeded");
    assert_eq!(Known::new().annotated("windlass.dev/rejected", "sha256:of-another").may(), "ApprovalNeeded");
    assert_eq!(Known::new().annotated("windlass.dev/rejected", &digest).may(), "Rejected");
    let approved = || Known::new().annotated("windlass.dev/approved", &digest);
    assert_eq!(approved().may(), "begins");
    let record = approved().recorded();
    assert_eq!(record["spec"]["envelopeDigest"], json!(digest));
    let ends = [&record["spec"]["from"], &record["spec"]["to"]].map(|end| [&end["distribution"], &end["kubernetes"]]);
    assert_eq!(ends, [["v1.24.9+vmware.1-tkg.1", OLD_KUBERNETES], ["v1.25.7+vmware.2-tkg.1", NEW_KUBERNETES]]);
    // What has begun was approved, whoever takes that back; and what it would be by now was not, if that is something else.
    let begun = |change: fn(&mut Known)| {
        let mut known = Known::new();
        known.latest = Some(record.clone());
        change(&mut known);
        known.may()
    };
    assert_eq!(begun(|_| {}), "goes on");
    assert_eq!(begun(|it| it.release["spec"]["kubernetes"]["imageRepository"] = json!("there")), "ApprovalNeeded");
    assert_eq!(begun(|it| it.latest.as_mut().unwrap()["status"]["state"] = json!("Aborted")), "ApprovalNeeded");
    // The next one has the next number.
    let mut again = approved();
    again.latest = Some(record.clone());
    again.latest.as_mut().unwrap()["status"]["state"] = json!("Aborted");
    assert_eq!(again.recorded()["spec"]["ordinal"], 2);
}

#[test]
fn nobody_is_asked_about_what_is_no_upgrade_or_goes_back() {
    let free = |change: fn(&mut Known), may: &str| assert_eq!(Known::with(change).may(), may);
    free(|it| it.cluster["metadata"]["annotations"] = json!({}), "goes on");
    free(|it| it.bootstrap["status"]["resolvedTKR"] = json!(NEW), "goes on");
    free(|it| it.cluster["status"] = json!({}), "goes on");
    // The packages are those of the new release, and all machines have the old one, which is asked for again.
    let back = |it: &mut Known| {
        it.cluster["metadata"]["labels"]["run.tanzu.vmware.com/tkr"] = json!(OLD);
        it.cluster["spec"]["topology"]["version"] = json!(OLD_KUBERNETES);
        it.bootstrap["status"]["resolvedTKR"] = json!(NEW);
    };
    free(back, "goes on");
    // What the control plane is told to have, nobody can make up: machines have the new one by now.
    let late = |it: &mut Known| {
        it.cluster["metadata"]["labels"]["run.tanzu.vmware.com/tkr"] = json!(OLD);
        it.cluster["spec"]["topology"]["version"] = json!(OLD_KUBERNETES);
        it.bootstrap["status"]["resolvedTKR"] = json!(NEW);
        it.release["metadata"]["name"] = json!(OLD);
        it.control_plane = NEW_KUBERNETES;
    };
    free(late, "ApprovalNeeded");
}

#[test]
fn what_was_reviewed_is_all_that_begins_also_where_nobody_has_to_approve() {
    let digest = Known::new().digest();
    let reviewed = |text: &str, required: bool| {
        let mut known = Known::new().annotated("windlass.dev/reviewed-envelope", text);
        if !required {
            known.cluster["metadata"]["annotations"]["windlass.dev/approval"] = json!(null);
            known.cluster["metadata"]["annotations"].as_object_mut().unwrap().remove("windlass.dev/approval");
        }
        known.may()
    };
    assert_eq!(reviewed(&format!("{NEW} {digest} sha256:r"), false), "goes on");
    assert_eq!(reviewed(&format!("{NEW} sha256:other sha256:r"), false), "ReviewedOtherwise");
    assert_eq!(reviewed(&format!("{OLD} sha256:other sha256:r"), false), "goes on", "that was about another release");
    assert_eq!(reviewed(&format!("{NEW} {digest}"), true), "ApprovalNeeded");
    assert_eq!(reviewed(&format!("{NEW} sha256:other"), true), "ReviewedOtherwise");
}

#[test]
fn what_is_written_when_packages_are_chosen_lies_in_the_envelope_and_nothing_else_does() {
    let known = Known::new();
    let envelope = known.envelope();
    known.read(|seen| {
        let Enclosing { subject, release, templates, bootstrap, .. } = seen.enclosing;
        let settling = Settling { cluster: subject, release, templates, bootstrap, copies: &Copies::new() };
        let Settled::Write(steps) = settle(&settling) else { panic!() };
        assert!(!steps.is_empty() && steps.iter().all(|step| envelope.allows(step)), "{steps:#?}");
    });
    let install = |name: &str, version: &str| Step {
        place: Place::Workload,
        write: Write::Apply {
            object: json!({"kind": "PackageInstall", "metadata": {"name": name}, "spec": {
                "packageRef": {"versionSelection": {"constraints": version}}}}),
        },
        alone: None,
        why: String::new(),
    };
    assert!(envelope.allows(&install("wl-antrea", "1.9.0")));
    assert!(!envelope.allows(&install("wl-antrea", "1.7.2")), "another version");
    assert!(!envelope.allows(&install("wl-calico", "1.9.0")), "another package");
    let outside = Step { place: Place::Management, ..install("wl-antrea", "1.9.0") };
    assert!(!envelope.allows(&outside), "in the other cluster");
}

#[test]
fn a_record_ends_when_the_cluster_is_what_it_was_to_be_or_was() {
    let digest = Known::new().digest();
    let record: ClusterUpdate =
        serde_json::from_value(Known::new().annotated("windlass.dev/approved", &digest).recorded()).unwrap();
    let check = |release: &str, version: &str, state: Option<UpdateState>| {
        let mut known = Known::new();
        known.cluster["metadata"]["labels"]["run.tanzu.vmware.com/tkr"] = json!(release);
        known.cluster["metadata"]["annotations"] = json!({});
        known.cluster["metadata"]["generation"] = json!(3);
        (known.cluster["spec"]["paused"], known.cluster["spec"]["topology"]["version"]) =
            (json!(false), json!(version));
        known.cluster["status"]["conditions"] = json!([{"type": "TopologyReconciled", "status": "True",
            "observedGeneration": 3, "reason": "", "message": "", "lastTransitionTime": ""}]);
        known.bootstrap["status"] = json!({"resolvedTKR": OLD, "conditions": [{"type": "PackagesReady", "status": "True",
            "reason": "", "message": "", "lastTransitionTime": ""}]});
        known.read(|seen| {
            let course = Course { cluster: seen.enclosing.cluster, bootstrap: seen.enclosing.bootstrap };
            assert_eq!(ended(&course, &record).map(|(state, _)| state), state, "{release}");
        });
    };
    check(OLD, OLD_KUBERNETES, Some(UpdateState::Aborted));
    check(NEW, NEW_KUBERNETES, None);
    check("v1.25.8---vmware.1-tkg.1", "v1.25.8+vmware.1", Some(UpdateState::Aborted));
}
