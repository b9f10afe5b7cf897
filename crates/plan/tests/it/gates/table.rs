//! The table of gates and rules that people read says what is so.

use std::collections::BTreeMap;

use windlass_plan::gate::Gate;

const TABLE: &str = include_str!("../../../../../docs/gates.md");

/// Where the tests are that the table names.
const TESTS: [&str; 13] = [
    include_str!("../gates.rs"),
    include_str!("../kept.rs"),
    include_str!("../render.rs"),
    include_str!("../second_opinion.rs"),
    include_str!("../seed/packages.rs"),
    include_str!("../story.rs"),
    include_str!("../releases/objects.rs"),
    include_str!("../../../src/render/cover.rs"),
    include_str!("../../../src/target/tests.rs"),
    include_str!("../../../../api/src/name/child.rs"),
    include_str!("../../../../api/src/version/minor.rs"),
    include_str!("../roll.rs"),
    include_str!("roll.rs"),
];

/// The cells of the rows under a heading, but for the first two.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = TABLE.split_once(heading).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| ")).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_table_has_every_gate_in_order() {
    let there: Vec<(String, String)> =
        rows("# Gates").iter().map(|row| (row[0].trim_matches('`').to_owned(), row[1].to_owned())).collect();
    let shown = |gate: Gate| match gate.rules() {
        [] => "–".to_owned(),
        rules => rules.join(", "),
    };
    assert_eq!(there, Gate::ALL.map(|gate| (gate.to_string(), shown(gate))));
}

#[test]
fn every_rule_has_its_gates_or_a_test_that_it_cannot_be_broken() {
    let mut there: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows("## Rules") {
        let [id, kept_by, how] = row[..] else { panic!("{row:?}") };
        let gates: Vec<&str> = quoted(kept_by).collect();
        assert_eq!(kept_by == "construction", gates.is_empty() && quoted(how).next().is_some(), "{id}");
        for test in quoted(how) {
            assert!(TESTS.iter().any(|source| source.contains(&format!("fn {test}("))), "{id}: {test}");
        }
        assert_eq!(there.insert(id, gates), None, "{id} is there twice");
    }
    for (letter, count) in [("V", 13), ("E", 13), ("C", 11), ("D", 13)] {
        for number in 1..=count {
            let id = format!("{letter}{number}");
            let gates: Vec<&str> =
                Gate::ALL.into_iter().filter(|gate| gate.rules().contains(&id.as_str())).map(Gate::as_str).collect();
            assert_eq!(there.get(id.as_str()), Some(&gates), "{id}");
        }
    }
}
