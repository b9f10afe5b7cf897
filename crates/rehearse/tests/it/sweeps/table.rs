//! The table of named regressions in docs/reliability.md: all are in it, and what it names is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_rehearse::sweep::Kind;

use super::mutations::{BY_RULE, LIST, Mutation, NOT_HERE};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(repository().join("docs/reliability.md")).unwrap()
}

/// Whether a file below `crates` has a test of this name, also one that searches at random.
fn is_test(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(repository().join("crates").join(file)).unwrap_or_default();
    text.split("#[test]\n").skip(1).any(|rest| rest.trim_start().starts_with(&format!("fn {name}(")))
}

#[test]
fn every_named_regression_has_a_test_or_a_trial_that_is_there_or_a_reason() {
    let mut found = BTreeSet::new();
    let page = page();
    let regressions = page.split("## Named regressions").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    for line in regressions.lines().filter(|line| line.starts_with("| B")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (id, covered) = (cells[1], cells[3]);
        for part in covered.split("<br>").map(str::trim) {
            match (part.strip_prefix("trials "), part.strip_prefix("not here: ")) {
                (Some(kinds), _) => {
                    let kinds = kinds.split(", ").map(|kind| kind.trim_matches('`'));
                    kinds.for_each(|kind| assert!(!Kind::called(kind).is_empty(), "{id}: there are no trials {kind}"));
                }
                (_, Some(why)) => assert!(why.len() > 20, "{id}: {why}"),
                (None, None) => {
                    let (file, name) =
                        part.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{id}: {part}"));
                    assert!(is_test(file, name), "{id}: there is no test {name} in {file}");
                }
            }
        }
        assert!(found.insert(id.to_owned()), "{id} is there twice");
    }
    assert_eq!(found, numbers());
}

#[test]
fn every_kind_of_trials_is_on_the_page_with_what_it_does() {
    let page = page();
    for kind in Kind::all() {
        let row = format!("| {} | `{}` | {} |", kind.id, kind.name, kind.what);
        assert!(page.contains(&row), "this row is missing in docs/reliability.md:\n{row}");
    }
}

/// The numbers of all named regressions.
fn numbers() -> BTreeSet<String> {
    (1..=27).map(|number| format!("B{number:02}")).collect()
}

#[test]
fn every_named_regression_is_put_back_or_is_not_about_anything_that_there_is() {
    let page = page();
    let by_rule =
        BY_RULE.map(|(id, what, test)| (id, format!("| {id} | {what} | `{test}` | the rule that it tests |"), test));
    for (id, _, test) in &by_rule {
        let (file, name) = test.split_once("::").unwrap();
        assert!(is_test(file, name), "{id}: there is no test {name} in {file}");
    }
    let rows = LIST.iter().map(Mutation::row).chain(by_rule.iter().map(|(_, row, _)| row.clone()));
    let missing: Vec<String> = rows.filter(|row| !page.contains(row)).collect();
    assert!(missing.is_empty(), "these rows are missing in docs/reliability.md:\n{}", missing.join("\n"));

    let ids = LIST.iter().map(|mutation| mutation.id).chain(BY_RULE.map(|(id, ..)| id));
    let put_back: BTreeSet<String> = ids.filter(|id| id.starts_with('B')).map(str::to_owned).collect();
    let not_here: BTreeSet<String> = NOT_HERE.map(str::to_owned).into();
    assert_eq!(&put_back | &not_here, numbers());
    assert!(put_back.is_disjoint(&not_here));
    let concerns = numbers().len() - NOT_HERE.len();
    let score = format!("{} of {concerns} are put back, and each is seen.", put_back.len());
    assert!(page.contains(&score), "docs/reliability.md does not say: {score}");
    for id in NOT_HERE {
        let row = page.lines().find(|line| line.starts_with(&format!("| {id} |")));
        assert!(row.is_some_and(|row| row.contains("| not here: ")), "{id} has no reason in docs/reliability.md");
    }
}
