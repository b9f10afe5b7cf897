//! `docs/risks.md` has every check as the code has it.

use windlass_plan::risk::{RiskId, Severity};

const DOCUMENT: &str = include_str!("../../../../../docs/risks.md");

/// The cells of the rows under a heading.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = DOCUMENT.split_once(heading).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| ")).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_table_has_every_check_that_decides_something_in_order() {
    let there: Vec<(&str, &str, String)> = rows("## Decided")
        .iter()
        .map(|row| {
            let [id, what, how, severity, way_out] = row[..] else { panic!("{row:?}") };
            assert!(!how.is_empty() && !way_out.is_empty(), "{id}");
            (id.trim_matches('`'), what, severity.to_owned())
        })
        .collect();
    let decided = RiskId::ALL.into_iter().filter(|id| id.undecided().is_none());
    let shown = |severities: &[Severity]| severities.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let wanted: Vec<(&str, &str, String)> =
        decided.map(|id| (id.as_str(), id.about(), shown(id.severities()))).collect();
    assert_eq!(there, wanted);
}

#[test]
fn the_table_has_every_check_that_nothing_can_decide_and_why() {
    let there: Vec<(&str, &str, &str)> = rows("## Not decided")
        .iter()
        .map(|row| {
            let [id, what, why] = row[..] else { panic!("{row:?}") };
            (id.trim_matches('`'), what, why)
        })
        .collect();
    let wanted: Vec<(&str, &str, &str)> =
        RiskId::ALL.into_iter().filter_map(|id| Some((id.as_str(), id.about(), id.undecided()?))).collect();
    assert_eq!(there, wanted);
}
