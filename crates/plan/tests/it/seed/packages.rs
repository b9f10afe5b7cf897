//! Add-ons: where they come from, how they are brought in, and when.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::name::AddonName;
use windlass_plan::inventory::{AddonObject, Workload};
use windlass_plan::package::{PackageState, states as package_states};
use windlass_plan::release::{AddonRelease, Release};
use windlass_plan::report::StageState;
use windlass_plan::step::{Action, Stage};

use super::{begins, ends, reasons, states, steps_of, until};
use crate::fake::Fake;
use crate::sample::{image, target};
use crate::story::{checked_plan, running_cluster};

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
        ["addon/coredns/Deployment", "addon/pvcsi/ConfigMap/vmware-system-csi/pvcsi-settings", "addon/pvcsi/DaemonSet"]
    );
    ends(&mut fake);
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
    let planned = until(&mut fake, |_, planned| !planned.steps.is_empty());
    let mut applied: Vec<(&str, &str)> =
        steps_of(&planned, Stage::Packages).iter().map(|step| (step.action.verb(), step.action.kind())).collect();
    applied.sort_unstable();
    assert_eq!(
        applied,
        [("apply", "DaemonSet"), ("apply", "DaemonSet"), ("apply", "Deployment"), ("apply", "Deployment")],
        "what differs, and not the ConfigMap that stays as it is"
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

#[test]
pub fn objects_that_a_release_does_not_have_any_more_are_left_alone() {
    let mut fake = running_cluster(1, 1);
    let mut unused = addons(&mut fake)[&name("pvcsi")][0].clone();
    assert_eq!(unused.live["kind"], "ConfigMap");
    unused.live["metadata"]["name"] = "of-an-earlier-release".into();
    addons(&mut fake).get_mut(&name("pvcsi")).unwrap().push(unused);
    let planned = checked_plan(&fake);
    let deleted = planned.steps.iter().any(|step| matches!(step.action, Action::Delete { .. }));
    assert!(!deleted && planned.record.is_none(), "{:?}", planned.steps);
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
