//! The document that the rolling update of a `TanzuKubernetesCluster` is made from, sentence by sentence: what it says about
//! detection, order and pre-checks, and what the planner makes of it.
//!
//! [`TABLE`] names the tests of each section. It holds the tests themselves, so a name without a test does not compile; the last
//! test here sees to it that no test is left out of it.

mod control_plane;
mod detection;
mod packages;
mod workers;

use windlass_plan::gate::Blocked;
use windlass_plan::planner::{Planned, Record};
use windlass_plan::report::StageState;
use windlass_plan::step::{Stage, Step};

use crate::fake::Fake;
use crate::story::{assert_at_rest, checked_plan, live};

type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        &[$((stringify!($name), $module::$name as fn())),+]
    };
}

/// Each section, and its tests.
const TABLE: &[(&str, &[Test])] = &[
    (
        "Update vs. Upgrade",
        tests![
            detection::whatever_changes_about_machines_rolls_in_the_same_fashion,
            detection::an_upgrade_is_kept_within_the_skew_that_versions_allow,
            detection::a_downgrade_is_refused_with_the_reason,
        ],
    ),
    (
        "Performing an Update",
        tests![
            detection::another_distribution_begins_an_update,
            detection::a_hint_beside_a_full_version_that_it_does_not_match_is_refused,
            detection::another_class_begins_an_update,
            detection::another_storage_class_begins_an_update,
            detection::any_combination_of_changes_is_one_update,
            detection::an_image_that_was_renamed_begins_an_update,
            detection::an_image_that_was_renamed_is_part_of_whatever_else_is_asked_for,
            detection::new_values_of_the_generator_begin_an_update,
        ],
    ),
    (
        "Rolling Updates",
        tests![
            workers::the_three_stages_come_one_after_the_other,
            workers::a_change_of_workers_alone_touches_nothing_else,
            control_plane::a_change_of_the_control_plane_alone_touches_nothing_else,
            control_plane::a_pre_check_passes_when_nothing_of_the_stage_before_differs,
        ],
    ),
    (
        "The Add-ons Controller",
        tests![
            packages::add_ons_are_kept_as_they_should_be_also_without_an_update,
            packages::add_ons_are_read_from_the_image_of_the_distribution,
            packages::coredns_and_kube_proxy_have_the_versions_of_the_distribution,
        ],
    ),
    (
        "Add-ons Update",
        tests![
            packages::add_ons_come_before_machines,
            packages::a_new_distribution_creates_and_updates_the_objects_of_add_ons,
            packages::daemon_sets_replace_no_pod_that_runs,
            packages::deployments_have_one_pod_more_and_none_less_while_they_roll,
            packages::pods_of_deployments_run_only_on_nodes_that_have_their_image,
            packages::objects_that_a_release_does_not_have_any_more_are_left_alone,
        ],
    ),
    (
        "Add-on Statuses",
        tests![
            packages::nothing_is_applied_while_the_workload_cluster_is_not_there_yet,
            packages::an_add_on_that_is_applied_differs_in_nothing,
            packages::an_add_on_that_is_not_well_stops_no_other,
            packages::a_cluster_that_cannot_be_reached_is_a_reason_to_wait,
            packages::a_malformed_image_is_no_release,
        ],
    ),
    (
        "Update Detection",
        tests![
            detection::what_should_be_is_compared_with_what_is_again_and_again,
            detection::only_a_difference_in_what_was_asked_for_counts,
            detection::an_update_rolls_the_nodes_that_differ,
        ],
    ),
    (
        "Control Plane Pre-check",
        tests![
            control_plane::the_control_plane_waits_until_every_add_on_has_its_version,
            control_plane::an_add_on_without_a_version_has_that_of_the_distribution,
            control_plane::no_other_update_of_the_control_plane_may_be_in_progress,
            control_plane::after_a_failed_update_nothing_begins,
            control_plane::a_version_that_is_asked_for_meanwhile_has_to_wait,
        ],
    ),
    (
        "Cluster API Upgrade Tool",
        tests![
            control_plane::the_job_says_which_update_it_is_and_has_four_attempts,
            control_plane::deleting_the_job_does_not_make_another_update_of_it,
        ],
    ),
    ("Pod Failed", tests![control_plane::pods_may_fail_as_long_as_the_job_has_not]),
    (
        "Job Failed",
        tests![
            control_plane::a_failed_job_halts_its_cluster,
            control_plane::deleting_the_failed_job_tries_again,
            control_plane::without_its_certificates_no_machine_is_made,
        ],
    ),
    (
        "Worker Pre-check",
        tests![
            workers::workers_wait_until_every_machine_of_the_control_plane_is_as_new,
            workers::the_last_old_machine_of_the_control_plane_still_holds_workers,
            workers::a_change_without_a_version_rolls_workers_beside_the_control_plane,
        ],
    ),
    (
        "MachineDeployment Update",
        tests![
            workers::a_pool_gets_new_templates_and_one_write_that_switches_to_them,
            workers::a_pool_has_one_machine_more_and_none_less_while_it_rolls,
            workers::a_pool_is_done_when_all_of_its_machines_are_new_and_no_other_is_left,
            workers::a_pool_that_stands_still_fails_the_update_until_it_moves_again,
        ],
    ),
    (
        "TanzuKubernetesCluster Phases",
        tests![
            workers::a_cluster_is_updating_while_its_job_runs_or_its_pool_is_mixed,
            control_plane::a_failed_job_is_the_phase_update_failed,
            workers::once_all_is_done_planning_again_changes_nothing,
        ],
    ),
];

#[test]
fn every_test_is_in_the_table_once() {
    let sources =
        [include_str!("seed/control_plane.rs"), include_str!("seed/detection.rs"), include_str!("seed/packages.rs")];
    let sources = sources.into_iter().chain([include_str!("seed/workers.rs")]);
    let mut written: Vec<&str> = sources
        .flat_map(|source| source.split("#[test]\n").skip(1))
        .filter_map(|test| test.trim_start().strip_prefix("pub fn ")?.split('(').next())
        .collect();
    let mut listed: Vec<&str> = TABLE.iter().flat_map(|(_, tests)| tests.iter()).map(|(name, _)| *name).collect();
    written.sort_unstable();
    listed.sort_unstable();
    assert_eq!(written, listed);
}

/// Lets an update go on until this is so.
fn until(fake: &mut Fake, is_so: impl Fn(&Fake, &Planned) -> bool) -> Planned {
    for _ in 0..300 {
        let planned = checked_plan(fake);
        if is_so(fake, &planned) {
            return planned;
        }
        if let Some(record) = &planned.record {
            fake.record(record);
        }
        for step in &planned.steps {
            fake.execute(step);
        }
        fake.tick();
    }
    panic!("it never comes to that");
}

/// The same, where the plan does not matter.
fn reach(fake: &mut Fake, is_so: impl Fn(&Fake, &Planned) -> bool) {
    drop(until(fake, is_so));
}

/// The update that a plan begins leads from and to these distributions.
fn begins(planned: &Planned) -> Option<(&str, &str)> {
    match &planned.record {
        Some(Record::Begin { from, to, .. }) => Some((&from.distribution, &to.distribution)),
        _ => None,
    }
}

/// The reasons that a stage is given for not going on.
fn reasons(planned: &Planned, stage: Stage) -> Vec<&'static str> {
    let of_stage = planned.report.stages.iter().find(|report| report.stage == stage);
    of_stage.unwrap().blocked.iter().map(Blocked::reason).collect()
}

fn states(planned: &Planned) -> [StageState; 3] {
    [0, 1, 2].map(|stage| planned.report.stages[stage].state)
}

/// The stages that have something to change.
fn changed(planned: &Planned) -> Vec<Stage> {
    planned.report.stages.iter().filter(|stage| !stage.changes.is_empty()).map(|stage| stage.stage).collect()
}

fn steps_of(planned: &Planned, stage: Stage) -> Vec<&Step> {
    planned.steps.iter().filter(|step| step.stage == stage).collect()
}

/// The update goes to its end, and nothing is left to do.
fn ends(fake: &mut Fake) -> String {
    let story = live(fake);
    assert_at_rest(fake);
    story
}
