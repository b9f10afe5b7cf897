//! What has to be so before the control plane is updated, and what follows when that fails.

use windlass_api::kind::tanzu::Phase;
use windlass_api::name::{AddonName, ClusterSecret, Uid};
use windlass_plan::inventory::{EarlierJob, Gap, JobState, UpdateRecordState, Workload};
use windlass_plan::planner::{Planned, Record};
use windlass_plan::release::Release;
use windlass_plan::report::StageState;
use windlass_plan::step::{Action, Revision, Stage};

use super::{begins, changed, ends, reach, reasons, states, steps_of, until};
use crate::fake::Fake;
use crate::sample::{image, target};
use crate::story::{checked_plan, failed_update, live, running_cluster};

/// An upgrade of a cluster, up to the moment when its Job is there.
fn with_job() -> Fake {
    let mut fake = running_cluster(3, 1);
    fake.target = target(3, 1, "v1.16.7");
    reach(&mut fake, |fake, _| fake.inventory.control_plane.job.is_some());
    fake
}

#[test]
pub fn a_change_of_the_control_plane_alone_touches_nothing_else() {
    let mut fake = running_cluster(1, 1);
    fake.target.control_plane.class = "best-effort-large".parse().ok();
    assert_eq!(changed(&checked_plan(&fake)), [Stage::ControlPlane]);
    let story = ends(&mut fake);
    assert!(!story.contains("packages     ") && !story.contains("workers      "), "{story}");
}

#[test]
pub fn a_pre_check_passes_when_nothing_of_the_stage_before_differs() {
    let mut fake = running_cluster(1, 1);
    fake.target.control_plane.class = "best-effort-large".parse().ok();
    let record = checked_plan(&fake).record.unwrap();
    fake.record(&record);
    let planned = checked_plan(&fake);
    assert_eq!(states(&planned), [StageState::Done, StageState::Ready, StageState::Done]);
    assert_eq!(planned.steps.iter().map(|step| step.action.kind()).collect::<Vec<_>>(), ["Job"]);
    ends(&mut fake);
}

#[test]
pub fn the_control_plane_waits_until_every_add_on_has_its_version() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let record = checked_plan(&fake).record.unwrap();
    fake.record(&record);
    let planned = checked_plan(&fake);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"PackageNotReady"));
    assert!(steps_of(&planned, Stage::ControlPlane).is_empty());
    // All but one are applied, and the record of them is not written: still not.
    for step in planned.steps.iter().skip(2) {
        fake.execute(step);
    }
    while fake.tick().is_some() {}
    assert!(reasons(&checked_plan(&fake), Stage::ControlPlane).contains(&"PackageNotReady"));
    ends(&mut fake);
}

#[test]
pub fn an_add_on_without_a_version_has_that_of_the_distribution() {
    let release = Release::from_image(&image("v1.16.7")).unwrap();
    assert_eq!(release.addons[&AddonName::new("pvcsi").unwrap()].version, "v1.16.7+vmware.1-guest.1");
}

#[test]
pub fn no_other_update_of_the_control_plane_may_be_in_progress() {
    let mut fake = with_job();
    let planned = checked_plan(&fake);
    assert_eq!(states(&planned)[1], StageState::Running);
    assert_eq!(reasons(&planned, Stage::ControlPlane), ["ControlPlaneUpdateRunning"]);
    assert!(steps_of(&planned, Stage::ControlPlane).is_empty(), "there is one Job");
    ends(&mut fake);
}

#[test]
pub fn after_a_failed_update_nothing_begins() {
    let mut fake = failed_update();
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    for asked in ["v1.16.7", "v1.16.8"] {
        fake.target = target(3, 1, asked);
        let planned = checked_plan(&fake);
        assert_eq!((begins(&planned), planned.record.is_none()), (None, true), "{asked}");
        assert!(planned.steps.iter().all(|step| step.stage == Stage::Packages), "{asked}: no machine is touched");
        assert!(reasons(&planned, Stage::ControlPlane).contains(&"ControlPlaneUpdateFailed"), "{asked}");
    }
}

#[test]
pub fn a_version_that_is_asked_for_meanwhile_has_to_wait() {
    let mut fake = with_job();
    fake.target = target(3, 1, "v1.16.8");
    let planned = checked_plan(&fake);
    assert_eq!((begins(&planned), planned.steps.len()), (None, 0), "{:?}", planned.steps);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"Retargeted"), "{:?}", planned.report);
    // The update that runs is led to its end; then it is the turn of the other.
    fake.target = target(3, 1, "v1.16.7");
    ends(&mut fake);
    fake.target = target(3, 1, "v1.16.8");
    assert_eq!(begins(&checked_plan(&fake)), Some(("v1.16.7+vmware.1-guest.1", "v1.16.8+vmware.1-guest.1")));
    ends(&mut fake);
}

#[test]
pub fn the_job_says_which_update_it_is_and_has_four_attempts() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let planned = until(&mut fake, |_, planned| planned.steps.iter().any(|step| step.action.kind() == "Job"));
    let Some(Action::Create { object }) = planned.steps.iter().map(|step| &step.action).next() else { panic!() };
    let update = fake.update().unwrap().to_string();
    assert_eq!(object["metadata"]["name"], format!("update-{update}"));
    assert_eq!(object["metadata"]["annotations"]["upgrade-id"], update);
    assert_eq!(object["metadata"]["annotations"]["upgrade-version"], "v1.16.7+vmware.1");
    assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "my-tkc");
    assert_eq!(object["spec"]["backoffLimit"], 3, "one attempt, and three more");
    assert_eq!([&object["spec"]["completions"], &object["spec"]["parallelism"]], [1, 1], "one Pod at a time");
}

#[test]
pub fn deleting_the_job_does_not_make_another_update_of_it() {
    let mut fake = with_job();
    let job = fake.inventory.control_plane.job.take().unwrap();
    let planned = checked_plan(&fake);
    assert_eq!(planned.record, None, "the update on record goes on");
    assert_eq!(planned.steps[0].action.name(), job.name.as_str(), "under the same id");
    ends(&mut fake);
}

#[test]
pub fn pods_may_fail_as_long_as_the_job_has_not() {
    let mut fake = with_job();
    fake.inventory.control_plane.job.as_mut().unwrap().state = JobState::Active { failed_attempts: 3 };
    let planned = checked_plan(&fake);
    assert_eq!(states(&planned)[1], StageState::Running);
    assert_eq!(planned.record, None);
    let story = ends(&mut fake);
    assert!(story.contains("record succeeded"), "{story}");
}

#[test]
pub fn a_failed_job_halts_its_cluster() {
    let mut fake = failed_update();
    let planned = checked_plan(&fake);
    assert_eq!(planned.record, Some(Record::Failed { message: "timed out".to_owned() }));
    fake.record(&planned.record.unwrap());
    let story = live(&mut fake);
    assert!(!story.contains("record ") && !story.contains("create "), "{story}");
    assert!(story.contains("gave up replacing the control plane: timed out"), "{story}");
}

#[test]
pub fn deleting_the_failed_job_tries_again() {
    let mut fake = failed_update();
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    let update = fake.update();
    fake.inventory.control_plane.job = None;
    assert_eq!(checked_plan(&fake).record, Some(Record::Resumed));
    ends(&mut fake);
    assert_eq!(fake.update(), update, "it picks up where it left off");
    assert_eq!(fake.inventory.update.unwrap().state, UpdateRecordState::Succeeded);
}

#[test]
pub fn without_its_certificates_no_machine_is_made() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let lost = ClusterSecret::CERTIFICATES[0];
    fake.inventory.secrets.remove(&lost);
    let story = live(&mut fake);
    assert!(!story.contains("create "), "{story}");
    let planned = checked_plan(&fake);
    assert!(reasons(&planned, Stage::ControlPlane).contains(&"CertificateMissing"), "{:?}", planned.report);
    fake.inventory.secrets.insert(lost);
    ends(&mut fake);
}

#[test]
pub fn a_failed_job_is_the_phase_update_failed() {
    let mut fake = failed_update();
    assert_eq!(checked_plan(&fake).report.phase(Some(Phase::Updating)), Phase::UpdateFailed);
    fake.record(&Record::Failed { message: "timed out".to_owned() });
    assert_eq!(checked_plan(&fake).report.phase(Some(Phase::UpdateFailed)), Phase::UpdateFailed);
    assert!(matches!(fake.inventory.workload, Workload::Reachable { .. }));
}

#[test]
fn jobs_of_earlier_updates_go_while_another_one_runs() {
    let mut fake = running_cluster(1, 1);
    let old = EarlierJob {
        name: "update-1280807".parse().unwrap(),
        revision: Revision { uid: Uid::new("uid-of-the-job").unwrap(), resource_version: "7".to_owned() },
    };
    fake.inventory.control_plane.earlier_jobs = vec![old];
    let deleted = |planned: &Planned| {
        let deletes = planned.steps.iter().filter(|step| matches!(step.action, Action::Delete { .. }));
        deletes.map(|step| step.action.name().to_owned()).collect::<Vec<_>>()
    };
    assert!(deleted(&checked_plan(&fake)).is_empty(), "nothing begins");
    fake.target = target(1, 1, "v1.16.7");
    let planned = checked_plan(&fake);
    assert!(deleted(&planned).is_empty(), "it is not on record");
    fake.record(&planned.record.unwrap());
    assert_eq!(deleted(&checked_plan(&fake)), ["update-1280807"]);
    fake.inventory.gaps = vec![Gap { object: "Machine".to_owned(), why: "forbidden".to_owned() }];
    assert!(deleted(&checked_plan(&fake)).is_empty(), "not across a gap");
}
