//! None of the failures is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is on record about the tool that replaced control planes before: by the numbers of its issues, and by the letters of
/// what nobody filed.
const ON_RECORD: &str = "#40 #41 #46 #56 #78 #79 #110 #112 #122 #136 #140 #149 #153 #154 #157 #158 #162 #165 kubeadm#1511 \
                         log (a) (b) (c) (d) (e) (f) (g)";

/// Failures that a test of another file is about, by the path below `crates`.
const ELSEWHERE: [(&[&str], &str, &str); 16] = [
    (
        &["F1", "#46", "#78", "#79", "(c)"],
        "rehearse/tests/it/sweeps.rs",
        "the_upgrade_of_three_and_three_survives_a_crash_after_a_slice_of_its_writes",
    ),
    (
        &["F4", "#154"],
        "rehearse/tests/it/certificates.rs",
        "certificates_that_go_with_something_else_hold_every_machine",
    ),
    (&["F12"], "rehearse/tests/it/matrix.rs", "three_and_three_disturbed_in_the_middle"),
    (&["F13"], "rehearse/tests/it/holds.rs", "a_pause_of_an_hour_in_the_control_plane_stage_costs_no_attempt"),
    (&["F17"], "rehearse/tests/it/faults.rs", "controllers_that_stood_still_do_no_harm_beside_those_that_took_over"),
    (
        &["F20"],
        "rehearse/tests/it/workers.rs",
        "a_budget_that_blocks_a_drain_is_told_within_a_minute_fails_the_update_and_is_forgotten_when_it_is_lifted",
    ),
    (
        &["F20"],
        "rehearse/tests/it/workers.rs",
        "a_worker_that_never_boots_is_told_and_one_that_boots_after_all_ends_the_update",
    ),
    (&["F14"], "rehearse/tests/it/webhook.rs", "a_wish_is_not_accepted_while_nobody_can_be_asked_about_it"),
    (
        &["F15"],
        "rehearse/tests/it/kept.rs",
        "an_upgrade_whose_image_is_gone_when_its_last_machine_is_made_ends_by_the_copy",
    ),
    (
        &["F15"],
        "rehearse/tests/it/kept.rs",
        "an_upgrade_whose_machines_cannot_be_made_any_more_fails_and_says_that_its_image_is_gone",
    ),
    (&["F21"], "rehearse/tests/it/kept.rs", "what_an_image_says_in_the_middle_of_an_upgrade_changes_nothing_about_it"),
    (&["#122"], "plan/src/roll/tests.rs", "endpoints_of_machines_that_are_gone_are_forgotten_below_1_22"),
    (
        &["(b)"],
        "controller/tests/it/upgrader.rs",
        "a_replacement_that_never_becomes_healthy_is_made_anew_under_the_same_name",
    ),
    (&["(d)"], "controller/src/upgrader/prepare/kubeadm.rs", "a_patch_that_could_not_be_applied_again_is_refused"),
    (&["(e)"], "controller/tests/it/admission.rs", "no_minor_is_skipped"),
    (&["(g)"], "sim/src/invariant/tests/etcd.rs", "e9_on_a_machine_that_is_gone_nothing_can_start"),
];

/// Failures that are not about this flow.
const NOT_HERE: [(&str, &str); 5] = [
    ("F11", "packages of a repository have a controller of their own, and are no part of this flow"),
    ("F22", "values are never edited as text: what is changed is a field of an object"),
    ("#110", "a kubeconfig leads to the address of the cluster, which outlives every machine"),
    ("#162", "etcd is asked through its own API, and not through a pod that may have no address"),
    ("#165", "etcd is asked through its own API, and not through a pod that may have no address"),
];

/// The failures that the rows of a file are about.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let lists = text.split("ids: &[").skip(1).filter_map(|rest| rest.split(']').next());
    lists.flat_map(|list| list.split('"').skip(1).step_by(2))
}

#[test]
fn every_failure_on_record_is_a_scenario_or_has_a_reason_not_to_be() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut covered: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(crates.join("rehearse/tests/it/seed_002")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        if file != "catalogue.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            covered.extend(ids(&text).map(|id| (id.to_owned(), file.clone())));
        }
    }
    for (ids, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        let is_test = text.split("#[test]\n").skip(1).any(|rest| rest.trim_start().starts_with(&format!("fn {test}(")));
        assert!(is_test, "{ids:?}: there is no test {test} in {file}");
        covered.extend(ids.iter().map(|id| ((*id).to_owned(), file.to_owned())));
    }
    for (id, why) in NOT_HERE {
        assert!(!why.is_empty());
        assert!(covered.insert(id.to_owned(), "not here".to_owned()).is_none(), "{id} is here all the same");
    }
    let numbered = (1..=22).map(|number| format!("F{number}"));
    let wanted: BTreeSet<String> = numbered.chain(ON_RECORD.split_whitespace().map(str::to_owned)).collect();
    assert_eq!(covered.keys().cloned().collect::<BTreeSet<_>>(), wanted);
}
