//! `windlass sweep`: a change, broken on purpose in every way that is known, to see whether it ends as it should.

mod figures;
pub mod report;

use std::num::NonZeroUsize;

use windlass_plan::gate::Gate;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::drive::Drive;
use windlass_rehearse::rehearsal;
use windlass_rehearse::sweep::{
    self, Change, Kind as Trials, NoTrial, Pick, Size, Subject, SubjectError, Trial, Tried,
};
use windlass_runtime::chance::Seed;
use windlass_sim::timeline::Timeline;

use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};
use crate::progress;
use figures::Watch;
use report::{Report, Swept};

/// How many seeds are tried of a kind that has a trial for each, where nobody says how many.
const SEEDS: usize = 20;

/// Break a change on purpose, at every write and in every way that is known, and see whether it ends as it should
///
/// A cluster is made in a simulated world, and changed once without a fault. Then each trial changes it again with one thing more
/// in it: a crash, a lost answer, a stale watch, a dead machine, somebody who changes their mind. No rule of safety may be broken,
/// it must end as it does without or as it is wished for then, and nothing may be written when nothing is to be done. No cluster
/// is read or touched. The same seed and name give the same trial.
#[derive(clap::Args)]
pub struct Sweep {
    /// What is asked of the cluster: upgrade, create, scale, class or delete
    #[arg(long, value_name = "CHANGE", default_value = "upgrade")]
    wish: Change,
    /// How its machines are reached: machines that Windlass replaces, the topology of a cluster of a class, whose packages come
    /// first, or the label of a cluster whose objects are brought to a release
    #[arg(long, value_name = "DRIVE", default_value = "machines")]
    drive: Driven,
    /// How the machines of a cluster of a class are held until its packages are in: pause or hooks
    #[arg(long, value_name = "WAY", default_value = "pause")]
    hold: HoldBy,
    /// How many machines it has: those of the control plane, and workers
    #[arg(long, value_name = "N+N", default_value = "3+3")]
    size: Size,
    /// Only these kinds, by the numbers in docs/faults.md or by the names of their trials: F01,F05,reverted
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds)]
    kinds: Vec<Named>,
    /// Only this trial, and what happened in it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["kinds", "trials", "budget", "every", "offset", "fault_free"])]
    trial: Option<String>,
    /// No more than so many trials of each kind
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    trials: Option<usize>,
    /// So many trials in all: what the writes leave is for pairs of crashes and for seeds
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
    /// Of every so many trials of a kind only one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Which one of them, from 0: all of them together are all trials
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// Only runs without a fault, with so many seeds: none may be called broken
    #[arg(long, value_name = "N", conflicts_with_all = ["kinds", "trials", "budget"])]
    fault_free: Option<usize>,
    /// Leave a safety rule out, to see which trials miss it
    #[arg(long, value_name = "GATE")]
    without_gate: Vec<Gate>,
    /// Decides everything random; where trials are seeds, the first one
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// On so many threads; on all cores otherwise
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Write it as a document instead, for scripts: without times, so that the same sweep is the same document
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// The sort of cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Driven {
    Machines,
    Topology,
    Label,
}

/// Kinds of one number or name.
#[derive(Clone)]
struct Named(Vec<&'static Trials>);

fn kinds(word: &str) -> Result<Named, String> {
    let found = Trials::called(word);
    if found.is_empty() {
        let mut known: Vec<&str> = Trials::all().into_iter().flat_map(|kind| [kind.id, kind.name]).collect();
        known.dedup();
        return Err(format!("there are no such trials: known are {}", known.join(", ")));
    }
    Ok(Named(found))
}

impl Sweep {
    /// Makes the cluster, runs the change without a fault, and then the trials, kind by kind.
    pub fn run(self) -> Result<Exit, Failure> {
        let made = Subject::make(self.drive(), self.wish, self.size, Seed(self.seed));
        let mut subject = made.map_err(Error::Subject)?;
        subject.request.without_gates.clone_from(&self.without_gate);
        let sweep = sweep::Sweep::new(subject).map_err(Error::Reference)?;
        if let Some(broken) = sweep.reference().broken.first() {
            return Err(Error::Broken(broken.to_string()).into());
        }
        if let Some(name) = &self.trial {
            return self.show(&sweep, name);
        }
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let mut report = Report::new(self.replay(), sweep.reference());
        for (kind, trials) in self.trials(&sweep) {
            let (bar, watch) = (progress::bar(&format!("{} {}", kind.id, kind.name), trials.len()), Watch::begin());
            let tried = sweep.run(&trials, threads, |_| bar.inc(1));
            bar.finish_and_clear();
            report.add(Swept::new(kind, tried, &trials, watch.read()));
        }
        match self.output {
            Some(format) => output::document(format, &Document::new("SweepReport", &report))?,
            None => output::data(&report.text(threads))?,
        }
        Ok(if report.is_broken() { Exit::OperationFailed } else { Exit::Done })
    }

    fn drive(&self) -> Drive {
        match self.drive {
            Driven::Machines => Drive::Machines,
            Driven::Topology => Drive::Topology(self.hold),
            Driven::Label => Drive::Label,
        }
    }

    /// The command without the trial.
    fn replay(&self) -> String {
        let drive = match self.drive() {
            Drive::Machines => String::new(),
            Drive::Topology(hold) => format!(" --drive topology --hold {hold}"),
            Drive::Label => " --drive label".to_owned(),
        };
        let command = format!("windlass sweep --wish {}{drive} --size {} --seed {}", self.wish, self.size, self.seed);
        let gates = self.without_gate.iter().map(|gate| format!("--without-gate {gate}"));
        [command].into_iter().chain(gates).collect::<Vec<_>>().join(" ")
    }

    /// The trials of each kind, in the order of the list of faults.
    fn trials(&self, sweep: &sweep::Sweep) -> Vec<(&'static Trials, Vec<Trial>)> {
        let Self { every, offset, .. } = *self;
        let pick = |most: usize| Pick { every, offset, most, from_seed: self.seed };
        if let Some(seeds) = self.fault_free {
            let kinds = Trials::called("F00").into_iter();
            return kinds.map(|kind| (kind, sweep.trials(kind, &pick(seeds)))).collect();
        }
        let mut kinds: Vec<&'static Trials> = self.kinds.iter().flat_map(|named| named.0.iter().copied()).collect();
        if kinds.is_empty() {
            // Those that nothing goes wrong in are for whoever asks for them.
            kinds = Trials::all().into_iter().filter(|kind| kind.id != "F00").collect();
        }
        // Of seeds there is no end: they come last, and take what the others leave of a budget.
        let mut ends_first = kinds.clone();
        ends_first.sort_by_key(|kind| (!kind.is_at_writes(), kind.is_of_seeds()));
        let (mut left, mut of_kinds) = (self.budget, Vec::new());
        for (index, kind) in ends_first.iter().enumerate() {
            let share = left.map(|left| left.div_ceil(ends_first.len() - index));
            let most = self.trials.or(share).unwrap_or_else(|| usual(kind, sweep.reference().writes.len()));
            let trials = sweep.trials(kind, &pick(most));
            left = left.map(|left| left.saturating_sub(trials.len()));
            of_kinds.push((*kind, trials));
        }
        let place = |kind: &Trials| kinds.iter().position(|other| other.name == kind.name);
        of_kinds.sort_by_key(|(kind, _)| place(kind));
        of_kinds
    }

    /// One trial, with what happened in it.
    fn show(&self, sweep: &sweep::Sweep, name: &str) -> Result<Exit, Failure> {
        let tried: Tried = sweep.show(&sweep.trial(name).map_err(Error::NoTrial)?);
        let is_broken = !tried.broken.is_empty();
        if let Some(format) = self.output {
            output::document(format, &Document::new("SweepTrial", &tried))?;
        } else {
            let timeline = tried.timeline.as_ref().map(Timeline::text).unwrap_or_default();
            output::data(&format!("{timeline}\n{tried}"))?;
        }
        Ok(if is_broken { Exit::OperationFailed } else { Exit::Done })
    }
}

/// How many trials there are of a kind, where nobody says how many: one for each write, and each pair with the next one.
fn usual(kind: &Trials, writes: usize) -> usize {
    match (kind.is_at_writes(), kind.is_of_seeds()) {
        (true, _) => usize::MAX,
        (false, true) => SEEDS,
        (false, false) => writes,
    }
}

/// There was no sweep.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot make the cluster to sweep")]
    Subject(#[source] SubjectError),
    #[error("cannot run the change without a fault")]
    Reference(#[source] rehearsal::Error),
    #[error("the change is broken without a fault: {0}")]
    Broken(String),
    #[error("--trial")]
    NoTrial(#[source] NoTrial),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoTrial(_) => Kind::User,
            Self::Subject(_) | Self::Reference(_) | Self::Broken(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoTrial(_) => "windlass sweep --kinds F01 --trials 1, which names one".to_owned(),
            Self::Subject(_) | Self::Reference(_) | Self::Broken(_) => {
                "the same again with another --seed, and a report of this".to_owned()
            }
        })
    }
}
