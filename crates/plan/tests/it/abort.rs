//! Giving an update up: what is stopped, what undoes it, when it is too late, and what comes afterwards.

use windlass_api::name::{NameLimit, Uid, replacement_name};
use windlass_plan::inventory::{Abort, Job, JobState, MachineState, UpdateRecordState};
use windlass_plan::planner::{Planned, Record};
use windlass_plan::report::{Assessment, StageState};
use windlass_plan::step::{Action, Revision, Stage};

use crate::fake::Fake;
use crate::sample::target;
use crate::story::{checked_plan, running_cluster};

/// An upgrade whose Job is there, and which somebody wants to be given up.
fn ordered() -> Fake {
    let mut fake = running_cluster(3, 1);
    let back = fake.target.clone();
    fake.target = target(3, 1, "v1.16.7");
    while fake.inventory.control_plane.job.is_none() {
        let planned = checked_plan(&fake);
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        for step in &planned.steps {
            fake.execute(step);
        }
        // From then on the Job would replace machines.
        if fake.inventory.control_plane.job.is_none() {
            fake.tick();
        }
    }
    let upgrading = Revision { uid: Uid::new("uid-of-the-job").unwrap(), resource_version: "7".to_owned() };
    fake.inventory.orders.abort =
        Some(Abort { by: "ann".to_owned(), back: Some(back), upgrading: Some(upgrading), job: None, too_late: None });
    fake
}

/// The Job of the update is gone, and the one that gives up is like this.
fn at(fake: &mut Fake, state: Option<JobState>) -> Planned {
    let update = fake.update().unwrap();
    fake.inventory.control_plane.job = None;
    let order = fake.inventory.orders.abort.as_mut().unwrap();
    order.upgrading = None;
    order.job = state.map(|state| Job { name: update.abort_job_name(), update, state });
    checked_plan(fake)
}

fn reasons(planned: &Planned, stage: Stage) -> Vec<&'static str> {
    let stages = planned.report.stages.iter().filter(|report| report.stage == stage);
    stages.flat_map(|report| report.blocked.iter().map(windlass_plan::gate::Blocked::reason)).collect()
}

#[test]
fn the_job_of_the_update_is_stopped_before_another_undoes_what_it_began() {
    let mut fake = ordered();
    let planned = checked_plan(&fake);
    let [step] = planned.steps.as_slice() else { panic!("{:?}", planned.steps) };
    let Action::Delete { kind, name, .. } = &step.action else { panic!("{step:?}") };
    assert_eq!((kind.as_str(), name.as_str()), ("Job", fake.update().unwrap().job_name().as_str()));

    let planned = at(&mut fake, None);
    let [step] = planned.steps.as_slice() else { panic!("{:?}", planned.steps) };
    let Action::Create { object } = &step.action else { panic!("{step:?}") };
    assert_eq!(object["metadata"]["name"], fake.update().unwrap().abort_job_name().as_str());
    assert_eq!(object["metadata"]["annotations"]["upgrade-version"], "v1.15.5+vmware.1", "what it was");
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"][2], "abort");
    assert!(container["args"].to_string().contains("v1.15.5"), "{container}");

    let planned = at(&mut fake, Some(JobState::Active { failed_attempts: 0 }));
    assert_eq!((planned.steps.len(), planned.record.is_none()), (0, true));
    for stage in Stage::ALL {
        assert_eq!(reasons(&planned, stage), ["Aborting"]);
    }
    assert_eq!(planned.report.assessment, Assessment::Updating);
}

#[test]
fn an_update_that_failed_can_be_given_up_too() {
    let mut fake = ordered();
    let failed = JobState::Failed { message: "timed out".to_owned() };
    fake.inventory.control_plane.job.as_mut().unwrap().state = failed;
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    assert_eq!(checked_plan(&fake).steps.len(), 1, "its Job is deleted");
    assert_eq!(at(&mut fake, None).steps.len(), 1);
    assert_eq!(at(&mut fake, Some(JobState::Complete)).record, Some(Record::Aborted));
}

#[test]
fn what_was_given_up_is_not_begun_again_by_itself() {
    let mut fake = ordered();
    let planned = at(&mut fake, Some(JobState::Complete));
    assert_eq!((planned.steps.len(), planned.record.as_ref()), (0, Some(&Record::Aborted)));
    fake.record(&Record::Aborted);
    // Whoever resolves leads it back until its owner asks for something else.
    fake.target = target(3, 1, "v1.15.5");
    for _ in 0..100 {
        let planned = checked_plan(&fake);
        assert_eq!(planned.record, None, "{:?}", planned.report);
        planned.steps.iter().for_each(|step| fake.execute(step));
        fake.tick();
    }
    let report = checked_plan(&fake).report;
    assert_eq!(report.assessment, Assessment::Running);
    assert_eq!(report.pending.map(|blocked| blocked.reason()), Some("Aborted"), "its owner is told");
    assert_eq!(fake.inventory.update.as_ref().unwrap().state, UpdateRecordState::Aborted);
    // Something else is another update.
    fake.target = target(3, 1, "v1.16.8");
    let Some(Record::Begin { ordinal: 2, .. }) = checked_plan(&fake).record else { panic!("it has to begin") };
    // So is the same again, when nobody wants it to be given up any more.
    fake.target = target(3, 1, "v1.16.7");
    fake.inventory.orders.abort = None;
    let Some(Record::Begin { ordinal: 2, .. }) = checked_plan(&fake).record else { panic!("it has to begin") };
}

#[test]
fn machines_that_would_have_to_be_replaced_all_the_same_wait_for_a_word() {
    let mut fake = ordered();
    assert_eq!(at(&mut fake, Some(JobState::Complete)).record, Some(Record::Aborted));
    fake.record(&Record::Aborted);
    fake.target = target(3, 1, "v1.15.5");
    fake.inventory.control_plane.machines[0].image = Some("photon-renamed".parse().unwrap());
    let planned = checked_plan(&fake);
    assert_eq!((planned.record.is_none(), reasons(&planned, Stage::ControlPlane)), (true, vec!["Aborted"]));
    assert!(planned.steps.iter().all(|step| step.stage == Stage::Packages), "{:?}", planned.steps);
}

#[test]
fn a_job_that_cannot_give_up_says_so_and_is_tried_again_when_it_is_deleted() {
    let mut fake = ordered();
    let planned = at(&mut fake, Some(JobState::Failed { message: "no route to host".to_owned() }));
    assert_eq!((planned.steps.len(), planned.record.is_none()), (0, true));
    assert_eq!(planned.report.assessment, Assessment::UpdateFailed);
    let stage = &planned.report.stages[1];
    assert_eq!(stage.state, StageState::Failed);
    assert!(stage.blocked[0].to_string().contains("no route to host"), "{:?}", stage.blocked);
    assert_eq!(at(&mut fake, None).steps.len(), 1);
}

#[test]
fn once_a_machine_was_replaced_the_update_goes_on_and_says_why() {
    let mut fake = ordered();
    let update = fake.update().unwrap();
    let machine = &mut fake.inventory.control_plane.machines[0];
    let base = machine.row().clone();
    machine.name = replacement_name(&base, update, NameLimit::LabelValue);
    machine.base = Some(base);
    machine.version = "v1.16.7+vmware.1".parse().unwrap();
    let planned = checked_plan(&fake);
    assert!(planned.steps.is_empty(), "{:?}", planned.steps);
    assert_eq!(reasons(&planned, Stage::ControlPlane), ["ControlPlaneUpdateRunning", "AbortTooLate"]);
    // Its Job is gone: it is made again, as without the order.
    fake.inventory.control_plane.job = None;
    fake.inventory.orders.abort.as_mut().unwrap().upgrading = None;
    let planned = checked_plan(&fake);
    assert_eq!(planned.steps.iter().map(|step| step.action.name()).collect::<Vec<_>>(), [update.job_name().as_str()]);
}

#[test]
fn workers_that_do_not_move_do_not_keep_whoever_gives_up() {
    let mut fake = ordered();
    let now = fake.input().now;
    let pool = fake.inventory.pools.values_mut().next().unwrap();
    pool.progress.available = 0;
    pool.moved_at = Some(now - jiff::SignedDuration::from_hours(2));
    assert_eq!(checked_plan(&fake).steps.len(), 1, "the Job of the update is stopped");
    assert_eq!(at(&mut fake, None).steps.len(), 1);
    assert_eq!(at(&mut fake, Some(JobState::Complete)).record, Some(Record::Aborted));
}

#[test]
fn a_replacement_that_has_only_come_is_not_too_late() {
    let mut fake = ordered();
    let update = fake.update().unwrap();
    let mut machine = fake.inventory.control_plane.machines[0].clone();
    let base = machine.row().clone();
    machine.name = replacement_name(&base, update, NameLimit::LabelValue);
    machine.base = Some(base);
    machine.update = Some(update);
    machine.state = MachineState::Joining { awaits: windlass_plan::inventory::Milestone::ProviderId };
    fake.inventory.control_plane.machines.push(machine);
    assert_eq!(checked_plan(&fake).steps.len(), 1, "the Job of the update is stopped");
    assert_eq!(at(&mut fake, None).steps.len(), 1);
}

#[test]
fn who_holds_the_cluster_holds_this_too() {
    let mut fake = ordered();
    let windlass_plan::inventory::ClusterState::Present { paused, .. } = &mut fake.inventory.cluster else { panic!() };
    *paused = Some("ann".to_owned());
    let planned = checked_plan(&fake);
    assert_eq!((planned.steps.len(), reasons(&planned, Stage::ControlPlane)), (0, vec!["Paused"]));
}

#[test]
fn the_release_that_the_cluster_had_has_to_be_there() {
    let mut fake = ordered();
    fake.inventory.orders.abort.as_mut().unwrap().back = None;
    let planned = at(&mut fake, None);
    assert_eq!((planned.steps.len(), reasons(&planned, Stage::ControlPlane)), (0, vec!["Gap"]));
}

/// An upgrade whose machines another update has marked: it has made one that is not there to replace any yet.
fn foreign(theirs: windlass_api::name::UpdateId, made_for: &str) -> Fake {
    let mut fake = running_cluster(3, 1);
    fake.target = target(3, 1, "v1.16.7");
    while fake.inventory.control_plane.job.is_none() {
        let planned = checked_plan(&fake);
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        planned.steps.iter().for_each(|step| fake.execute(step));
        if fake.inventory.control_plane.job.is_none() {
            fake.tick();
        }
    }
    fake.inventory.control_plane.job = None;
    let machines = &mut fake.inventory.control_plane.machines;
    for machine in machines.iter_mut() {
        machine.update = Some(theirs);
    }
    let mut made = machines[0].clone();
    let base = made.row().clone();
    made.name = replacement_name(&base, theirs, NameLimit::LabelValue);
    made.base = Some(base);
    made.version = made_for.parse().unwrap();
    machines.push(made);
    fake
}

#[test]
fn what_another_update_began_is_touched_only_by_who_adopts_it() {
    let theirs = "99".parse().unwrap();
    let check = |made_for: &str, adopts: bool, ordered: bool, expected: Result<&str, &str>| {
        let mut fake = foreign(theirs, made_for);
        if adopts {
            fake.inventory.update.as_mut().unwrap().id = theirs;
        }
        let back = Some(target(3, 1, "v1.15.5"));
        let order = Abort { by: "ann".to_owned(), back, upgrading: None, job: None, too_late: None };
        fake.inventory.orders.abort = ordered.then_some(order);
        let planned = checked_plan(&fake);
        let made: Vec<&str> = planned.steps.iter().map(|step| step.action.name()).collect();
        let found = made.first().copied().ok_or_else(|| reasons(&planned, Stage::ControlPlane)[0]);
        assert_eq!(found, expected, "{made_for}, adopts {adopts}, ordered {ordered}");
    };
    for ordered in [false, true] {
        check("v1.16.7+vmware.1", false, ordered, Err("ForeignAttempt"));
    }
    check("v1.16.7+vmware.1", true, false, Ok("update-99"));
    check("v1.16.7+vmware.1", true, true, Ok("abort-99"));
    // A machine of another version is no step on this way.
    check("v1.15.9+vmware.1", true, false, Err("AttemptOfAnotherVersion"));
    check("v1.15.9+vmware.1", true, true, Ok("abort-99"));
}
