//! A wish, broken on purpose in every way that is known: it must end as it does without, or as it is wished for then.
//!
//! ```text
//! Subject ─▶ reference run ─▶ writes ─▶ Kind × write, pair or seed = Trial ─▶ run ─▶ oracles ─▶ Tried
//! ```
//!
//! A trial is a run of its own from the start, with one thing more in it. All trials of a kind are independent of each other,
//! and are tried on all cores.
//!
//! **Invariant**: what a trial is called says what it is. The same subject, seed and name give the same result, on any number of
//! threads, byte for byte.

mod judge;
mod kind;
mod plan;
mod run;
mod shape;
mod subject;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::SignedDuration;
use serde::Serialize;
use windlass_runtime::chance::Seed;
use windlass_sim::timeline::Timeline;

use crate::crash::Write;
use crate::rehearsal::{Error, Verdict};
use crate::seam::Old;
use judge::Expected;
use kind::{Course, Each};
use plan::{Edit, Expect, Plan};
use run::Run;

pub use judge::{Broken, Oracle};
pub use kind::Kind;
pub use subject::{Change, ChangeError, Size, SizeError, Subject, SubjectError};

/// A subject that was run once without a fault, and can be tried.
pub struct Sweep {
    subject: Subject,
    reference: Reference,
    expected: Arc<Expected>,
    /// What is expected of other wishes, as it is needed.
    others: Mutex<BTreeMap<String, Arc<OnceLock<Other>>>>,
}

/// What is expected, or why nothing can be.
type Other = Result<Arc<Expected>, String>;

/// The run without a fault.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took, in its own time.
    #[schemars(with = "String")]
    pub took: SignedDuration,
    /// The writes of Windlass, in order.
    pub writes: Vec<Write>,
    /// What is wrong with it. Nothing can be compared with a reference that is broken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Broken>,
}

/// Which trials of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// Of every so many writes or pairs one.
    pub every: u64,
    /// The first that is taken, from 0: `every` slices with all offsets are all trials.
    pub offset: u64,
    /// No more than so many.
    pub most: usize,
    /// The first seed, where trials are seeds.
    pub from_seed: u64,
}

impl Pick {
    /// All that there are; of seeds, of which there is no end, so many.
    pub fn all(seeds: usize) -> Self {
        Self { every: 1, offset: 0, most: seeds, from_seed: 1 }
    }
}

/// A trial that can be run.
pub struct Trial {
    kind: &'static Kind,
    numbers: Vec<u64>,
    /// The writes of the same moment, of which it would be the same trial again.
    alike: Vec<u64>,
    plan: Plan,
}

impl Trial {
    /// What it is called.
    pub fn name(&self) -> String {
        self.kind.trial(&self.numbers)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The same trial of a Windlass that would be as others were once. What must come of it stays what it was.
    #[must_use]
    pub fn as_of_old(mut self, old: &[Old]) -> Self {
        self.plan.old = old.to_vec();
        self
    }

    /// The write that it is about, where it is about one.
    pub fn write(&self) -> Option<u64> {
        self.numbers.first().copied().filter(|_| self.kind.each == Each::Write)
    }

    /// The writes that it stands for: that one, and those of the same moment where the moment is what it is about.
    pub fn writes(&self) -> impl Iterator<Item = u64> {
        self.write().into_iter().chain(self.alike.iter().copied())
    }
}

/// There is no trial of that name.
#[derive(Debug, thiserror::Error)]
#[error("there is no trial {name:?}: {why}")]
pub struct NoTrial {
    name: String,
    why: String,
}

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// What it is called.
    pub name: String,
    /// Its number in the list of faults.
    pub kind: &'static str,
    /// The write that it is about, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<String>,
    /// What was to go wrong went wrong. A trial that does not bite shows nothing.
    pub bit: bool,
    /// How it ended, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What is wrong; nothing if it was survived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Broken>,
    /// What happened, where somebody wants to know.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(write) = &self.write {
            write!(f, " ({write})")?;
        }
        match self.broken.as_slice() {
            [] if self.bit => f.write_str(": survived"),
            [] => f.write_str(": survived, but nothing went wrong"),
            broken => broken.iter().try_for_each(|broken| write!(f, "\n    {broken}")),
        }
    }
}

impl Sweep {
    /// Runs the subject once without a fault.
    pub fn new(subject: Subject) -> Result<Self, Error> {
        let ran = run::run(&subject, &Plan::new(Expect::Same))?;
        let expected = Arc::new(Expected::of(&ran, &subject.request.cluster));
        let broken = judge::judge_alone(&ran, &[]);
        let Run { verdict, took, writes, .. } = ran;
        let reference = Reference { verdict, took, writes, broken };
        Ok(Self { subject, reference, expected, others: Mutex::default() })
    }

    /// The run without a fault.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The run without a fault once more, with its seed.
    pub fn again(&self) -> Option<Trial> {
        let kind = Kind::called("fault-free").into_iter().next()?;
        Some(Trial { kind, numbers: vec![self.seed().0], alike: Vec::new(), plan: Plan::new(Expect::Same) })
    }

    /// The trials of a kind. What would be the same again is one trial: several writes may share a moment.
    pub fn trials(&self, kind: &'static Kind, pick: &Pick) -> Vec<Trial> {
        let course = self.course();
        let writes = self.reference.writes.len() as u64;
        let (mut numbers, size) = (kind.numbers(writes, pick.from_seed), |n| usize::try_from(n).unwrap_or(usize::MAX));
        if kind.each == Each::Seed {
            numbers = Box::new(numbers.take(pick.most));
        } else {
            numbers = Box::new(numbers.skip(size(pick.offset)).step_by(size(pick.every.max(1))));
        }
        let mut trials: Vec<Trial> = Vec::new();
        for numbers in numbers {
            let Some(plan) = kind.plan(&course, &numbers) else { continue };
            if let Some(last) = trials.last_mut().filter(|last| last.plan == plan) {
                last.alike.extend(numbers);
            } else if trials.len() < pick.most {
                trials.push(Trial { kind, numbers, alike: Vec::new(), plan });
            } else {
                break;
            }
        }
        trials
    }

    /// The trial of a name.
    pub fn trial(&self, name: &str) -> Result<Trial, NoTrial> {
        let no_trial = |why: String| NoTrial { name: name.to_owned(), why };
        let Some((kind, numbers)) = Kind::of_trial(name) else {
            let names: Vec<&str> = Kind::all().iter().map(|kind| kind.name).collect();
            return Err(no_trial(format!("a name is one of {}, and a number: crash-after-17", names.join(", "))));
        };
        let plan = kind.plan(&self.course(), &numbers);
        let writes = self.reference.writes.len();
        let plan = plan.ok_or_else(|| no_trial(format!("there are {writes} writes, and not all can be broken so")))?;
        Ok(Trial { kind, numbers, alike: Vec::new(), plan })
    }

    /// Runs trials on so many threads. The results are in the order of the trials; `done` is told of each as it is there.
    pub fn run(&self, trials: &[Trial], threads: usize, done: impl Fn(&Tried) + Sync) -> Vec<Tried> {
        let next = AtomicUsize::new(0);
        let results: Vec<OnceLock<Tried>> = trials.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < trials.len()) {
                done(results[index].get_or_init(|| self.try_one(&trials[index], false)));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(trials.len()) {
                // Where there is no thread to be had, those that there are do all of the work.
                drop(std::thread::Builder::new().name("sweep".into()).spawn_scoped(scope, work));
            }
            work();
        });
        results.into_iter().filter_map(OnceLock::into_inner).collect()
    }

    /// Runs one trial on this thread, and keeps what happened.
    pub fn show(&self, trial: &Trial) -> Tried {
        self.try_one(trial, true)
    }

    fn try_one(&self, trial: &Trial, keeps: bool) -> Tried {
        let number = trial.write().and_then(|number| usize::try_from(number).ok());
        let write = number.and_then(|number| self.reference.writes.get(number.checked_sub(1)?));
        let mut tried = Tried {
            name: trial.name(),
            kind: trial.kind.id,
            write: write.map(|write| format!("{} of the {}", write.what, write.caller)),
            bit: false,
            verdict: None,
            broken: Vec::new(),
            timeline: None,
        };
        match self.run_one(&trial.plan) {
            Err(broken) => tried.broken.push(broken),
            Ok(run) => {
                tried.bit = run.bit;
                tried.verdict = Some(run.verdict.clone());
                tried.broken = match self.expected(&trial.plan, &run) {
                    Ok(expected) => judge::judge(&trial.plan, &expected, &run, &self.subject.request.cluster),
                    Err(why) => vec![Broken { oracle: Oracle::Settling, message: why }],
                };
                tried.timeline = Some(run.timeline).filter(|_| keeps);
            }
        }
        tried
    }

    /// Runs a plan. A panic is something that must not be, and not the end of the sweep.
    fn run_one(&self, plan: &Plan) -> Result<Run, Broken> {
        caught(|| run::run(&self.subject, plan))
    }

    /// What must come of a plan.
    fn expected(&self, plan: &Plan, run: &Run) -> Other {
        let accepted = plan.edit.as_ref().filter(|_| run.edited.as_ref().is_some_and(Result::is_ok));
        match (plan.expect, accepted, plan.seed) {
            (Expect::Wished(calm), Some(edit), _) => {
                let calm = Plan { edit: Some(Edit { at: calm, ..edit.clone() }), ..Plan::new(plan.expect) };
                self.other(&format!("{:?}", calm.edit), &calm)
            }
            (Expect::Same, _, Some(seed)) => self.calm_of(seed),
            _ => Ok(Arc::clone(&self.expected)),
        }
    }

    /// What comes of a seed with which nothing goes wrong: a trial of its own, of the kind without a fault. Nobody else asks for this
    /// seed, and of seeds there are many: it is not kept.
    fn calm_of(&self, seed: Seed) -> Other {
        let (plan, cluster) = (Plan { seed: Some(seed), ..Plan::new(Expect::Alike) }, &self.subject.request.cluster);
        let run = self.run_one(&plan).map_err(|broken| broken.to_string())?;
        match judge::judge(&plan, &self.expected, &run, cluster).first() {
            None => Ok(Arc::new(Expected::of(&run, cluster))),
            Some(broken) => Err(format!("without a fault, too: {broken}")),
        }
    }

    /// What comes of a plan in which nothing goes wrong.
    fn calm(&self, plan: &Plan) -> Other {
        let run = self.run_one(plan).map_err(|broken| broken.to_string())?;
        match judge::judge_alone(&run, &[]).first() {
            None => Ok(Arc::new(Expected::of(&run, &self.subject.request.cluster))),
            Some(broken) => Err(format!("without a fault, too: {broken}")),
        }
    }

    /// The same; run once, whoever asks first.
    fn other(&self, key: &str, plan: &Plan) -> Other {
        let other = {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(others.entry(key.to_owned()).or_default())
        };
        other.get_or_init(|| self.calm(plan)).clone()
    }

    fn course(&self) -> Course<'_> {
        Course { writes: &self.reference.writes, subject: &self.subject }
    }

    /// What decides everything random, where a trial does not say otherwise.
    pub fn seed(&self) -> Seed {
        self.subject.request.seed
    }
}

/// What comes of something, also where that is a panic.
fn caught<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Broken> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(ran)) => Ok(ran),
        Ok(Err(error)) => Err(Broken { oracle: Oracle::Settling, message: error.to_string() }),
        Err(panic) => Err(Broken { oracle: Oracle::NoPanic, message: words(panic.as_ref()) }),
    }
}

/// What somebody said who panicked.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_something_that_is_broken_and_not_the_end_of_the_sweep() {
        let broken = caught::<()>(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(broken.to_string(), "no panic: number 7");
        let broken = caught::<()>(|| Err(Error::Broken("default/a".parse().unwrap()))).unwrap_err();
        assert_eq!(broken.oracle, Oracle::Settling);
        assert_eq!(caught(|| Ok(7)), Ok(7));
    }
}
