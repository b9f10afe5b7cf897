//! `docs/invariants.md` has every rule, every exception, and for each rule a test that breaks it on purpose.

use std::fmt::Write;
use std::path::Path;

use crate::invariant::{EXEMPTIONS, RULES};

/// The tests, by file.
const TESTS: [(&str, &str); 6] = [
    ("versions", include_str!("versions.rs")),
    ("etcd", include_str!("etcd.rs")),
    ("control_plane", include_str!("control_plane.rs")),
    ("addons", include_str!("addons.rs")),
    ("workers", include_str!("workers.rs")),
    ("ownership", include_str!("ownership.rs")),
];

/// Ids of the list that no rule is for, and why not.
const NOT_HERE: [(&str, &str); 5] = [
    ("E11", "nobody takes snapshots of etcd in a World yet"),
    ("O7", "preconditions are part of a request; what is committed does not show them"),
    ("O8", "no certificate in a World comes to its end yet"),
    ("O9", "a kubeconfig in a World leads to the cluster of its name, and there is no other way in"),
    ("V13", "arithmetic that neither underflows nor panics is a property of versions, tested where they are"),
];

#[test]
fn every_rule_is_in_the_document_with_a_test_that_breaks_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/invariants.md");
    let document = document();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == document, "docs/invariants.md is stale: WINDLASS_UPDATE=1 writes it anew");
}

#[test]
fn what_no_rule_is_for_is_not_checked_after_all() {
    let is_rule = |id: &str| RULES.iter().any(|rule| rule.id == id);
    assert!(NOT_HERE.iter().all(|(id, _)| !is_rule(id)));
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    for rule in sorted() {
        let tests = tests_of(rule.id);
        assert!(!tests.is_empty(), "{} has no test that breaks it", rule.id);
        let tests: Vec<String> = tests.into_iter().map(|test| format!("`{test}`")).collect();
        writeln!(text, "| {} | {} | {} |", rule.id, rule.demands, tests.join(", ")).unwrap();
    }
    text.push_str(EXCEPTIONS);
    for exemption in EXEMPTIONS {
        let below = match exemption.below {
            None => "all versions".to_owned(),
            Some((minor, 0)) => format!("below {minor}"),
            Some((minor, patch)) => format!("below {minor}.{patch}"),
        };
        writeln!(text, "| {} | {below} | {} |", exemption.rule, exemption.why).unwrap();
    }
    text.push_str(ELSEWHERE);
    for (id, why) in NOT_HERE {
        writeln!(text, "| {id} | {why} |").unwrap();
    }
    text
}

/// `V2` before `V10`.
fn sorted() -> Vec<&'static crate::invariant::Rule> {
    let mut rules: Vec<_> = RULES.iter().collect();
    rules.sort_by_key(|rule| (rule.id.as_bytes()[0], rule.id[1..].parse::<u32>().unwrap()));
    rules
}

/// The tests whose names begin with the id of a rule, and that expect it to be reported.
fn tests_of(id: &str) -> Vec<&'static str> {
    let prefix = format!("fn {}_", id.to_lowercase());
    let mut tests = Vec::new();
    for (_, source) in TESTS {
        for test in source.split("#[test]\n").skip(1) {
            let name = test.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).unwrap();
            if test.starts_with(&prefix) && test.contains(&format!("\"{id}\"")) {
                tests.push(name);
            }
        }
    }
    tests
}

const HEAD: &str = "\
# Invariants

What must be true in a World after every committed write and every event of its machines, whoever made it: Windlass, Cluster API, a
person or a fault. One rule is one file in `crates/sim/src/invariant`; it looks at what is true (`crates/sim/src/truth`), never at what a
controller believes. What stays wrong is told once. A rehearsal in which one is told has failed.

Clusters that Cluster API rolls (KubeadmControlPlane, MachineDeployments, a topology) are watched like our own. What is ours alone,
that add-ons come first (D1) and that no pool asks ahead of its control plane (a part of D2), is not asked of them.

This page is written by `WINDLASS_UPDATE=1 cargo test -p windlass-sim --lib document`; a test fails when it is stale. Ids: V versions, E etcd,
C control planes, D add-ons and order, W workers, O ownership.

| id | demands | broken on purpose by |
|---|---|---|
";

const EXCEPTIONS: &str = "
## Exceptions

Each is declared, reported whenever it is made use of, and tested to be no wider.

| rule | versions | why |
|---|---|---|
";

const ELSEWHERE: &str = "
## Not on what is true

Ids of V, E, C, W and O for which there is no rule here, and why. Of D, those about pauses, pruning, hooks and fields (D3, D5, D9 to D13)
are about what a controller sends or does over time, and belong to its own tests.

| id | why |
|---|---|
";
