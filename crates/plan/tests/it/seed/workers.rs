//! Workers come last, and how.

use jiff::{SignedDuration, Timestamp};
use windlass_api::kind::tanzu::Phase;
use windlass_plan::inventory::JobState;
use windlass_plan::planner::Record;
use windlass_plan::report::StageState;
use windlass_plan::step::{Action, Stage};

use super::{begins, changed, ends, reach, reasons, states, steps_of, until};
use crate::fake::Fake;
use crate::sample::target;
use crate::story::{assert_at_rest, checked_plan, larger, running_cluster};

fn upgrading(control_plane: u32, workers: u32) -> Fake {
    let mut fake = running_cluster(control_plane, workers);
    fake.target = target(control_plane, workers, "v1.16.7");
    fake
}

#[test]
pub fn the_three_stages_come_one_after_the_other() {
    let mut fake = upgrading(3, 2);
    let mut seen: Vec<Stage> = Vec::new();
    reach(&mut fake, |fake, planned| {
        // No two stages of an upgrade write machines and packages in one plan.
        let mut stages: Vec<Stage> = planned.steps.iter().map(|step| step.stage).collect();
        stages.dedup();
        assert!(stages.len() <= 1, "{stages:?}");
        fake.inventory.pools.values().all(|pool| pool.version.minor().minor == 16)
    });
    let mut fake = upgrading(3, 2);
    let story = ends(&mut fake);
    for line in story.lines() {
        let stage = Stage::ALL.into_iter().find(|stage| line.starts_with(&format!("{:<12} ", stage.as_str())));
        if let Some(stage) = stage.filter(|_| !line.contains(" delete ") && !line.contains("[addons/applied]")) {
            seen.push(stage);
        }
    }
    seen.dedup();
    assert_eq!(seen, Stage::ALL, "{story}");
}

#[test]
pub fn a_change_of_workers_alone_touches_nothing_else() {
    let mut fake = running_cluster(3, 1);
    fake.target.pools[0].machines.class = "best-effort-large".parse().ok();
    assert_eq!(changed(&checked_plan(&fake)), [Stage::Workers]);
    let story = ends(&mut fake);
    assert!(!story.contains("create Job") && !story.contains("packages     "), "{story}");
}

#[test]
pub fn workers_wait_until_every_machine_of_the_control_plane_is_as_new() {
    let mut fake = upgrading(3, 1);
    reach(&mut fake, |fake, planned| {
        let behind = fake.inventory.control_plane.machines.iter().any(|machine| machine.version.minor().minor == 15);
        let workers = steps_of(planned, Stage::Workers);
        assert!(!behind || workers.is_empty(), "{workers:?}");
        let waits = reasons(planned, Stage::Workers).contains(&"ControlPlaneBehind");
        assert_eq!(waits, behind, "and it is said why");
        !behind
    });
    ends(&mut fake);
}

#[test]
pub fn the_last_old_machine_of_the_control_plane_still_holds_workers() {
    let mut fake = upgrading(1, 1);
    let planned = until(&mut fake, |fake, _| fake.inventory.control_plane.machines.len() == 2);
    assert!(matches!(fake.inventory.control_plane.job.as_ref().unwrap().state, JobState::Active { .. }));
    assert!(reasons(&planned, Stage::Workers).contains(&"ControlPlaneBehind"), "the old machine is still there");
    ends(&mut fake);
}

#[test]
pub fn a_change_without_a_version_rolls_workers_beside_the_control_plane() {
    let mut fake = running_cluster(3, 1);
    fake.target = larger(target(3, 1, "v1.15.5"));
    let record = checked_plan(&fake).record.unwrap();
    fake.record(&record);
    let planned = checked_plan(&fake);
    assert!(begins(&planned).is_none());
    assert!(!steps_of(&planned, Stage::ControlPlane).is_empty() && !steps_of(&planned, Stage::Workers).is_empty());
    ends(&mut fake);
}

#[test]
pub fn a_pool_gets_new_templates_and_one_write_that_switches_to_them() {
    let mut fake = upgrading(1, 1);
    let planned = until(&mut fake, |_, planned| !steps_of(planned, Stage::Workers).is_empty());
    let steps = steps_of(&planned, Stage::Workers);
    let written: Vec<(&str, &str)> = steps.iter().map(|step| (step.action.verb(), step.action.kind())).collect();
    assert_eq!(
        written,
        [("create", "WCPMachineTemplate"), ("create", "KubeadmConfigTemplate"), ("apply", "MachineDeployment")]
    );
    let Action::Apply { object, expect } = &steps[2].action else { panic!() };
    let spec = &object["spec"]["template"]["spec"];
    assert_eq!(spec["infrastructureRef"]["name"], steps[0].action.name());
    assert_eq!(spec["bootstrap"]["configRef"]["name"], steps[1].action.name());
    assert_eq!(spec["version"], "v1.16.7+vmware.1");
    assert!(expect.is_some(), "only on the state that was seen");
    let old = fake.inventory.pools.values().next().unwrap().infrastructure_template.name.to_string();
    assert_ne!(steps[0].action.name(), old, "templates are made anew, never changed");
}

#[test]
pub fn a_pool_has_one_machine_more_and_none_less_while_it_rolls() {
    let mut fake = upgrading(1, 2);
    let planned = until(&mut fake, |_, planned| !steps_of(planned, Stage::Workers).is_empty());
    let Action::Apply { object, .. } = &steps_of(&planned, Stage::Workers)[2].action else { panic!() };
    let rolling = &object["spec"]["rollout"]["strategy"]["rollingUpdate"];
    assert_eq!((&rolling["maxSurge"], &rolling["maxUnavailable"]), (&1.into(), &0.into()), "{}", object["spec"]);
    ends(&mut fake);
}

#[test]
pub fn a_pool_that_stands_still_fails_the_update_until_it_moves_again() {
    let mut fake = upgrading(1, 2);
    let rolls = until(&mut fake, |fake, planned| {
        steps_of(planned, Stage::Workers).is_empty()
            && fake.inventory.pools.values().any(|pool| pool.version.minor().minor == 16 && !pool.is_at_rest())
    });
    assert_eq!(reasons(&rolls, Stage::Workers), ["PoolRolling"]);
    let set = |fake: &mut Fake, minutes: i64, moved_at: i64| {
        let after = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        fake.inventory.as_of = after(minutes);
        fake.inventory.pools.values_mut().next().unwrap().moved_at = Some(after(moved_at));
    };
    set(&mut fake, 59, 0);
    let planned = checked_plan(&fake);
    assert_eq!((planned.record.clone(), reasons(&planned, Stage::Workers)), (None, vec!["PoolStalled"]));

    set(&mut fake, 60, 0);
    let planned = checked_plan(&fake);
    let message = "the pool default has not moved since 1970-01-01T00:00:00Z".to_owned();
    assert_eq!(planned.record, Some(Record::Failed { message }));
    assert_eq!(states(&planned)[2], StageState::Failed);
    fake.record(&planned.record.unwrap());
    set(&mut fake, 600, 0);
    let planned = checked_plan(&fake);
    assert_eq!((&planned.record, planned.report.phase(None)), (&None, Phase::UpdateFailed));
    assert!(planned.steps.is_empty());

    // Whatever it was that kept it: one machine more is there.
    set(&mut fake, 610, 610);
    let planned = checked_plan(&fake);
    assert_eq!(planned.record, Some(Record::Resumed));
    ends(&mut fake);
}

#[test]
pub fn a_pool_is_done_when_all_of_its_machines_are_new_and_no_other_is_left() {
    let mut fake = upgrading(1, 2);
    reach(&mut fake, |fake, planned| {
        let progress = fake.inventory.pools.values().next().unwrap().progress;
        let is_new = fake.inventory.pools.values().all(|pool| pool.version.minor().minor == 16);
        let is_done = progress.observed && [progress.replicas, progress.up_to_date, progress.available] == [2, 2, 2];
        assert!(!is_new || (states(planned)[2] == StageState::Done) == is_done, "{progress:?}");
        is_new && is_done
    });
    ends(&mut fake);
}

#[test]
pub fn a_cluster_is_updating_while_its_job_runs_or_its_pool_is_mixed() {
    let mut fake = upgrading(1, 2);
    let mut was_seen = [false, false];
    for _ in 0..300 {
        let planned = checked_plan(&fake);
        let active = |fake: &Fake| {
            let job = fake.inventory.control_plane.job.as_ref();
            job.is_some_and(|job| matches!(job.state, JobState::Active { .. }))
        };
        let progress = fake.inventory.pools.values().next().unwrap().progress;
        let mixed = fake.inventory.update.is_some() && progress.up_to_date != progress.replicas;
        for (seen, is) in was_seen.iter_mut().zip([active(&fake), mixed]) {
            *seen |= is;
            assert!(!is || planned.report.phase(Some(Phase::Updating)) == Phase::Updating);
        }
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        planned.steps.iter().for_each(|step| fake.execute(step));
        fake.tick();
    }
    assert_eq!(was_seen, [true, true]);
    assert_at_rest(&fake);
    assert_eq!(checked_plan(&fake).report.phase(Some(Phase::Updating)), Phase::Running);
}

#[test]
pub fn once_all_is_done_planning_again_changes_nothing() {
    for (control_plane, workers) in [(1, 1), (3, 2)] {
        let mut fake = upgrading(control_plane, workers);
        ends(&mut fake);
        for _ in 0..3 {
            let planned = checked_plan(&fake);
            assert_eq!((planned.record, planned.steps), (None, Vec::new()));
            assert_eq!(changed(&checked_plan(&fake)), []);
        }
    }
}
