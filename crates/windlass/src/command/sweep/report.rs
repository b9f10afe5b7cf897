//! What a sweep found, for people and for scripts.

use std::collections::BTreeSet;

use serde::Serialize;
use windlass_rehearse::sweep::{Kind, Reference, Trial, Tried};

use super::figures::Figures;
use crate::output;

/// How many broken trials of a kind are told in full.
const TOLD_MAX: usize = 3;

/// What a sweep found.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The command, without the trials.
    command: String,
    reference: Reference,
    kinds: Vec<Swept>,
}

/// What was found in the trials of a kind.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Swept {
    id: &'static str,
    name: &'static str,
    what: &'static str,
    /// How many trials there were.
    trials: usize,
    /// In how many of them something went wrong as it should.
    bit: usize,
    /// How many were broken.
    broken: usize,
    /// The writes that something went wrong at, or in the moment of.
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<usize>,
    /// Each trial.
    results: Vec<Tried>,
    #[serde(skip)]
    figures: Figures,
}

impl Swept {
    /// What was found.
    pub fn new(kind: &Kind, results: Vec<Tried>, trials: &[Trial], figures: Figures) -> Self {
        let hit = trials.iter().zip(&results).filter(|(_, tried)| tried.bit);
        let writes: BTreeSet<u64> = hit.flat_map(|(trial, _)| trial.writes()).collect();
        Self {
            id: kind.id,
            name: kind.name,
            what: kind.what,
            trials: results.len(),
            bit: results.iter().filter(|tried| tried.bit).count(),
            broken: results.iter().filter(|tried| !tried.broken.is_empty()).count(),
            writes: kind.is_at_writes().then_some(writes.len()),
            results,
            figures,
        }
    }

    fn row(&self, writes: usize, threads: usize) -> Vec<String> {
        let Figures { wall, cpu } = self.figures;
        let core_seconds = cpu.unwrap_or(wall * u32::try_from(threads).unwrap_or(1)).as_secs_f64();
        let count = f64::from(u32::try_from(self.trials).unwrap_or(u32::MAX));
        let covered = self.writes.map(|covered| format!("{covered} of {writes} ({} %)", 100 * covered / writes.max(1)));
        vec![
            self.id.to_owned(),
            self.name.to_owned(),
            self.trials.to_string(),
            self.bit.to_string(),
            self.broken.to_string(),
            output::cell(covered),
            format!("{:.1}", wall.as_secs_f64()),
            if core_seconds > 0.0 { format!("{:.2}", count / core_seconds) } else { "-".to_owned() },
        ]
    }
}

impl Report {
    /// Nothing was tried yet.
    pub fn new(command: String, reference: &Reference) -> Self {
        Self { command, reference: reference.clone(), kinds: Vec::new() }
    }

    /// Something was tried.
    pub fn add(&mut self, swept: Swept) {
        self.kinds.push(swept);
    }

    /// Whether something must not be and is.
    pub fn is_broken(&self) -> bool {
        self.kinds.iter().any(|kind| kind.broken > 0)
    }

    /// For people.
    pub fn text(&self, threads: usize) -> String {
        let writes = self.reference.writes.len();
        let took = output::took(self.reference.took);
        let head = format!("{}: {writes} writes in {took}, {}\n", self.command, self.reference.verdict);
        let header = ["FAULT", "TRIALS", "COUNT", "BIT", "BROKEN", "WRITES COVERED", "SECONDS", "PER CORE-SECOND"];
        let table = output::table(&header, self.kinds.iter().map(|kind| kind.row(writes, threads)));
        let mut lines = vec![head, table, String::new()];
        for kind in &self.kinds {
            let broken = kind.results.iter().filter(|tried| !tried.broken.is_empty());
            for tried in broken.take(TOLD_MAX) {
                lines.push(format!("✖ {} {}: {tried}", kind.id, kind.what));
                lines.push(format!("    replay: {}", self.replay(&tried.name)));
            }
            if kind.broken > TOLD_MAX {
                lines.push(format!("  … and {} more of {}", kind.broken - TOLD_MAX, kind.name));
            }
        }
        let sum = |of: fn(&Swept) -> usize| self.kinds.iter().map(of).sum::<usize>();
        let (trials, broken) = (sum(|kind| kind.trials), sum(|kind| kind.broken));
        lines.push(match broken {
            0 => format!("✔ {trials} trials, none is broken"),
            _ => format!("✖ {broken} of {trials} trials are broken"),
        });
        lines.join("\n")
    }

    /// The command that shows a trial again.
    fn replay(&self, trial: &str) -> String {
        format!("{} --trial {trial}", self.command)
    }
}
