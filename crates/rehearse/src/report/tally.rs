//! How the runs ended, counted.

use serde::Serialize;

use crate::rehearsal::{Rehearsal, Reported, Verdict};

/// Runs that ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// In which way. Where names in it differ from run to run, it is that of the first.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How many.
    pub runs: u32,
    /// The seed of the first of them.
    pub seed: u64,
    /// Which of all runs it was, from 0.
    #[serde(skip)]
    pub(super) first_run: usize,
}

/// Something that must never be and was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Violated {
    /// The first time.
    #[serde(flatten)]
    pub first: Reported,
    /// In how many runs.
    pub runs: u32,
}

/// How the runs ended, the worst first.
pub(super) fn verdicts(runs: &[Rehearsal]) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    for (first_run, Rehearsal { verdict, seed, .. }) in runs.iter().enumerate() {
        match tallies.iter_mut().find(|tally| badness(&tally.verdict) == badness(verdict)) {
            Some(known) => known.runs += 1,
            None => tallies.push(Tally { verdict: verdict.clone(), runs: 1, seed: *seed, first_run }),
        }
    }
    tallies.sort_by_key(|tally| std::cmp::Reverse(badness(&tally.verdict)));
    tallies
}

/// What was violated, each rule once, in the order in which it was first seen.
pub(super) fn violations(runs: &[Rehearsal]) -> Vec<Violated> {
    let mut seen: Vec<Violated> = Vec::new();
    for run in runs {
        let mut of_run: Vec<&Reported> = Vec::new();
        for reported in &run.violations {
            if of_run.iter().all(|known| known.violation.id != reported.violation.id) {
                of_run.push(reported);
            }
        }
        for reported in of_run {
            match seen.iter_mut().find(|known| known.first.violation.id == reported.violation.id) {
                Some(known) => known.runs += 1,
                None => seen.push(Violated { first: reported.clone(), runs: 1 }),
            }
        }
    }
    seen
}

/// Which of two ends is worse, as a number.
pub(crate) fn badness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Reached { .. } => 0,
        Verdict::Gone => 1,
        Verdict::GivenUp { .. } => 2,
        Verdict::Refused { .. } => 3,
        Verdict::Stuck { .. } => 4,
        Verdict::Failed { .. } => 5,
    }
}
