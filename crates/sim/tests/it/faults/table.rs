//! The table of faults in the documents: every fault is in it, with a test that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The faults that the World has.
fn wanted() -> BTreeSet<String> {
    (1..=30).chain([33, 36, 39]).map(|number| format!("F{number:02}")).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the table: the fault, and the tests that show it, as file and name.
fn rows() -> BTreeMap<String, Vec<(String, String)>> {
    let text = std::fs::read_to_string(repository().join("docs/faults.md")).unwrap();
    let mut rows: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| F")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let tests = cells[4].split("<br>").map(|cell| cell.trim().trim_matches('`').split_once("::").unwrap());
        let tests = tests.map(|(file, name)| (file.to_owned(), name.to_owned()));
        rows.entry(cells[1].to_owned()).or_default().extend(tests);
    }
    rows
}

#[test]
fn every_fault_has_a_test_that_shows_it_biting() {
    let rows = rows();
    assert_eq!(rows.keys().cloned().collect::<BTreeSet<_>>(), wanted());
    for (fault, tests) in rows {
        assert!(!tests.is_empty(), "{fault}");
        for (file, name) in tests {
            let path = repository().join("crates").join(&file);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(text.contains(&format!("#[test]\nfn {name}(")), "{fault}: there is no test {name} in {file}");
        }
    }
}
