//! The kinds of trials: each fault of the list that can be put at a write, at a moment or into a seed.
//!
//! A trial is known by its name, `crash-after-17`: its kind, and the write, the two writes or the seed that it is about.

mod infrastructure;
mod people;
mod requests;

use windlass_runtime::chance::Seed;
use windlass_sim::fault::{Moment, Scenario, Span};

use super::plan::{Expect, Plan};
use super::subject::Subject;
use crate::crash::Write;

/// A kind of trials.
pub struct Kind {
    /// Its number in the list of faults; `F00` where nothing goes wrong, and `swarm` where several things do.
    pub id: &'static str,
    /// What its trials are called.
    pub name: &'static str,
    /// What is done in them.
    pub what: &'static str,
    pub(super) each: Each,
    plan: fn(&Course<'_>, &[u64]) -> Option<Plan>,
}

/// What there is a trial for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Each {
    /// Each write.
    Write,
    /// Each two writes, those that are next to each other first.
    Pair,
    /// Each seed.
    Seed,
}

/// What the run without a fault was like: where trials can be put.
pub(super) struct Course<'a> {
    pub(super) writes: &'a [Write],
    pub(super) subject: &'a Subject,
}

impl<'a> Course<'a> {
    /// The write of a number.
    fn write(&self, number: u64) -> Option<&'a Write> {
        self.writes.iter().find(|write| write.number == number)
    }

    /// When a write was, from the start on.
    fn at(&self, number: u64) -> Option<Span> {
        let since = self.subject.request.at.duration_until(self.write(number)?.at?);
        since.try_into().ok().map(Span)
    }
}

const fn kind(
    id: &'static str,
    name: &'static str,
    what: &'static str,
    each: Each,
    plan: fn(&Course<'_>, &[u64]) -> Option<Plan>,
) -> Kind {
    Kind { id, name, what, each, plan }
}

/// A kind with a trial for each write.
const fn at(id: &'static str, name: &'static str, what: &'static str, plan: PlanAt) -> Kind {
    kind(id, name, what, Each::Write, plan)
}

type PlanAt = fn(&Course<'_>, &[u64]) -> Option<Plan>;

/// Crashes, orders, seeds: what is not about single requests.
const OF_RUNS: [Kind; 6] = [
    kind("F00", "fault-free", "nothing goes wrong: false alarms", Each::Seed, |_, numbers| {
        Some(Plan { seed: seed(numbers), ..Plan::new(Expect::Alike) })
    }),
    at("F01", "crash-after", "a crash after a write", |_, numbers| {
        Some(Plan::crash(vec![(*numbers.first()?, Moment::After)]))
    }),
    at("F02", "crash-before", "a crash before a write", |_, numbers| {
        Some(Plan::crash(vec![(*numbers.first()?, Moment::Before)]))
    }),
    kind("F03", "crash-pair", "a crash after a write, and one at a later write", Each::Pair, |_, numbers| {
        let (first, second) = (*numbers.first()?, *numbers.get(1)?);
        let moment = if (first + second).is_multiple_of(2) { Moment::Before } else { Moment::After };
        Some(Plan::crash(vec![(first, Moment::After), (second, moment)]))
    }),
    kind("F16", "any-order", "what is ready runs in any order", Each::Seed, |_, numbers| {
        let scenario = Scenario::of(windlass_sim::fault::Fault::AnyOrder {});
        Some(Plan { seed: seed(numbers), scenario, ..Plan::new(Expect::Same) })
    }),
    kind("swarm", "swarm", "several things at once, by seed", Each::Seed, swarm),
];

fn seed(numbers: &[u64]) -> Option<Seed> {
    numbers.first().copied().map(Seed)
}

/// A random subset of faults, and up to two crashes.
fn swarm(course: &Course<'_>, numbers: &[u64]) -> Option<Plan> {
    let seed = seed(numbers)?;
    let mut chance = seed.child("sweep").stream("crashes");
    let last = course.writes.len() as u64;
    let mut crashes = Vec::new();
    for _ in 0..chance.below(3) {
        let moment = if chance.below(2) == 0 { Moment::Before } else { Moment::After };
        crashes.push((1 + chance.below(last.max(1)), moment));
    }
    Some(Plan { seed: Some(seed), scenario: Scenario::swarm(seed), crashes, ..Plan::new(Expect::Explained) })
}

impl Kind {
    /// All kinds, in the order of the list of faults.
    pub fn all() -> Vec<&'static Self> {
        let mut all: Vec<&Self> =
            OF_RUNS.iter().chain(&requests::ALL).chain(&infrastructure::ALL).chain(&people::ALL).collect();
        all.sort_by_key(|kind| kind.id);
        all
    }

    /// It has a trial for each write.
    pub fn is_at_writes(&self) -> bool {
        self.each == Each::Write
    }

    /// It has a trial for each seed: there is no end of them.
    pub fn is_of_seeds(&self) -> bool {
        self.each == Each::Seed
    }

    /// Those of a number or a name.
    pub fn called(word: &str) -> Vec<&'static Self> {
        let is_called = |kind: &&Self| kind.id.eq_ignore_ascii_case(word) || kind.name == word;
        Self::all().into_iter().filter(is_called).collect()
    }

    /// What is done in the trial of these numbers; nothing where there is no such trial.
    pub(super) fn plan(&self, course: &Course<'_>, numbers: &[u64]) -> Option<Plan> {
        let count = if self.each == Each::Pair { 2 } else { 1 };
        let exists = |number: &u64| self.each == Each::Seed || course.write(*number).is_some();
        let is_one = numbers.len() == count && numbers.iter().all(exists);
        is_one.then(|| (self.plan)(course, numbers)).flatten()
    }

    /// The numbers of all trials that there may be, in order; of seeds there is no end.
    pub(super) fn numbers(&self, writes: u64, from: u64) -> Box<dyn Iterator<Item = Vec<u64>>> {
        match self.each {
            Each::Write => Box::new((1..=writes).map(|number| vec![number])),
            Each::Seed => Box::new((from..).map(|number| vec![number])),
            Each::Pair => Box::new(
                (1..writes).flat_map(move |apart| (1..=writes - apart).map(move |number| vec![number, number + apart])),
            ),
        }
    }

    /// What a trial is called.
    pub(super) fn trial(&self, numbers: &[u64]) -> String {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!("{}-{}", self.name, numbers.join("-"))
    }

    /// The kind and the numbers that a name is of.
    pub(super) fn of_trial(name: &str) -> Option<(&'static Self, Vec<u64>)> {
        let mut kinds = Self::all().into_iter();
        kinds.find_map(|kind| {
            let numbers = name.strip_prefix(kind.name)?.strip_prefix('-')?;
            let numbers: Result<Vec<u64>, _> = numbers.split('-').map(str::parse).collect();
            Some((kind, numbers.ok()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_trial_is_found_by_its_name_and_no_two_kinds_share_one() {
        let names: BTreeSet<&str> = Kind::all().iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), Kind::all().len());
        for kind in Kind::all() {
            let numbers = kind.numbers(10, 7).nth(3).unwrap();
            let (found, of) = Kind::of_trial(&kind.trial(&numbers)).unwrap();
            assert_eq!((found.name, of), (kind.name, numbers));
        }
        assert!(Kind::of_trial("crash-after").is_none() && Kind::of_trial("crash-after-x").is_none());
        assert!(Kind::called("f01").iter().all(|kind| kind.name == "crash-after"));
    }

    #[test]
    fn pairs_that_are_next_to_each_other_come_first_and_all_come() {
        let pair = Kind::called("F03")[0];
        let pairs: Vec<Vec<u64>> = pair.numbers(4, 0).collect();
        assert_eq!(pairs, [[1, 2], [2, 3], [3, 4], [1, 3], [2, 4], [1, 4]].map(Vec::from));
    }
}
