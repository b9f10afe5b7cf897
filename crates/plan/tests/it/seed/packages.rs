//! Add-ons: where they come from, how they are brought in, and when.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::name::AddonName;
use windlass_plan::inventory::{AddonObject, UpdateRecordState, Workload};
use windlass_plan::package::{PackageState, states as package_states};
use windlass_plan::planner::{Planned, Record};
use windlass_plan::release::{AddonRelease, Release};
use windlass_plan::report::{Assessment, StageState};
use windlass_plan::step::{Action, Place, Stage};

use super::{begins, ends, reasons, states, steps_of, until};
use crate::fake::Fake;
use crate::sample::{image, target};
use crate::story::{checked_plan, failed_update, running_cluster};

fn addons(fake: &mut Fake) -> &mut std::collections::BTreeMap<AddonName, Vec<AddonObject>> {
    let Workload::Reachable { addons, .. } = &mut fake.inventory.workload else { panic!("no API") };
    addons
}

fn name(text: &str) -> AddonName {
    AddonName::new(text).unwrap()
}

fn release(version: &str) -> Release {
    Release::from_image(&image(version)).unwrap()
}

fn objects<'r>(release: &'r Release, kind: &str) -> Vec<&'r Value> {
    let all = release.addons.values().flat_map(|addon: &AddonRelease| &addon.objects);
    let found: Vec<&Value> = all.filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "there is no {kind}");
    found
}

#[test]
pub fn add_ons_are_kept_as_they_should_be_also_without_an_update() {
    let mut fake = running_cluster(1, 1);
    addons(&mut fake).remove(&name("pvcsi"));
    addons(&mut fake).get_mut(&name("coredns")).unwrap()[0].live["spec"]["replicas"] = 9.into();
    let planned = checked_plan(&fake);
    assert_eq!(planned.record, None, "nothing is rolled");
    let roles: Vec<&str> = planned.steps.iter().map(|step| step.role.as_str()).collect();
    assert_eq!(
        roles,
        [
            "addons/applied",
            "addon/coredns/Deployment",
            "addon/pvcsi/ConfigMap/vmware-system-csi/pvcsi-settings",
            "addon/pvcsi/DaemonSet"
        ]
    );
    ends(&mut fake);
}

#[test]
pub fn add_ons_are_kept_as_they_should_be_also_after_an_update_that_failed() {
    let mut fake = failed_update();
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    let coredns = &mut addons(&mut fake).get_mut(&name("coredns")).unwrap()[0];
    coredns.live["spec"]["replicas"] = 9.into();
    let planned = checked_plan(&fake);
    assert_eq!(planned.report.assessment, Assessment::UpdateFailed);
    let roles: Vec<&str> = planned.steps.iter().map(|step| step.role.as_str()).collect();
    assert_eq!(roles, ["addon/coredns/Deployment"], "and nothing else is done");
}

#[test]
pub fn add_ons_are_read_from_the_image_of_the_distribution() {
    let names: Vec<String> = release("v1.16.7").addons.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["authsvc", "coredns", "kube-proxy", "pvcsi"]);
}

#[test]
pub fn coredns_and_kube_proxy_have_the_versions_of_the_distribution() {
    let release = release("v1.16.7");
    assert_eq!(release.addons[&name("coredns")].version, "v1.6.2_for_v1.16.7");
    assert_eq!(release.addons[&name("kube-proxy")].version, "v1.16.7+vmware.1");
}

#[test]
pub fn add_ons_come_before_machines() {
    let mut fake = running_cluster(3, 1);
    fake.target = target(3, 1, "v1.16.7");
    let story = ends(&mut fake);
    let [packages, job, pool] = ["packages     apply", "create Job", "workers      apply MachineDeployment"]
        .map(|line| story.find(line).unwrap());
    assert!(packages < job && job < pool, "{story}");
}

#[test]
pub fn a_new_distribution_creates_and_updates_the_objects_of_add_ons() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let planned = until(&mut fake, |_, planned| planned.record.is_none() && !planned.steps.is_empty());
    let mut applied: Vec<(&str, &str)> =
        steps_of(&planned, Stage::Packages).iter().map(|step| (step.action.verb(), step.action.kind())).collect();
    applied.sort_unstable();
    assert_eq!(
        applied,
        [
            ("apply", "ConfigMap"),
            ("apply", "DaemonSet"),
            ("apply", "DaemonSet"),
            ("apply", "Deployment"),
            ("apply", "Deployment")
        ],
        "what differs and the record of it, and not the ConfigMap that stays as it is"
    );
}

#[test]
pub fn daemon_sets_replace_no_pod_that_runs() {
    let (old, new) = (release("v1.15.5"), release("v1.16.7"));
    for object in objects(&new, "DaemonSet") {
        assert_eq!(object["spec"]["updateStrategy"]["type"], "OnDelete", "{}", object["metadata"]["name"]);
    }
    // Nor does it get a pod from the new template when one is lost: each distribution has its own.
    let names = |release: &Release| -> Vec<Value> {
        objects(release, "DaemonSet").iter().map(|object| object["metadata"]["name"].clone()).collect()
    };
    assert!(names(&old).iter().all(|name| !names(&new).contains(name)));
}

#[test]
pub fn deployments_have_one_pod_more_and_none_less_while_they_roll() {
    for object in objects(&release("v1.16.7"), "Deployment") {
        let strategy = &object["spec"]["strategy"];
        assert_eq!(strategy["type"], "RollingUpdate");
        assert_eq!(strategy["rollingUpdate"]["maxUnavailable"], 0);
        assert_eq!(strategy["rollingUpdate"]["maxSurge"], 1);
    }
}

#[test]
pub fn pods_of_deployments_run_only_on_nodes_that_have_their_image() {
    for object in objects(&release("v1.16.7"), "Deployment") {
        let selector = &object["spec"]["template"]["spec"]["nodeSelector"];
        assert_eq!(selector["run.tanzu.vmware.com/kubernetesDistributionVersion"], "v1.16.7_vmware.1-guest.1");
    }
}

/// An image with one more object in an add-on.
fn image_with(version: &str, object: &str) -> Release {
    let key = format!("{}legacy", annotation::ADDON_PREFIX);
    let mut image = image(version);
    let value = serde_json::json!({"type": "inline", "value": object}).to_string();
    image.metadata.annotations.as_mut().unwrap().insert(key, value);
    Release::from_image(&image).unwrap()
}

fn deleted(planned: &Planned) -> Vec<String> {
    let in_cluster = planned.steps.iter().filter(|step| step.place == Place::Workload);
    let deletes = in_cluster.filter(|step| matches!(step.action, Action::Delete { .. }));
    deletes.map(|step| format!("{}/{}", step.action.kind(), step.action.name())).collect()
}

/// A cluster with a release that has one more object goes to one without; and what is deleted beside `DaemonSets` on the way.
fn check_left(object: &str, wanted: &[&str]) -> Fake {
    let mut fake = running_cluster(1, 1);
    fake.target.release = image_with("v1.15.5", object);
    ends(&mut fake);
    fake.target = target(1, 1, "v1.16.7");
    let story = ends(&mut fake);
    let deletes = story.lines().filter_map(|line| line.strip_prefix("packages     delete ")?.split_once("  "));
    // The copy of the release that it had goes, too.
    let others = ["DaemonSet", "ConfigMap my-tkc-release-"];
    let is_other = |what: &&str| !others.iter().any(|other| what.starts_with(other));
    let deletes: Vec<&str> = deletes.map(|(what, _)| what).filter(is_other).collect();
    assert_eq!(deletes, wanted, "{story}");
    fake
}

const LEFT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: left, namespace: kube-system}}";

#[test]
pub fn objects_that_a_release_does_not_have_any_more_are_removed() {
    let mut fake = check_left(LEFT, &["ConfigMap left"]);
    let Workload::Reachable { applied, .. } = &fake.inventory.workload else { panic!("no API") };
    let recorded: Vec<&str> = applied.as_ref().unwrap().objects.iter().map(|entry| entry.name.as_str()).collect();
    assert!(!recorded.contains(&"left") && recorded.contains(&"pvcsi-settings"), "{recorded:?}");
    // What carries our label and is not on record may be anybody's.
    let mut copy = addons(&mut fake)[&name("pvcsi")][0].clone();
    assert_eq!(copy.live["kind"], "ConfigMap");
    copy.live["metadata"]["name"] = "a-copy".into();
    addons(&mut fake).get_mut(&name("pvcsi")).unwrap().push(copy);
    assert_eq!(deleted(&checked_plan(&fake)), [""; 0]);
}

#[test]
fn what_was_made_anew_by_somebody_else_is_not_removed() {
    let mut fake = running_cluster(1, 1);
    fake.target.release = image_with("v1.15.5", LEFT);
    ends(&mut fake);
    fake.target = target(1, 1, "v1.15.5");
    addons(&mut fake).get_mut(&name("legacy")).unwrap()[0].revision.uid = "uid-of-another".parse().unwrap();
    let story = ends(&mut fake);
    assert!(!story.contains("delete ConfigMap left"), "{story}");
}

#[test]
fn what_others_may_have_put_something_into_stays() {
    check_left("{apiVersion: v1, kind: Namespace, metadata: {name: left}}", &[]);
}

#[test]
fn nothing_is_removed_while_a_node_may_need_it() {
    let mut fake = running_cluster(1, 1);
    fake.target.release = image_with("v1.15.5", LEFT);
    ends(&mut fake);
    fake.target = target(1, 1, "v1.16.7");
    let planned = until(&mut fake, |_, planned| deleted(planned).contains(&"ConfigMap/left".to_owned()));
    assert!(planned.record.is_none());
    let Workload::Reachable { nodes, .. } = &fake.inventory.workload else { panic!("no API") };
    let new = &fake.target.release.distribution;
    assert!(nodes.iter().all(|node| node.distribution.as_ref() == Some(new)), "{nodes:?}");
}

#[test]
fn a_job_of_a_distribution_that_is_gone_is_removed() {
    let job = "
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: kube-system}
spec: {template: {spec: {containers: []}}}
";
    check_left(job, &["Job once-v1.15.5---vmware.1-guest.1"]);
}

#[test]
fn objects_of_a_kind_that_the_next_version_has_no_more_go_before_its_first_machine() {
    let policy = "{apiVersion: policy/v1beta1, kind: PodSecurityPolicy, metadata: {name: restricted}}";
    let mut fake = Fake::new(target(1, 1, "v1.24.9"));
    fake.target.release = image_with("v1.24.9", policy);
    ends(&mut fake);
    fake.target = target(1, 1, "v1.25.7");
    let planned = until(&mut fake, |_, planned| !deleted(planned).is_empty());
    assert_eq!(deleted(&planned), ["PodSecurityPolicy/restricted"]);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"PackageNotReady"), "{planned:?}");
    assert_eq!(fake.inventory.control_plane.job, None, "no machine of the new version was asked for");
    ends(&mut fake);
}

#[test]
pub fn an_add_on_that_somebody_else_brought_in_is_left_to_them() {
    let mut fake = running_cluster(1, 1);
    addons(&mut fake).remove(&name("authsvc"));
    let Workload::Reachable { foreign, .. } = &mut fake.inventory.workload else { panic!("no API") };
    foreign.insert(name("authsvc"), vec!["Deployment/authsvc".to_owned()]);
    fake.target = target(1, 1, "v1.16.7");
    let story = ends(&mut fake);
    assert!(!story.contains("addon/authsvc") && !story.contains("Deployment/authsvc"), "{story}");
    let states = package_states(&fake.target, &fake.inventory).unwrap();
    let unmanaged = PackageState::Unmanaged { object: "Deployment/authsvc".to_owned() };
    assert_eq!(states[&name("authsvc")], unmanaged);
    assert_eq!(fake.inventory.update.as_ref().unwrap().state, UpdateRecordState::Succeeded, "nobody waits for it");
}

#[test]
pub fn nothing_is_applied_while_the_workload_cluster_is_not_there_yet() {
    let mut fake = Fake::new(target(1, 1, "v1.15.5"));
    let planned = until(&mut fake, |fake, _| !fake.inventory.secrets.is_empty());
    assert_eq!(reasons(&planned, Stage::Packages), ["NoWorkloadApi"]);
    assert!(steps_of(&planned, Stage::Packages).is_empty());
    ends(&mut fake);
}

#[test]
pub fn an_add_on_that_is_applied_differs_in_nothing() {
    let fake = running_cluster(1, 1);
    let states = package_states(&fake.target, &fake.inventory).unwrap();
    assert_eq!(states.len(), 4);
    assert!(states.values().all(|state| *state == PackageState::Ready), "{states:?}");
}

#[test]
pub fn an_add_on_that_is_not_well_stops_no_other() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let record = checked_plan(&fake).record.unwrap();
    fake.record(&record);
    addons(&mut fake).get_mut(&name("authsvc")).unwrap()[0].live["status"]["availableReplicas"] = 0.into();
    let planned = checked_plan(&fake);
    assert!(steps_of(&planned, Stage::Packages).len() >= 3, "the others are applied: {:?}", planned.steps);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"PackageNotReady"), "and machines wait for all");
}

#[test]
pub fn a_cluster_that_cannot_be_reached_is_a_reason_to_wait() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let before = std::mem::replace(&mut fake.inventory.workload, Workload::Unreachable { why: "no route".to_owned() });
    let planned = checked_plan(&fake);
    assert_eq!((begins(&planned), planned.steps.len()), (None, 0));
    assert_eq!(reasons(&planned, Stage::Packages), ["WorkloadUnreachable"]);
    assert_eq!(states(&planned)[0], StageState::Waiting);
    fake.inventory.workload = before;
    ends(&mut fake);
}

#[test]
pub fn a_malformed_image_is_no_release() {
    let key = format!("{}pvcsi", annotation::ADDON_PREFIX);
    for value in ["{", r#"{"type":"elsewhere","value":""}"#, r#"{"type":"inline","value":"kind: ["}"#] {
        let mut image = image("v1.16.7");
        image.metadata.annotations.as_mut().unwrap().insert(key.clone(), value.to_owned());
        let refusal = Release::from_image(&image).unwrap_err().to_string();
        assert!(refusal.contains(&key), "{refusal}");
    }
}
