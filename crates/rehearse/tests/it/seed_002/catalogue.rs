//! None of the failures is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Failures that a test of another file is about.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("F1", "crashes.rs", "the_upgrade_of_one_and_one_survives_a_crash_after_every_write"),
    ("F4", "certificates.rs", "certificates_that_go_with_something_else_hold_every_machine"),
    ("F12", "matrix.rs", "three_and_three_disturbed_in_the_middle"),
    ("F13", "holds.rs", "a_pause_of_an_hour_in_the_control_plane_stage_costs_no_attempt"),
    ("F17", "faults.rs", "controllers_that_stood_still_do_no_harm_beside_those_that_took_over"),
    ("F18", "late_role.rs", "a_late_role_costs_three_attempts_or_all_four_and_never_the_creation"),
];

/// Failures that are not about this flow, or are shown below it.
const NOT_HERE: [(&str, &str); 3] = [
    ("F7", "members of etcd that are no machines are a matter of the rules of the plan, which have tables and a model"),
    ("F11", "packages of a repository have a controller of their own, and are no part of this flow"),
    ("F22", "values are never edited as text: what is changed is a field of an object"),
];

#[test]
fn every_failure_on_record_is_a_scenario_or_has_a_reason_not_to_be() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut covered: BTreeMap<String, String> = BTreeMap::new();
    for file in ["control_plane.rs", "etcd.rs", "network.rs", "people.rs", "releases.rs", "workers.rs"] {
        let text = std::fs::read_to_string(here.join("seed_002").join(file)).unwrap();
        let ids = text.split("id: \"").skip(1).filter_map(|rest| rest.split('"').next());
        covered.extend(ids.map(|id| (id.to_owned(), file.to_owned())));
    }
    for (id, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(here.join(file)).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {test}(")), "{id}: there is no test {test} in {file}");
        covered.entry(id.to_owned()).or_insert_with(|| file.to_owned());
    }
    for (id, why) in NOT_HERE {
        assert!(!why.is_empty());
        assert!(covered.insert(id.to_owned(), "not here".to_owned()).is_none(), "{id} is here all the same");
    }
    let wanted: BTreeSet<String> = (1..=22).map(|number| format!("F{number}")).collect();
    assert_eq!(covered.keys().cloned().collect::<BTreeSet<_>>(), wanted);
}
