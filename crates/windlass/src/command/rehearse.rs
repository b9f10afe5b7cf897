//! `windlass rehearse`: the whole upgrade, before it is begun, in a world of its own; many times, and with faults.

mod error;
mod keep;
pub mod shown;
mod start;

use std::borrow::Cow;
use std::path::PathBuf;

use windlass_api::name::ClusterName;
use windlass_plan::gate::Gate;
use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::matrix::{FaultAt, FaultKind, matrix_of};
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::report::{self, Asked, Report};
use windlass_rehearse::shrink::shrink;
use windlass_rehearse::snapshot::Snapshot;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

use crate::changed::Changed;
use crate::client::Connection;
use crate::error::{Exit, Failure};
use crate::output;
use crate::scenario;
use crate::wanted::Wanted;
use crate::way::Way;

pub use error::Error;
use start::{Start, Subject};

/// Rehearse an upgrade or another change: see what would happen, and when, before it is begun
///
/// The clusters are read once; the rehearsal then runs in this process, by the controllers that would do it, on simulated
/// machines and in virtual time. Nothing real is changed. The same seed gives the same report.
#[derive(clap::Args)]
pub struct Rehearse {
    /// The cluster
    #[arg(required_unless_present = "selector")]
    cluster: Option<ClusterName>,
    /// All clusters with these labels instead
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "cluster")]
    selector: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Start from a snapshot that was kept, and ask no cluster
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// How often: times are told from all runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How the machines of a cluster of a class are kept back until its packages are in: pause, or hooks; as they are kept back
    /// there, where nothing is said
    #[arg(long, value_name = "HOW")]
    hold: Option<HoldBy>,
    /// Leave a safety rule out, to see what it is for
    #[arg(long, value_name = "GATE")]
    without_gate: Vec<Gate>,
    /// What goes wrong meanwhile: a file of faults, of what people do, and of how much there is to make machines of
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Also run it with this fault, at one step or at each: machine-never-boots@control-plane-1-comes
    #[arg(long, value_name = "KIND[@STEP]", value_parser = fault_at)]
    fault: Vec<FaultAt>,
    /// Also run it with every fault at every step where it can bite
    #[arg(long, value_name = "WHICH", conflicts_with = "fault")]
    faults: Option<Faults>,
    /// Find the fewest faults and actions of --scenario that still break it
    #[arg(long, requires = "scenario")]
    shrink: bool,
    /// Write each run that broke into this folder, for `windlass replay`; those of a later hop into one of their own in it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Also write the report as a file: md FILE, or html FILE
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE"])]
    report: Vec<String>,
    /// Also print the whole timeline of the run that is told of
    #[arg(long)]
    timeline: bool,
    /// Also draw it, machine by machine, as an SVG file; where it takes several updates, one file for each
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// Which faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Faults {
    All,
}

impl Rehearse {
    /// Reads the clusters, then rehearses without them: one update, or one after the other where it takes several.
    pub fn run(self) -> Result<Exit, Failure> {
        // Before anything is read: what is wrong here is wrong everywhere.
        let faults = scenario::read(self.scenario.as_deref())?;
        let files = shown::files(&self.report)?;
        let start = self.start()?;
        let world = restore(&start.snapshot, Seed(self.seed))?;
        let mut told: Vec<(ClusterName, Vec<Report>)> = Vec::new();
        for subject in &start.subjects {
            self.wanted.fits(subject.way.as_ref())?;
            let reports = self.reports(&start, subject, &world, &faults)?;
            told.push((subject.name.clone(), reports));
        }
        let all: Vec<&Report> = told.iter().flat_map(|(_, reports)| reports).collect();
        shown::write(&all, &files)?;
        shown::draw(&all, self.picture.as_deref())?;
        let exit = if all.iter().all(|report| report.is_good()) { Exit::Done } else { Exit::OperationFailed };
        if let Some(format) = self.output {
            let names: Vec<String> = start.subjects.iter().map(Subject::object).collect();
            shown::document(format, &told, &names)?;
            return Ok(exit);
        }
        output::data(&shown::text(&told, self.timeline))?;
        if self.shrink {
            self.shrunk(&start, &world, &faults)?;
        }
        if let Some(refused) = all.iter().find(|report| matches!(report.verdict, Verdict::Refused { .. })) {
            output::try_instead(&self.instead(refused.cluster.name.as_str()));
        }
        if let (Some(to), Some(cluster)) = (self.wanted.release().filter(|_| exit == Exit::Done), &self.cluster) {
            output::note(&format!("Next: windlass upgrade {cluster} --to {to}"));
        }
        Ok(exit)
    }

    /// What could be asked for instead of what is refused.
    fn instead(&self, cluster: &str) -> String {
        match self.wanted.release() {
            Some(to) => format!("windlass release list, or windlass release path {cluster} --to {to}"),
            None => format!("windlass status {cluster}, and a value that is accepted"),
        }
    }

    fn start(&self) -> Result<Start, Failure> {
        let wanted = start::Selected { cluster: self.cluster.as_ref(), selector: self.selector.as_deref() };
        match &self.from {
            Some(folder) => start::kept(folder, &self.connection, &wanted, &self.wanted),
            None => start::live(&self.connection, &wanted, &self.wanted),
        }
    }

    fn request(&self, start: &Start, subject: &Subject, faults: &Scenario) -> Request {
        let cluster = start.name(subject);
        let mut request = Request::asking(cluster, self.wanted.wish(), Seed(self.seed), start.snapshot.taken_at);
        request.without_gates.clone_from(&self.without_gate);
        request.hold_by = self.hold.unwrap_or_else(|| start.snapshot.hold_by());
        request.faults = faults.clone();
        request.faults_file = self.scenario.as_ref().map(|path| path.display().to_string());
        request.folder = self.from.as_ref().map(|path| path.display().to_string());
        request
    }

    /// A report for each update: several where it takes several, each from what the one before it left, no further than all goes
    /// well.
    fn reports(
        &self,
        start: &Start,
        subject: &Subject,
        world: &World,
        faults: &Scenario,
    ) -> Result<Vec<Report>, Failure> {
        let mut request = self.request(start, subject, faults);
        let Some(Way { hops, .. }) = &subject.way else {
            let at = Place { world: world.clone(), snapshot: Cow::Borrowed(&start.snapshot), hop: 1 };
            return Ok(vec![self.one(start, &at, &request)?.0]);
        };
        let mut at = Place { world: world.clone(), snapshot: Cow::Borrowed(&start.snapshot), hop: 1 };
        let mut reports: Vec<Report> = Vec::new();
        for hop in hops {
            request.ask = subject.way.as_ref().map_or_else(|| self.wanted.wish(), |way| way.wish(hop));
            let (report, left) = self.one(start, &at, &request)?;
            let is_good = report.is_good();
            reports.push(report);
            if !is_good {
                break;
            }
            at = Place::after(&at, &left, Seed(self.seed))?;
            request.at = at.snapshot.taken_at;
        }
        Ok(reports)
    }

    /// The report of one update, with its faults, and the World that it left.
    fn one(&self, start: &Start, at: &Place<'_>, request: &Request) -> Result<(Report, World), Failure> {
        let threads = report::cores();
        let (request, origin) = (request.clone(), start.origin.clone());
        let asked = Asked { risks: start.risks(&request), request, runs: self.runs, threads, origin };
        let request = &asked.request;
        let (mut report, left) = report::report(&at.world, &asked).map_err(Error::Report)?;
        let faults = self.wanted_faults();
        if !faults.is_empty() && !matches!(report.verdict, Verdict::Refused { .. }) {
            let matrix = matrix_of(&at.world, request, &report, &faults, threads).map_err(Error::Matrix)?;
            report.faults = Some(matrix);
        }
        if let Some(folder) = &self.keep {
            keep::broken(folder, at, request, &report)?;
        }
        Ok((report, left))
    }

    fn wanted_faults(&self) -> Vec<FaultAt> {
        match self.faults {
            Some(Faults::All) => FaultKind::ALL.iter().map(|kind| FaultAt { kind: *kind, step: None }).collect(),
            None => self.fault.clone(),
        }
    }

    /// The smallest part of the scenario that breaks the first of the clusters.
    fn shrunk(&self, start: &Start, world: &World, faults: &Scenario) -> Result<(), Failure> {
        let Some(subject) = start.subjects.first() else { return Ok(()) };
        let request = self.request(start, subject, faults);
        match shrink(world, &request).map_err(Error::Rehearse)? {
            None => output::note("The scenario does not break it: there is nothing to shrink."),
            Some(small) => {
                let heading = format!(
                    "\nThe smallest scenario that breaks it, {} of {} faults and actions, found in {} runs: {}",
                    small.to, small.from, small.runs, small.why
                );
                output::data(&format!("{heading}\n{}", small.scenario.to_yaml()))?;
            }
        }
        Ok(())
    }
}

/// Where an update starts from.
pub struct Place<'s> {
    world: World,
    /// What the World was made of.
    snapshot: Cow<'s, Snapshot>,
    /// The how manieth update it is on the way.
    hop: usize,
}

impl Place<'_> {
    /// What an update has left: read once more, so that the next one starts as it would if it was replayed.
    fn after(before: &Self, left: &World, seed: Seed) -> Result<Self, Error> {
        let snapshot = run_virtual(seed, left.settings().clock.now(), |time| async move {
            let settings = Settings { clock: time.clock, ..left.settings().clone() };
            Snapshot::of(&left.fork(settings)).await
        });
        let snapshot = snapshot.map_err(Error::Runtime)?.map_err(Error::Left)?;
        let world = restore(&snapshot, seed)?;
        Ok(Self { world, snapshot: Cow::Owned(snapshot), hop: before.hop + 1 })
    }
}

/// A fault, perhaps with a step behind an `@`.
fn fault_at(text: &str) -> Result<FaultAt, String> {
    let (kind, step) = text.split_once('@').map_or((text, None), |(kind, step)| (kind, Some(step.to_owned())));
    let kind = kind.parse::<FaultKind>().map_err(|error| error.to_string())?;
    Ok(FaultAt { kind, step })
}

/// A World with what was read in it. Nothing runs there.
pub fn restore(snapshot: &Snapshot, seed: Seed) -> Result<World, Error> {
    let restored = run_virtual(seed, snapshot.taken_at, |time| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        snapshot.world(settings).await
    });
    restored.map_err(Error::Runtime)?.map_err(Error::Restore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_may_have_a_step() {
        let check = |text: &str, kind: FaultKind, step: Option<&str>| {
            assert_eq!(fault_at(text), Ok(FaultAt { kind, step: step.map(str::to_owned) }));
        };
        check("any-order", FaultKind::AnyOrder, None);
        check("crash-after@workers", FaultKind::CrashAfter, Some("workers"));
        assert!(fault_at("earthquake@workers").unwrap_err().contains("there is no fault \"earthquake\""));
    }
}
