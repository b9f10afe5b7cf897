//! What may go wrong on the way of a plan, and how long it takes: what is known beforehand, and what a few rehearsals say.

use serde::Serialize;
use windlass_plan::risk::Risk;
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::report::{Asked, Error, Origin, Spread, cores, machines_of, report, risk};
use windlass_runtime::chance::Seed;
use windlass_sim::world::World;

/// Where nobody says how often it is to be rehearsed.
const RUNS: u32 = 5;
/// Of a World with more machines, a plan would not come at once any more.
const MACHINES_MAX: u64 = 40;
/// The seed that `rehearse` begins with: these are the first of its runs.
const SEED: Seed = Seed(1);

/// What may go wrong, and how long it takes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Outlook {
    /// What may go wrong for reasons that are known beforehand, the worst first.
    risks: Vec<Risk>,
    /// How long it takes; nothing where it was not rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
    /// What rehearses it.
    #[serde(skip)]
    command: String,
}

/// How long it takes.
#[derive(Serialize, schemars::JsonSchema)]
struct Time {
    /// How often it was rehearsed.
    runs: u32,
    #[serde(flatten)]
    took: Spread,
    /// How it ended; where runs differ, how the worst did.
    end: Verdict,
}

/// How often a plan is rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsals {
    /// As often as can be done at once.
    AsUsual,
    /// So often.
    Times(u32),
}

impl Rehearsals {
    fn runs(self, world: &World, request: &Request) -> u32 {
        match self {
            Self::Times(runs) => runs,
            Self::AsUsual if machines_of(world, &request.cluster) > MACHINES_MAX => 0,
            Self::AsUsual => RUNS,
        }
    }
}

impl Outlook {
    /// Rehearses a change that was found to be one.
    pub fn of(world: &World, request: &Request, risks: Vec<Risk>, rehearsals: Rehearsals) -> Result<Self, Error> {
        let words = request.ask.words().join(" ");
        let command = format!("windlass rehearse {} {words}", request.cluster.name);
        let runs = rehearsals.runs(world, request);
        if runs == 0 {
            return Ok(Self { risks, time: None, command });
        }
        let request = Request { seed: SEED, ..request.clone() };
        let asked = Asked { request, runs, threads: cores(), origin: Origin::default(), risks: Vec::new() };
        let (report, _) = report(world, &asked)?;
        Ok(Self { risks, time: Some(Time { runs, took: report.took, end: report.verdict }), command })
    }

    /// Nothing is done, and nothing can go wrong.
    pub fn none() -> Self {
        Self { risks: Vec::new(), time: None, command: String::new() }
    }

    /// The risks, a line for each and more below it.
    pub fn risks(&self) -> Vec<String> {
        risk::lines(&self.risks)
    }

    /// How long it takes, or how that can be had.
    pub fn time(&self) -> String {
        let Self { command, .. } = self;
        let Some(Time { runs, took, end }) = &self.time else { return format!("{command} tells it") };
        let runs = if *runs == 1 { "1 rehearsal".to_owned() } else { format!("{runs} rehearsals") };
        match end {
            Verdict::Reached { .. } | Verdict::Gone => format!("{took}, in {runs}; {command} tells more"),
            Verdict::GivenUp { .. } | Verdict::Refused { .. } | Verdict::Failed { .. } | Verdict::Stuck { .. } => {
                format!("not known, as of {runs} the worst is {end}; {command} tells more")
            }
        }
    }
}
