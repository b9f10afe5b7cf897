//! What the second opinion finds in plans that no planner of ours would make.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_plan::check::{Severity, check};
use windlass_plan::gate::{Gate, Gates};
use windlass_plan::inventory::{AddonObject, Workload};
use windlass_plan::planner::{Planned, plan};
use windlass_plan::step::{Action, Place, Stage, Step};

use crate::fake::Fake;
use crate::gates::{AT_THE_JOB, AT_THE_PACKAGES, AT_THE_POOL};
use crate::story::running_cluster;

/// The plan is well until it is tampered with, and then this is found, which stops it.
fn check_tampered(fake: &Fake, tamper: impl Fn(&mut Planned), id: &str) {
    let input = fake.input();
    let mut planned = plan(&input);
    assert_eq!(check(&input, &planned), []);
    tamper(&mut planned);
    let findings = check(&input, &planned);
    assert!(findings.iter().any(|it| it.id == id && it.severity == Severity::Fatal), "{id} is not in {findings:#?}");
}

/// Changes the first object of a kind that the plan would write.
fn change(planned: &mut Planned, kind: &str, change: impl Fn(&mut Value)) {
    let step = planned.steps.iter_mut().find(|step| step.action.kind() == kind).unwrap();
    match &mut step.action {
        Action::Create { object } | Action::Apply { object, .. } => change(object),
        Action::CreateSecret { .. } | Action::Delete { .. } => panic!("{kind}"),
    }
}

#[test]
fn a_job_that_tries_without_a_bound_is_found_out() {
    let unbounded = |planned: &mut Planned| change(planned, "Job", |job| job["spec"]["backoffLimit"] = 9.into());
    check_tampered(&AT_THE_JOB, unbounded, "C6");
    let doubled = |planned: &mut Planned| change(planned, "Job", |job| job["spec"]["parallelism"] = 2.into());
    check_tampered(&AT_THE_JOB, doubled, "C6");
}

#[test]
fn a_job_of_another_update_is_found_out() {
    let other = |job: &mut Value| job["metadata"]["labels"] = json!({});
    check_tampered(&AT_THE_JOB, |planned| change(planned, "Job", other), "C4");
}

#[test]
fn pods_that_could_start_without_their_image_are_found_out() {
    let anywhere = |object: &mut Value| object["spec"]["template"]["spec"]["nodeSelector"] = json!({});
    check_tampered(&AT_THE_PACKAGES, |planned| change(planned, "DaemonSet", anywhere), "D6");
    check_tampered(&AT_THE_PACKAGES, |planned| change(planned, "DaemonSet", anywhere), "V5");
    check_tampered(&AT_THE_PACKAGES, |planned| change(planned, "Deployment", anywhere), "D6");
    let at_once = |object: &mut Value| object["spec"]["updateStrategy"]["type"] = "RollingUpdate".into();
    check_tampered(&AT_THE_PACKAGES, |planned| change(planned, "DaemonSet", at_once), "D6");
    let before = |object: &mut Value| object["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = 1.into();
    check_tampered(&AT_THE_PACKAGES, |planned| change(planned, "Deployment", before), "D6");
}

#[test]
fn workers_that_run_ahead_are_found_out() {
    let version = |version: &'static str| {
        move |object: &mut Value| object["spec"]["template"]["spec"]["version"] = version.into()
    };
    check_tampered(&AT_THE_POOL, |planned| change(planned, "MachineDeployment", version("v1.17.0")), "V1");
    check_tampered(&AT_THE_POOL, |planned| change(planned, "MachineDeployment", version("v1.16.9")), "D2");
    check_tampered(&AT_THE_POOL, |planned| change(planned, "MachineDeployment", version("v1.14.0")), "V8");
}

fn deletion(found: &AddonObject) -> Step {
    let text = |pointer: &str| found.live.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    Step {
        stage: Stage::Packages,
        role: "addon/stale".to_owned(),
        place: Place::Workload,
        action: Action::Delete {
            api_version: "apps/v1".to_owned(),
            kind: text("/kind"),
            namespace: Some(text("/metadata/namespace")),
            name: text("/metadata/name"),
            expect: found.revision.clone(),
        },
        why: "to see what happens".to_owned(),
    }
}

#[test]
fn deleting_what_is_not_ours_is_found_out() {
    let Workload::Reachable { addons, .. } = &AT_THE_PACKAGES.inventory.workload else { panic!() };
    let proxy = &addons[&"kube-proxy".parse().unwrap()][0];
    // Nodes of its distribution are still there.
    check_tampered(&AT_THE_PACKAGES, |planned| planned.steps.push(deletion(proxy)), "D10");
    let mut other = proxy.clone();
    other.revision.resource_version = "0".to_owned();
    check_tampered(&AT_THE_PACKAGES, |planned| planned.steps.push(deletion(&other)), "D10");
    // It is on record, and the release has it.
    let settings = &addons[&"pvcsi".parse().unwrap()][0];
    assert_eq!(settings.live["kind"], "ConfigMap");
    check_tampered(&AT_THE_PACKAGES, |planned| planned.steps.push(deletion(settings)), "D10");
}

#[test]
fn what_was_not_agreed_on_is_found_out() {
    let elsewhere = |planned: &mut Planned| planned.steps[0].role = "control-plane/9/Machine".to_owned();
    check_tampered(&AT_THE_JOB, elsewhere, "P1");
}

#[test]
fn machines_that_are_touched_beside_a_pool_that_gave_up_are_found_out() {
    let before = plan(&AT_THE_JOB.input()).steps;
    let mut fake = AT_THE_JOB.clone();
    fake.inventory.as_of = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
    let pool = fake.inventory.pools.values_mut().next().unwrap();
    (pool.progress.available, pool.moved_at) = (0, Some(Timestamp::UNIX_EPOCH));
    check_tampered(&fake, |planned| planned.steps.clone_from(&before), "C5");
}

#[test]
fn an_update_that_nobody_asked_for_is_found_out() {
    let mut fake = running_cluster(1, 1);
    fake.target.defaults.node_registration = [("imagePullPolicy".to_owned(), "Always".to_owned())].into();
    let mut unguarded = fake.clone();
    unguarded.gates = Gates::without(&[Gate::Consent]);
    let record = plan(&unguarded.input()).record;
    assert!(record.is_some());
    check_tampered(&fake, |planned| planned.record.clone_from(&record), "P2");
}

#[test]
fn an_update_that_nobody_approved_is_found_out() {
    let mut fake = running_cluster(1, 1);
    fake.target.pools[0].machines.class = "best-effort-large".parse().ok();
    let record = plan(&fake.input()).record;
    assert!(record.is_some());
    fake.inventory.orders.approval.is_required = true;
    fake.inventory.consent = Some("sha256:of-another".to_owned());
    check_tampered(&fake, |planned| planned.record.clone_from(&record), "P2");
}

#[test]
fn what_earlier_releases_left_behind_is_told() {
    let mut fake = AT_THE_JOB.clone();
    let Workload::Reachable { addons, .. } = &mut fake.inventory.workload else { panic!() };
    let mut left = addons[&"authsvc".parse().unwrap()][0].clone();
    left.live["metadata"]["name"] = "old-authsvc".into();
    addons.insert("old".parse().unwrap(), vec![left]);
    let (before, planned) = (plan(&AT_THE_JOB.input()), plan(&fake.input()));
    let told: Vec<&String> =
        planned.report.exemptions.iter().filter(|told| !before.report.exemptions.contains(told)).collect();
    let release = "v1.16.7+vmware.1-guest.1";
    assert_eq!(
        told,
        [&format!("D12: Deployment/old-authsvc of the add-on old is no part of {release}, and stays as it is")]
    );
    assert_eq!(planned.steps, before.steps, "and nothing is done about it");
}
