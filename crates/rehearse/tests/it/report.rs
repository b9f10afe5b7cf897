//! What people are told of a rehearsal: as text, as Markdown and as a page, and the same bytes on however many threads.

use std::sync::LazyLock;

use jiff::SignedDuration;
use windlass_rehearse::matrix::{FaultAt, Outcome, matrix, matrix_of, steps};
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::report::{Asked, Estimate, Origin, Report, Wait, report};
use windlass_sim::timeline::Held;
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

/// A cluster of one and one, upgraded twice.
static GOOD: LazyLock<Report> = LazyLock::new(|| reported(&start::one_and_one().world, 2, 1));

#[test]
fn a_good_report_says_what_will_happen_and_is_the_same_on_any_number_of_threads() {
    let (start, good) = (&start::one_and_one().world, &*GOOD);
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
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(good).unwrap());
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
    let asked = asked(Request { ask, at, ..start::update() }, 1, 1);
    let second = report(&first.world, &asked).unwrap().0;
    let Estimate::Recorded(recorded) = &second.estimate else { panic!("{second}") };
    assert_eq!(recorded.updates, ["my-tkc-1"]);
    assert!((60..=170).contains(&recorded.percent), "{second}");
    assert!(second.is_good() && second.text().contains("times: from my-tkc-1"), "{second}");

    // Runs with a fault take as long: the fault begins when the step does in the run that is told of.
    assert_ne!(recorded.percent, 100, "it would say nothing");
    let fault = FaultAt { kind: "machine-boots-late".parse().unwrap(), step: Some("workers".to_owned()) };
    let found = matrix_of(&first.world, &asked.request, &second, &[fault], 1).unwrap();
    let begins = steps(&second.reference).into_iter().find(|step| step.name == "workers").unwrap().after;
    assert_eq!(found.rows[0].cells[0].scenario.faults[0].when.after.0, begins.unsigned_abs());
}

#[test]
fn only_what_holds_an_update_up_stands_in_its_way() {
    let wait = |reason: &str, minutes: i64, way_out: &str| Wait {
        stage: "workers".to_owned(),
        reason: reason.to_owned(),
        object: format!("Thing/{reason}"),
        message: "it is not there".to_owned(),
        because: Vec::new(),
        way_out: Some(way_out.to_owned()),
        took: SignedDuration::from_mins(minutes),
        at_the_end: true,
    };
    let stuck = Verdict::Stuck { waiting_for: "it".to_owned() };
    let check = |verdict: &Verdict, waits: &[Wait], told: &[&str]| {
        let mut report = GOOD.clone();
        report.verdict = verdict.clone();
        report.verdicts[0].verdict = verdict.clone();
        report.waits = waits.to_vec();
        let text = report.text();
        let named: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(" for Thing/")?.1.split(':').next()).collect();
        assert_eq!(named, told, "{text}");
        assert_eq!(text.contains("What stands in the way"), !told.is_empty(), "{text}");
    };
    let order = wait("ControlPlaneBehind", 600, "wait; if it lasts, look at it");
    let short = wait("PackageNotReady", 1, "wait; if it lasts, look at it");
    let long = wait("MachineNotReady", 20, "wait; if it lasts, look at it");
    let held = wait("Held", 20, "kubectl annotate it");
    let all = [order.clone(), long.clone(), held, short.clone()];
    check(&GOOD.verdict, &all, &["Held"]);
    check(&stuck, &all, &["MachineNotReady", "Held"]);
    // Better than nothing.
    check(&stuck, &[order, short], &["ControlPlaneBehind", "PackageNotReady"]);

    // A pod that has to wait for another to be ready is none, unless it takes long.
    let kept = |seconds: i64| {
        let mut report = GOOD.clone();
        let (from, [machine, pod, budget, why]) =
            (report.reference.began, ["m", "web/a", "web/b", "one"].map(str::to_owned));
        report.pods.held =
            vec![Held { machine, pod, budget, why, from, to: Some(from + SignedDuration::from_secs(seconds)) }];
        report.text().contains("… Pod web/a keeps Machine m for")
    };
    assert_eq!([kept(30), kept(600)], [false, true]);
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
