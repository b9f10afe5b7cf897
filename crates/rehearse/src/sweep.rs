//! An update, crashed once after every write: it must end in the same way, with the same machines ever made (G3).

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use windlass_sim::fault::Moment;
use windlass_sim::world::World;

use crate::crash::{Crashes, Write};
use crate::rehearsal::{self, Change, Ended, Error, Rehearsal, Request, Verdict};
use crate::state::State;

/// What became of an update that was crashed once after each of its writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sweep {
    /// The update without a crash.
    pub reference: Rehearsal,
    /// How many writes it has.
    pub writes: u64,
    /// What became of each crash, in the order of the writes.
    pub crashes: Vec<Crash>,
}

/// What became of one crash.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Crash {
    /// The write after which it was.
    pub write: Write,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a crash.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum Outcome {
    /// The end is the same, and so are the machines ever made.
    Survived,
    /// The update ended in another way.
    EndedOtherwise {
        /// How.
        verdict: Verdict,
    },
    /// Other machines were made: too many, or not those.
    OtherMachines {
        /// Machines that were made and should not have been.
        extra: Vec<String>,
        /// Machines that were not made.
        missing: Vec<String>,
    },
    /// An invariant was violated.
    Violated {
        /// Which, and how.
        violations: Vec<String>,
    },
    /// The World is not the same in the end.
    OtherEnd {
        /// In what it differs.
        differences: Vec<String>,
    },
}

impl Sweep {
    /// The crashes that were not survived.
    pub fn failures(&self) -> impl Iterator<Item = &Crash> {
        self.crashes.iter().filter(|crash| crash.outcome != Outcome::Survived)
    }
}

impl fmt::Display for Sweep {
    /// A line for each crash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Crash { write, outcome } in &self.crashes {
            writeln!(f, "{:>4}  {:<12} {:<90} {outcome}", write.number, write.caller, write.what)?;
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Survived => f.write_str("survived"),
            Self::EndedOtherwise { verdict } => write!(f, "{verdict}"),
            Self::OtherMachines { extra, missing } => write!(f, "extra machines {extra:?}, missing {missing:?}"),
            Self::Violated { violations } => write!(f, "violated {}", violations.join("; ")),
            Self::OtherEnd { differences } => write!(f, "another end: {}", differences.join("; ")),
        }
    }
}

/// Crashes an update once after each write whose number is picked, each time from the same start.
pub fn sweep(start: &World, request: &Request, mut pick: impl FnMut(u64) -> bool) -> Result<Sweep, Error> {
    sweep_at(start, request, |number| pick(number).then(|| vec![(number, Moment::After)]))
}

/// Crashes an update at the points that are picked for each of its writes, each time from the same start.
pub fn sweep_at(
    start: &World,
    request: &Request,
    mut pick: impl FnMut(u64) -> Option<Vec<(u64, Moment)>>,
) -> Result<Sweep, Error> {
    let reference = rehearsal::hold(start, request, Crashes::none())?;
    let end = State::of(&reference.world);
    let mut swept = Vec::new();
    for number in 1..=reference.writes.len() as u64 {
        let Some(points) = pick(number) else { continue };
        let crashed = rehearsal::hold(start, request, Crashes::at(points))?;
        // With the same seed the runs are the same until the crash, so this is the write that it was in the reference.
        let write = crashed.writes.iter().find(|write| write.number == number).cloned();
        swept.extend(write.map(|write| Crash { write, outcome: compare(&reference, &end, &crashed) }));
    }
    Ok(Sweep { writes: reference.writes.len() as u64, reference: reference.rehearsal, crashes: swept })
}

fn compare(reference: &Ended, end: &State, crashed: &Ended) -> Outcome {
    let (expected, found) = (&reference.rehearsal, &crashed.rehearsal);
    if found.verdict != expected.verdict {
        return Outcome::EndedOtherwise { verdict: found.verdict.clone() };
    }
    let (expected_machines, machines) = (created(expected), created(found));
    if machines != expected_machines {
        let extra = machines.difference(&expected_machines).cloned().collect();
        let missing = expected_machines.difference(&machines).cloned().collect();
        return Outcome::OtherMachines { extra, missing };
    }
    if found.violations.len() > expected.violations.len() {
        let line =
            |reported: &rehearsal::Reported| format!("{}: {}", reported.violation.id, reported.violation.message);
        return Outcome::Violated { violations: found.violations.iter().map(line).collect() };
    }
    let differences = end.differences(&State::of(&crashed.world));
    if differences.is_empty() { Outcome::Survived } else { Outcome::OtherEnd { differences } }
}

/// The machines that were ever made, by name. One that was made again is another.
fn created(rehearsal: &Rehearsal) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for machine in rehearsal.machines.iter().filter(|machine| machine.change == Change::Created) {
        let mut name = machine.name.clone();
        while !names.insert(name.clone()) {
            name.push_str(" again");
        }
    }
    names
}
