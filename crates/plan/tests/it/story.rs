//! Whole lives of clusters, as texts that are read before they are committed.
//!
//! `WINDLASS_UPDATE=1 cargo test -p windlass-plan --test it` writes them anew.
#![allow(clippy::disallowed_methods, reason = "a golden is a file")]

use std::fmt::Write;
use std::path::Path;

use windlass_api::name::MachineClassName;
use windlass_plan::check::check;
use windlass_plan::gate::Blocked;
use windlass_plan::inventory::{JobState, UpdateRecordState};
use windlass_plan::planner::{Planned, Record, plan};
use windlass_plan::report::{Assessment, StageState};
use windlass_plan::step::Step;
use windlass_plan::target::{PoolVersion, Target};

use crate::fake::Fake;
use crate::sample::target;

/// More than any of these lives has.
const PLANS_MAX: usize = 300;

/// Plans, does what was planned, lets one thing happen, and plans again, until neither is left. Returns the story.
pub fn live(fake: &mut Fake) -> String {
    let mut story = String::new();
    let mut envelopes = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for _ in 0..PLANS_MAX {
        let planned = checked_plan(fake);
        if fake.inventory.update.as_ref().is_some_and(|record| record.state == UpdateRecordState::Running) {
            envelopes.push(planned.envelope.digest());
        }
        let says = said(&planned);
        for line in says.iter().filter(|line| !before.contains(*line)) {
            writeln!(story, "{line}").unwrap();
        }
        before = says;
        if let Some(record) = &planned.record {
            writeln!(story, "record {}", record_line(record)).unwrap();
            fake.record(record);
        }
        for step in &planned.steps {
            writeln!(story, "{}", step_line(step)).unwrap();
            fake.execute(step);
        }
        match fake.tick() {
            Some(happened) => writeln!(story, "    ... {happened}").unwrap(),
            None if planned.record.is_none() && planned.steps.is_empty() => {
                envelopes.dedup();
                assert!(envelopes.len() <= 1, "every plan of an update has the same envelope: {envelopes:?}");
                return story;
            }
            None => {}
        }
    }
    panic!("it never comes to rest:\n{story}");
}

/// A plan that the second opinion agrees with.
pub fn checked_plan(fake: &Fake) -> Planned {
    let input = fake.input();
    let planned = plan(&input);
    assert_eq!(plan(&input), planned, "same input, same output");
    assert_eq!(check(&input, &planned), [], "{planned:#?}");
    for stage in &planned.report.stages {
        assert!(stage.state != StageState::Waiting || !stage.blocked.is_empty(), "{stage:?} waits silently");
    }
    planned
}

fn record_line(record: &Record) -> String {
    match record {
        Record::Begin { name, from, to, .. } => format!("begin {name}: {} -> {}", from.distribution, to.distribution),
        Record::Resumed => "resumed".to_owned(),
        Record::Succeeded => "succeeded".to_owned(),
        Record::Failed { message } => format!("failed: {message}"),
        Record::Aborted => "aborted".to_owned(),
    }
}

fn step_line(step: &Step) -> String {
    let (stage, verb) = (step.stage.as_str(), step.action.verb());
    format!("{stage:<12} {verb} {} {}  [{}] {}", step.action.kind(), step.action.name(), step.role, step.why)
}

/// What a report says, line by line. A story has only what was not said by the plan before.
fn said(planned: &Planned) -> Vec<String> {
    let Planned { report, .. } = planned;
    let mut lines = vec![format!("{:?}", report.assessment)];
    for stage in &report.stages {
        lines.extend(stage.changes.iter().map(|change| format!("  will change {change}")));
        let (word, state) = (stage.stage, format!("{:?}", stage.state).to_lowercase());
        lines.extend(stage.blocked.iter().map(|blocked| format!("  {word} is {state}: {blocked}")));
    }
    lines.extend(report.exemptions.iter().map(|exemption| format!("  exempt {exemption}")));
    lines
}

pub fn assert_golden(name: &str, story: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("WINDLASS_UPDATE").is_some_and(|update| update == "1") {
        std::fs::write(&path, story).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == story, "{name} is another story now; WINDLASS_UPDATE=1 writes it anew\n{story}");
}

pub fn assert_at_rest(fake: &Fake) {
    let again = checked_plan(fake);
    assert_eq!((again.record, again.steps), (None, Vec::new()), "planning again changes nothing");
    assert_eq!(again.report.assessment, Assessment::Running);
    assert_eq!(again.report.current(), None);
}

/// A cluster is created, and upgraded, and the whole is the golden of that name.
fn check_life(control_plane: u32, workers: u32, golden: &str) {
    let mut fake = Fake::new(target(control_plane, workers, "v1.15.5"));
    let mut story = live(&mut fake);
    assert_at_rest(&fake);
    story.push_str("\n--- the owner asks for v1.16.7 ---\n\n");
    fake.target = target(control_plane, workers, "v1.16.7");
    story.push_str(&live(&mut fake));
    assert_golden(golden, &story);
    assert_at_rest(&fake);
}

#[test]
fn a_cluster_of_one_and_one_is_created_and_upgraded() {
    check_life(1, 1, "one-and-one.out");
}

#[test]
fn a_cluster_of_three_and_one_is_created_and_upgraded() {
    check_life(3, 1, "three-and-one.out");
}

pub fn running_cluster(control_plane: u32, workers: u32) -> Fake {
    let mut fake = Fake::new(target(control_plane, workers, "v1.15.5"));
    live(&mut fake);
    fake
}

#[test]
fn workers_are_scaled_in_place_and_without_a_record() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 3, "v1.15.5");
    let story = live(&mut fake);
    assert_eq!(story.matches(" apply ").count(), 1, "{story}");
    assert_eq!(story.matches(" create ").count(), 0, "{story}");
    assert_eq!(fake.inventory.update, None);
    assert_eq!(fake.inventory.pools.values().next().unwrap().progress.available, 3);
    assert_at_rest(&fake);
}

#[test]
fn a_lost_package_is_brought_back_without_a_record() {
    let mut fake = running_cluster(1, 1);
    let windlass_plan::inventory::Workload::Reachable { addons, .. } = &mut fake.inventory.workload else { panic!() };
    let coredns: Vec<_> = addons.remove(&"coredns".parse().unwrap()).into_iter().collect();
    assert_eq!(coredns.len(), 1);
    let story = live(&mut fake);
    assert!(story.contains("packages     apply Deployment coredns  [addon/coredns/Deployment]"), "{story}");
    assert_eq!(fake.inventory.update, None);
    assert_at_rest(&fake);
}

/// What the cluster is asked to be at a hop: its workers wait.
fn hop(mut target: Target) -> Target {
    target.pools.iter_mut().for_each(|pool| pool.version = PoolVersion::Kept);
    target
}

fn versions(fake: &Fake) -> (Vec<String>, Vec<String>) {
    let minor = |version: &windlass_api::version::KubernetesVersion| version.minor().to_string();
    let machines = fake.inventory.control_plane.machines.iter().map(|machine| minor(&machine.version)).collect();
    (machines, fake.inventory.pools.values().map(|pool| minor(&pool.version)).collect())
}

#[test]
fn over_two_minors_the_control_plane_is_replaced_twice_and_the_workers_once() {
    let mut fake = running_cluster(3, 2);
    fake.target = hop(target(3, 2, "v1.16.8"));
    let first = live(&mut fake);
    assert!(!first.contains("workers      "), "the workers wait\n{first}");
    assert_eq!(versions(&fake), (vec!["1.16".to_owned(); 3], vec!["1.15".to_owned()]));
    assert_eq!(fake.inventory.update.as_ref().unwrap().state, UpdateRecordState::Succeeded);
    assert_at_rest(&fake);

    fake.target = target(3, 2, "v1.17.4");
    let second = live(&mut fake);
    assert!(second.contains("workers/default: version v1.15.5+vmware.1 -> v1.17.4+vmware.1"), "{second}");
    assert_eq!(second.matches("workers      apply MachineDeployment").count(), 1, "{second}");
    assert_eq!(versions(&fake), (vec!["1.17".to_owned(); 3], vec!["1.17".to_owned()]));
    assert_at_rest(&fake);
}

#[test]
fn a_pool_that_waits_is_scaled_and_nothing_else() {
    let mut fake = running_cluster(1, 1);
    fake.target = hop(target(1, 1, "v1.16.8"));
    live(&mut fake);
    let before = fake.inventory.pools.values().next().unwrap().clone();
    fake.target = hop(larger(target(1, 3, "v1.16.8")));
    fake.target.control_plane = target(1, 1, "v1.16.8").control_plane;
    let story = live(&mut fake);
    let after = fake.inventory.pools.values().next().unwrap();
    assert_eq!((after.replicas, &after.version), (3, &before.version), "{story}");
    assert_eq!(after.infrastructure_template, before.infrastructure_template, "{story}");
    assert_at_rest(&fake);
}

#[test]
fn a_control_plane_does_not_leave_its_workers_too_far_behind() {
    let mut fake = running_cluster(1, 1);
    for version in ["v1.16.8", "v1.17.4"] {
        fake.target = hop(target(1, 1, version));
        live(&mut fake);
    }
    fake.target = hop(target(1, 1, "v1.18.1"));
    let planned = checked_plan(&fake);
    assert_eq!((planned.record, planned.steps), (None, Vec::new()));
    let blocked: Vec<String> =
        planned.report.stages.iter().flat_map(|stage| &stage.blocked).map(ToString::to_string).collect();
    let why = "workers of v1.15.5+vmware.1 cannot speak to API servers of v1.18.1+vmware.1, which is 3 minors ahead";
    assert!(blocked.iter().any(|blocked| blocked.contains(why)), "{blocked:?}");

    // The way out: they are replaced where the control plane is.
    fake.target = target(1, 1, "v1.17.4");
    live(&mut fake);
    assert_eq!(versions(&fake), (vec!["1.17".to_owned()], vec!["1.17".to_owned()]));
    assert_at_rest(&fake);
}

pub fn larger(mut target: Target) -> Target {
    let class: Option<MachineClassName> = "best-effort-large".parse().ok();
    target.control_plane.class.clone_from(&class);
    target.pools[0].machines.class = class;
    target
}

#[test]
fn without_a_new_version_workers_are_rolled_beside_the_control_plane() {
    let mut fake = running_cluster(3, 1);
    fake.target = larger(target(3, 1, "v1.15.5"));
    let story = live(&mut fake);
    let [job, workers] = ["create Job", "apply MachineDeployment"].map(|step| story.find(step).unwrap());
    let first = story.find("takes the place of").unwrap();
    assert!(job < workers && workers < first, "{story}");
    assert!(story.contains("class best-effort-small -> best-effort-large, forces replacement: className"), "{story}");
    assert!(!story.contains("packages "), "the packages stay as they are\n{story}");
    assert!(!story.contains("exempt V"), "no version changes\n{story}");
    assert_at_rest(&fake);
}

#[test]
fn a_control_plane_grows_one_machine_at_a_time() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(3, 1, "v1.15.5");
    let story = live(&mut fake);
    let lines: Vec<&str> =
        story.lines().filter(|line| line.contains(" create Machine ") || line.ends_with(" is ready")).collect();
    let made = lines.iter().map(|line| line.starts_with("controlPlane")).collect::<Vec<_>>();
    assert_eq!(made, [true, false, true, false], "{story}");
    assert_at_rest(&fake);
}

/// An upgrade, up to the moment when its Job gave up with one of three machines replaced.
pub fn failed_update() -> Fake {
    let mut fake = running_cluster(3, 1);
    fake.target = target(3, 1, "v1.16.7");
    while !fake.inventory.control_plane.machines.iter().any(|machine| machine.version.minor().minor == 16) {
        let planned = checked_plan(&fake);
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        for step in &planned.steps {
            fake.execute(step);
        }
        fake.tick();
    }
    fake.inventory.control_plane.job.as_mut().unwrap().state = JobState::Failed { message: "timed out".to_owned() };
    fake
}

#[test]
fn after_a_failure_nothing_is_touched_until_somebody_deletes_the_job() {
    let mut fake = failed_update();
    let planned = checked_plan(&fake);
    assert_eq!(planned.record, Some(Record::Failed { message: "timed out".to_owned() }));
    assert_eq!(planned.report.assessment, Assessment::UpdateFailed);
    fake.record(&planned.record.unwrap());

    let planned = checked_plan(&fake);
    assert_eq!((planned.record, planned.steps), (None, Vec::new()));
    assert_eq!(planned.report.assessment, Assessment::UpdateFailed);
    let states: Vec<StageState> = planned.report.stages.iter().map(|stage| stage.state).collect();
    assert_eq!(states, [StageState::Done, StageState::Failed, StageState::Waiting], "workers only wait");

    let update = fake.update();
    fake.inventory.control_plane.job = None;
    assert_eq!(checked_plan(&fake).record, Some(Record::Resumed));
    let story = live(&mut fake);
    assert!(story.contains(&format!("create Job update-{}", update.unwrap())), "the same id goes on\n{story}");
    assert!(story.contains("record succeeded"), "{story}");
    assert_eq!(fake.update(), update);
    assert_at_rest(&fake);
}

#[test]
fn an_update_whose_job_failed_at_its_very_end_still_ends_with_success() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    live(&mut fake);
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    fake.inventory.control_plane.job = None;
    let story = live(&mut fake);
    assert_eq!(story.matches("record ").count(), 2, "resumed, succeeded\n{story}");
    assert_at_rest(&fake);
}

#[test]
fn a_job_that_is_deleted_before_the_last_mark_is_gone_is_made_again() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    live(&mut fake);
    let (update, name) = (fake.update().unwrap(), fake.inventory.control_plane.machines[0].name.clone());
    let created = |planned: &Planned| planned.steps.iter().any(|step| step.action.kind() == "Job");
    // The update runs, and its last machine still carries its mark.
    fake.inventory.update.as_mut().unwrap().state = UpdateRecordState::Running;
    fake.inventory.control_plane.machines[0].update = Some(update);
    assert_eq!(
        checked_plan(&fake).record,
        Some(Record::Succeeded),
        "whoever ended the Job has read that nothing is left"
    );
    fake.inventory.control_plane.job = None;
    let planned = checked_plan(&fake);
    assert!(created(&planned) && planned.record.is_none(), "{:?}", planned.steps);
    assert!(planned.steps.iter().any(|step| step.why.contains(name.as_str())), "{:?}", planned.steps);
    // Nothing is left to do without the mark, nor where no update runs.
    fake.inventory.control_plane.machines[0].update = None;
    assert_eq!(checked_plan(&fake).record, Some(Record::Succeeded));
    fake.record(&Record::Succeeded);
    fake.inventory.control_plane.machines[0].update = Some(update);
    assert!(!created(&checked_plan(&fake)));
}

#[test]
fn a_new_target_after_a_failure_is_a_new_update() {
    let mut fake = failed_update();
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    fake.inventory.control_plane.job = None;
    fake.target = target(3, 1, "v1.16.8");
    let Some(Record::Begin { ordinal, .. }) = checked_plan(&fake).record else { panic!("no update begins") };
    assert_eq!(ordinal, 2);
}

/// The rules that are known not to hold in an upgrade, by their ids.
fn check_exempt(from: &str, to: &str, ids: &[&str]) {
    let mut fake = Fake::new(target(3, 1, from));
    live(&mut fake);
    assert!(checked_plan(&fake).report.exemptions.is_empty(), "nothing joins a cluster that is as it should be");
    fake.target = target(3, 1, to);
    let exemptions = checked_plan(&fake).report.exemptions;
    let found: Vec<&str> = exemptions.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(found, ids, "{from} to {to}");
}

#[test]
fn exemptions_are_no_wider_than_the_versions_that_need_them() {
    check_exempt("v1.15.5", "v1.16.7", &["V1", "V4", "V5", "E1"]);
    check_exempt("v1.16.7", "v1.16.8", &["E1"]);
    check_exempt("v1.18.8", "v1.19.0", &["V1", "V4", "V5", "E1"]);
    check_exempt("v1.18.8", "v1.19.1", &["V1", "V5", "E1"]);
    check_exempt("v1.26.1", "v1.27.0", &["V1", "V5"]);
    check_exempt("v1.30.1", "v1.31.0", &["V5"]);
    check_exempt("v1.31.0", "v1.31.1", &[]);
}

/// What is refused of a running cluster of 3+1, and that nothing is done.
fn check_refused(change: fn(&mut Fake), reason: &str) {
    let mut fake = running_cluster(3, 1);
    change(&mut fake);
    let planned = checked_plan(&fake);
    let machines: Vec<&Step> =
        planned.steps.iter().filter(|step| step.stage != windlass_plan::step::Stage::Packages).collect();
    assert_eq!((planned.record, machines), (None, Vec::new()), "{reason}");
    let reasons: Vec<&str> =
        planned.report.stages.iter().flat_map(|stage| &stage.blocked).map(Blocked::reason).collect();
    assert!(reasons.contains(&reason), "{reason}: {reasons:?}");
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason() {
    check_refused(|fake| fake.target = target(3, 1, "v1.17.4"), "VersionRefused");
    check_refused(|fake| fake.target = target(3, 1, "v1.14.1"), "VersionRefused");
    check_refused(|fake| fake.target = target(1, 1, "v1.15.5"), "ControlPlaneTooLarge");
    check_refused(|fake| fake.inventory.control_plane.machines.clear(), "ControlPlaneLost");
    check_refused(
        |fake| {
            fake.target = target(3, 1, "v1.16.7");
            let windlass_plan::inventory::ClusterState::Present { paused, .. } = &mut fake.inventory.cluster else {
                panic!()
            };
            *paused = Some("somebody looks at it".to_owned());
        },
        "Paused",
    );
    check_refused(
        |fake| {
            fake.target = target(3, 1, "v1.16.7");
            let gap = windlass_plan::inventory::Gap { object: "Machine/x".to_owned(), why: "forbidden".to_owned() };
            fake.inventory.gaps.push(gap);
        },
        "Gap",
    );
}
