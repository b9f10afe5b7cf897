//! The table of faults in docs/packages.md: all are in it, what it names is there, and each is played with both ways to hold a cluster.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_fault_on_the_way_of_packages_has_a_test_that_is_there() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(repository.join("docs/packages.md")).unwrap();
    let table =
        page.split("<!-- faults -->").nth(1).and_then(|rest| rest.split("<!-- end of faults -->").next()).unwrap();
    let mut found = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| F") || line.starts_with("| B")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert!(found.insert(cells[1].to_owned()), "{} is there twice", cells[1]);
        let mut played = String::new();
        for test in cells[3].split("<br>") {
            let (file, name) = test.trim().trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{line}"));
            let text = std::fs::read_to_string(repository.join("crates").join(file)).unwrap_or_default();
            let mut tests = text.split("#[test]\n").skip(1);
            let found = tests.find(|rest| rest.trim_start().starts_with(&format!("fn {name}(")));
            let body = found.and_then(|rest| rest.split("\n}\n").next());
            played += body.unwrap_or_else(|| panic!("{}: there is no test {name} in {file}", cells[1]));
        }
        for by in ["HoldBy::Pause", "HoldBy::Hooks"] {
            assert!(played.contains(by), "{}: nobody plays it with {by}", cells[1]);
        }
    }
    let faults = (9..=19).map(|number| format!("F{number}"));
    assert_eq!(found, faults.chain((13..=16).map(|number| format!("B{number}"))).collect());
}
