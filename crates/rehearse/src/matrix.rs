//! The fault matrix: an update, run once with each fault at each step where it can bite.
//!
//! Until the fault bites, such a run is the reference run, write by write: it has the same start and the same seed. So a step of
//! the reference is a time, and a fault at a step is one that begins then.

mod kinds;
mod steps;

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Serialize;
use windlass_sim::fault::{Moment, Scenario};
use windlass_sim::invariant::Violation;
use windlass_sim::timeline::What;
use windlass_sim::world::World;

use crate::crash::Crashes;
use crate::rehearsal::{self, Ended, Error, Rehearsal, Request, rehearse};
use crate::report::{Report, at_pace, badness, in_order, told};

pub use kinds::{FaultKind, UnknownFault};
pub use steps::{Step, steps};

/// Whoever is late by less than this was not held up.
const UNNOTICED: SignedDuration = SignedDuration::from_secs(5);
/// How much longer than the reference a run may take: the longest wait of any rule, four times.
const PATIENCE: Duration = Duration::from_secs(6 * 60 * 60);
/// Of more steps at which the same happens, the first of them are named.
const STEPS_MAX: usize = 3;
/// Of more writes than this, some are crashed at.
const CRASHES_MAX: usize = 40;

/// What became of an update with each fault at each step.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultMatrix {
    /// The steps of the reference run, in order.
    pub steps: Vec<String>,
    /// A row for each fault.
    pub rows: Vec<Row>,
    /// How many runs it took.
    pub runs: u32,
}

/// What became of an update with one fault.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The number of the fault in the list of faults: `F19`.
    pub id: String,
    /// Its name: `machine-never-boots`.
    pub fault: String,
    /// The steps at which it bit, in order.
    pub cells: Vec<Cell>,
}

/// What became of an update with one fault at one step.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The step.
    pub step: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The command that runs it again.
    pub replay: String,
    /// What goes wrong in it, as a file says it.
    #[serde(skip)]
    pub scenario: Scenario,
}

/// What became of a run in which something went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum Outcome {
    /// It was as if nothing had been.
    Survived,
    /// It ended as it should, later.
    Recovered {
        /// By so much.
        #[schemars(with = "String")]
        later: SignedDuration,
    },
    /// It did not end as it should, or something happened that must never be.
    Broken {
        /// What.
        why: String,
    },
}

/// A fault that is asked for, perhaps at one step only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultAt {
    /// Which.
    pub kind: FaultKind,
    /// At which step; at all of them without one.
    pub step: Option<String>,
}

/// What a run is to have.
struct Plan {
    kind: FaultKind,
    step: String,
    request: Request,
    crashes: Option<(u64, Moment)>,
}

/// There is no such step.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// A run could not be held.
    #[error(transparent)]
    Rehearse(#[from] Error),
    /// The reference run has no step of that name.
    #[error("the run has no step {step:?}; it has {}", .steps.join(", "))]
    NoStep {
        /// What was asked for.
        step: String,
        /// What there is.
        steps: Vec<String>,
    },
}

/// The matrix of an update that is reported: everything takes as long as in the runs of the report.
pub fn matrix_of(
    start: &World,
    request: &Request,
    report: &Report,
    faults: &[FaultAt],
    threads: usize,
) -> Result<FaultMatrix, MatrixError> {
    let paced = report.estimate.percent().map(|percent| at_pace(start, percent));
    matrix(paced.as_ref().unwrap_or(start), request, faults, threads)
}

/// Runs an update once with each of these faults at each step, and says what became of it.
pub fn matrix(
    start: &World,
    request: &Request,
    faults: &[FaultAt],
    threads: usize,
) -> Result<FaultMatrix, MatrixError> {
    let reference = rehearsal::hold(start, request, Crashes::none())?;
    let steps = steps(&reference.rehearsal);
    let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
    let unknown = faults.iter().filter_map(|fault| fault.step.as_ref()).find(|step| !names.contains(step));
    if let Some(step) = unknown {
        return Err(MatrixError::NoStep { step: step.clone(), steps: names });
    }
    let plans: Vec<Plan> = faults.iter().flat_map(|fault| plans(fault, &steps, &reference, request)).collect();
    let one = |plan: &Plan| hold(start, plan);
    let ended = in_order(&plans, threads, one);
    let mut rows: Vec<Row> = Vec::new();
    for (plan, run) in plans.iter().zip(ended) {
        let cell = match run {
            Ok(run) => cell(plan, &run, &reference.rehearsal, &steps),
            Err(error @ (Error::Broken(_) | Error::Ask { .. })) => Some(broke_down(plan, &error)),
            Err(error) => return Err(error.into()),
        };
        if let Some(cell) = cell {
            put(&mut rows, plan, cell);
        }
    }
    let runs = u32::try_from(plans.len()).unwrap_or(u32::MAX);
    Ok(FaultMatrix { steps: names, rows, runs })
}

/// Runs it.
fn hold(start: &World, plan: &Plan) -> Result<Rehearsal, Error> {
    match plan.crashes {
        Some(point) => rehearsal::hold(start, &plan.request, Crashes::at(vec![point])).map(|ended| ended.rehearsal),
        None => rehearse(start, &plan.request),
    }
}

/// The runs that a fault asks for.
fn plans(fault: &FaultAt, steps: &[Step], reference: &Ended, request: &Request) -> Vec<Plan> {
    let kind = fault.kind;
    let deadline = reference.rehearsal.took.unsigned_abs() + PATIENCE;
    let with = |faults: Scenario| Request { deadline, faults, ..request.clone() };
    if let Some(moment) = kind.crash() {
        let writes: Vec<u64> = reference.writes.iter().map(|write| write.number).collect();
        let stride = writes.len().div_ceil(CRASHES_MAX).max(1);
        let plan = |number: &u64| Plan {
            kind,
            step: fault.step.clone().unwrap_or_default(),
            request: with(request.faults.clone()),
            crashes: Some((*number, moment)),
        };
        return writes.iter().step_by(stride).map(plan).collect();
    }
    let meant = steps.iter().filter(|step| fault.step.as_ref().is_none_or(|wanted| *wanted == step.name));
    let plan = |step: &Step| {
        let mut faults = request.faults.clone();
        faults.faults.push(kind.at(step.after, &request.cluster.to_string()));
        Plan { kind, step: step.name.clone(), request: with(faults), crashes: None }
    };
    meant.map(plan).collect()
}

/// What became of a run; nothing if the fault did not bite, or not at the step that was asked for.
fn cell(plan: &Plan, run: &Rehearsal, reference: &Rehearsal, steps: &[Step]) -> Option<Cell> {
    let id = plan.kind.id();
    let bite = run.timeline.events.iter().find(|event| event.what == What::Fault && event.text.starts_with(id))?;
    let mut scenario = plan.request.faults.clone();
    let step = match plan.crashes {
        None => plan.step.clone(),
        Some((write, moment)) => {
            scenario.faults.push(kinds::crash(write, moment));
            let after = run.began.duration_until(bite.at);
            let last = steps.iter().rev().find(|step| step.after <= after).or(steps.first())?;
            // Several steps may be at the same time.
            let is_at = |step: &&Step| step.after == last.after && (plan.step.is_empty() || plan.step == step.name);
            steps.iter().rev().find(is_at)?.name.clone()
        }
    };
    let replay = format!("{} --runs 1 --fault {}@{step}", plan.request.replay(), plan.kind);
    Some(Cell { outcome: outcome(run, reference, plan.kind.tolerated()), step, replay, scenario })
}

/// A run that broke down, or could never be asked for, is one that did not end as it should.
fn broke_down(plan: &Plan, error: &Error) -> Cell {
    let (step, why) = (plan.step.clone(), error.to_string());
    let replay = format!("{} --runs 1 --fault {}@{step}", plan.request.replay(), plan.kind);
    Cell { outcome: Outcome::Broken { why }, step, replay, scenario: plan.request.faults.clone() }
}

/// Compares a run with the one in which nothing went wrong. What a fault itself does not let be is nobody's fault.
pub(crate) fn outcome(run: &Rehearsal, reference: &Rehearsal, tolerated: &[&str]) -> Outcome {
    let is_meant = |violation: &&Violation| !tolerated.contains(&violation.id.as_str());
    let [violations, before] = [run, reference]
        .map(|run| run.violations.iter().map(|reported| &reported.violation).filter(is_meant).collect::<Vec<_>>());
    if let Some(last) = violations.last().filter(|_| violations.len() > before.len()) {
        return Outcome::Broken { why: format!("{}: {}", last.id, last.message) };
    }
    if badness(&run.verdict) > badness(&reference.verdict) {
        return Outcome::Broken { why: run.verdict.to_string() };
    }
    let later = run.took - reference.took;
    if later <= UNNOTICED { Outcome::Survived } else { Outcome::Recovered { later } }
}

/// Puts a cell into its row. Where a step has one already, the worse of the two stays.
fn put(rows: &mut Vec<Row>, plan: &Plan, cell: Cell) {
    let name = plan.kind.to_string();
    let index = rows.iter().position(|row| row.fault == name).unwrap_or_else(|| {
        rows.push(Row { id: plan.kind.id().to_owned(), fault: name, cells: Vec::new() });
        rows.len() - 1
    });
    let Some(row) = rows.get_mut(index) else { return };
    match row.cells.iter_mut().find(|known| known.step == cell.step) {
        Some(known) if cell.outcome.rank() > known.outcome.rank() => *known = cell,
        Some(_) => {}
        None => row.cells.push(cell),
    }
}

impl FaultMatrix {
    /// The cells that were not survived.
    pub fn broken(&self) -> impl Iterator<Item = (&Row, &Cell)> {
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
        cells.filter(|(_, cell)| matches!(cell.outcome, Outcome::Broken { .. }))
    }

    /// A line for each fault, and one for what broke.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head()];
        for row in &self.rows {
            let of = |rank: u8| row.cells.iter().filter(move |cell| cell.outcome.rank() == rank).count();
            let latest = row.cells.iter().filter_map(|cell| cell.outcome.later()).max();
            let latest = latest.map(|later| format!(", at most {} later", told(later))).unwrap_or_default();
            let sign = if of(2) > 0 { '✖' } else { '✔' };
            let counts = format!("{} survived, {} recovered{latest}, {} broken", of(0), of(1), of(2));
            lines.push(format!("{sign} {:<4} {:<24} {counts}", row.id, row.fault));
        }
        lines.extend(self.broken_lines());
        lines
    }

    /// How many runs there were.
    pub(crate) fn head(&self) -> String {
        format!("{} runs with a fault, of an update that has {} steps", self.runs, self.steps.len())
    }

    /// What broke, and the command that shows it again. A fault that does the same at several steps is told of once.
    pub(crate) fn broken_lines(&self) -> Vec<String> {
        let mut alike: Vec<(&Row, &Cell, Vec<&str>)> = Vec::new();
        for (row, cell) in self.broken() {
            let known =
                alike.iter_mut().find(|(other, first, _)| other.fault == row.fault && first.outcome == cell.outcome);
            match known {
                Some((_, _, steps)) => steps.push(&cell.step),
                None => alike.push((row, cell, vec![&cell.step])),
            }
        }
        let told = |(row, cell, steps): (&Row, &Cell, Vec<&str>)| {
            let at = match steps.as_slice() {
                [one] => (*one).to_owned(),
                [rest @ .., last] if rest.len() <= STEPS_MAX => format!("{} and {last}", rest.join(", ")),
                all => format!("{} and {} more steps", all[..STEPS_MAX].join(", "), all.len() - STEPS_MAX),
            };
            let line = format!("✖ {} at {at}: {}", row.fault, cell.outcome);
            [line, format!("    again: {}", cell.replay)]
        };
        alike.into_iter().flat_map(told).collect()
    }
}

impl Outcome {
    fn rank(&self) -> u8 {
        match self {
            Self::Survived => 0,
            Self::Recovered { .. } => 1,
            Self::Broken { .. } => 2,
        }
    }

    fn later(&self) -> Option<SignedDuration> {
        match self {
            Self::Recovered { later } => Some(*later),
            Self::Survived | Self::Broken { .. } => None,
        }
    }

    /// The whole in a few letters: a cell of a table.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::Survived => "✔".to_owned(),
            Self::Recovered { later } => format!("+{}", told(*later)),
            Self::Broken { .. } => "✖".to_owned(),
        }
    }

    /// How a page marks it.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Survived => "survived",
            Self::Recovered { .. } => "recovered",
            Self::Broken { .. } => "broken",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Survived => f.write_str("survived"),
            Self::Recovered { later } => write!(f, "recovered, {} later", told(*later)),
            Self::Broken { why } => write!(f, "broken: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_in_the_same_way_at_several_steps_is_told_of_once() {
        let cell = |step: &str, why: &str| Cell {
            step: step.to_owned(),
            outcome: Outcome::Broken { why: why.to_owned() },
            replay: format!("--fault x@{step}"),
            scenario: Scenario::default(),
        };
        let told = |cells: Vec<Cell>| {
            let row = Row { id: "F19".to_owned(), fault: "x".to_owned(), cells };
            FaultMatrix { steps: Vec::new(), rows: vec![row], runs: 1 }.broken_lines()
        };
        let same: Vec<Cell> = ["a", "b", "c", "d", "e"].map(|step| cell(step, "stuck")).into();
        assert_eq!(told(same.clone()), ["✖ x at a, b, c and 2 more steps: broken: stuck", "    again: --fault x@a"]);
        assert_eq!(told(same[..2].to_vec())[0], "✖ x at a and b: broken: stuck");
        assert_eq!(told(same[..4].to_vec())[0], "✖ x at a, b, c and d: broken: stuck");
        let two = told(vec![cell("a", "stuck"), cell("b", "failed")]);
        assert_eq!(
            two,
            ["✖ x at a: broken: stuck", "    again: --fault x@a", "✖ x at b: broken: failed", "    again: --fault x@b"]
        );
    }
}
