//! What people are told of a rehearsal: as text, as Markdown and as a page, and the same bytes on however many threads.

use windlass_rehearse::matrix::{FaultAt, Outcome, matrix};
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::report::{Asked, Estimate, Origin, Report, report};
use windlass_sim::world::World;

use crate::start::{self, TO};
use crate::walk::check_golden;
use crate::workers::put_a_pod_that_stays;

fn asked(request: Request, runs: u32, threads: usize) -> Asked {
    Asked { request, runs, threads, origin: Origin::default(), risks: Vec::new() }
}

fn reported(world: &World, runs: u32, threads: usize) -> Report {
    report(world, &asked(start::update(), runs, threads)).unwrap().0
}

#[test]
fn a_good_report_says_what_will_happen_and_is_the_same_on_any_number_of_threads() {
    let start = &start::one_and_one().world;
    let good = reported(start, 2, 1);
    assert!(good.is_good(), "{good}");
    check_golden("report-1-1.out", &good.text());
    check_golden("report-1-1.md", &good.markdown());
    assert_eq!(good.estimate, Estimate::DataFile);
    assert_eq!((good.peak.machines_before, good.peak.machines, good.replaced.len()), (2, 3, 2));
    let guilty = |index: usize| good.replaced[index].because.iter().any(|field| field.field.ends_with("version"));
    assert!(guilty(0) && guilty(1), "{good}");
    assert!(good.took.p50 < good.took.p90 && good.api.outages.is_empty());

    let html = good.html();
    assert!(html.contains("<svg") && !html.contains("<script") && !html.contains("href="), "{html}");

    let again = reported(start, 2, 2);
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&good).unwrap());
}

#[test]
fn a_budget_that_lets_nobody_go_is_named_with_its_pod_and_the_way_out() {
    let stays = start::changed(start::one_and_one(), |world| async move { put_a_pod_that_stays(&world).await });
    let bad = reported(&stays, 1, 1);
    assert!(!bad.is_good() && matches!(bad.verdict, Verdict::Failed { .. }), "{bad}");
    check_golden("report-budget.out", &bad.text());
    check_golden("report-budget.md", &bad.markdown());
    let held = &bad.pods.held[0];
    assert_eq!((held.budget.as_str(), held.to), ("default/web", None), "{bad}");
    assert!(held.pod.starts_with("default/web-"), "{bad}");
}

#[test]
fn an_update_after_another_is_estimated_from_what_that_one_took() {
    let first = windlass_rehearse::rehearsal::hold(
        &start::one_and_one().world,
        &start::update(),
        windlass_rehearse::crash::Crashes::none(),
    );
    let first = first.unwrap();
    let at = first.world.settings().clock.now();
    let ask = windlass_rehearse::rehearsal::Wish::release("v1.17.4");
    let second = report(&first.world, &asked(Request { ask, at, ..start::update() }, 1, 1)).unwrap().0;
    let Estimate::Recorded(recorded) = &second.estimate else { panic!("{second}") };
    assert_eq!(recorded.updates, ["my-tkc-1"]);
    assert!((60..=170).contains(&recorded.percent), "{second}");
    assert!(second.is_good() && second.text().contains("times: from my-tkc-1"), "{second}");
}

#[test]
fn a_fault_at_a_step_is_survived_recovered_from_or_not_there_to_bite() {
    let start = &start::one_and_one().world;
    let at = |fault: &str, step: &str| FaultAt { kind: fault.parse().unwrap(), step: Some(step.to_owned()) };
    let faults = [
        at("machine-boots-late", "my-tkc-workers-default-1-comes"),
        at("watch-expires", "controlPlane"),
        at("machine-boots-late", "my-tkc-workers-default-1-gone"),
    ];
    let found = matrix(start, &start::update(), &faults, 2).unwrap();
    assert_eq!(found.runs, 3);
    let cells: Vec<(&str, &str, &Outcome)> = found
        .rows
        .iter()
        .flat_map(|row| row.cells.iter().map(|cell| (&*row.fault, &*cell.step, &cell.outcome)))
        .collect();
    assert!(
        matches!(
            cells[..],
            [
                ("machine-boots-late", "my-tkc-workers-default-1-comes", Outcome::Recovered { .. }),
                ("watch-expires", "controlPlane", Outcome::Survived | Outcome::Recovered { .. })
            ]
        ),
        "{found:#?}"
    );
    let line = &found.rows[0].cells[0].replay;
    assert!(line.ends_with("--seed 1 --runs 1 --fault machine-boots-late@my-tkc-workers-default-1-comes"), "{line}");
    let why = matrix(start, &start::update(), &[at("any-order", "lunch")], 1).unwrap_err().to_string();
    assert!(why.contains("no step \"lunch\"") && why.contains("control-plane-1-joins"), "{why} {TO}");
}
