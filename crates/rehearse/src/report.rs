//! What people are told of a rehearsal: many runs of one update, each with a seed of its own, folded into one report.
//!
//! ```text
//! World ── runs: seed, seed/1, seed/2 … on all cores ──▶ Rehearsals, in order ──▶ Report ──▶ text, Markdown, HTML, JSON
//!    └── preview: which fields replace machines ────────────────────────────────────┘
//! ```
//!
//! **Invariant**: the same start, request and number of runs give the same report, byte for byte, on however many threads.

mod estimate;
mod fidelity;
mod html;
mod markdown;
mod picture;
pub mod risk;
mod runs;
mod spread;
mod stage;
mod tally;
mod text;
mod wait;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use windlass_api::name::NamespacedName;
use windlass_plan::risk::Risk;
use windlass_runtime::chance::Seed;
use windlass_sim::timeline::{Held, Outage, Quorum, Skewed, What};
use windlass_sim::world::World;

use crate::preview;
use crate::rehearsal::{self, Rehearsal, Request, Verdict};
use crate::snapshot::Gap;

pub use estimate::{Estimate, Recorded, at_pace};
pub use fidelity::{Fidelity, How};
pub use runs::cores;
pub use spread::Spread;
pub use stage::{Replaced, StageForeseen, machines_of};
pub use tally::{Tally, Violated};
pub use wait::Wait;

pub(crate) use runs::in_order;
pub(crate) use spread::told;
pub(crate) use tally::badness;

/// What is rehearsed, how often, and what it starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The update. The first run has its seed.
    pub request: Request,
    /// How often.
    pub runs: u32,
    /// On how many threads.
    pub threads: usize,
    /// Where the start was read.
    pub origin: Origin,
    /// What is known of it before it is run: `assess` of the evidence in the same snapshot.
    pub risks: Vec<Risk>,
}

/// Where a rehearsal starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// When it was read; nothing for a World that was made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub taken_at: Option<Timestamp>,
    /// The folder that it was kept in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// How old it was, where it had been kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub age: Option<SignedDuration>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// How an update went, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The cluster.
    pub cluster: NamespacedName,
    /// What was asked, as it follows the name of the cluster: `to v1.16.7`.
    pub asked: String,
    /// The release that was asked for, where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What decided everything random.
    pub seed: u64,
    /// How many runs there were.
    pub runs: u32,
    /// How it ended; where runs differ, how the worst did.
    pub verdict: Verdict,
    /// How the runs ended, the worst first.
    pub verdicts: Vec<Tally>,
    /// How long it took.
    pub took: Spread,
    /// The stages, in order.
    pub stages: Vec<StageForeseen>,
    /// The machines that are replaced, in order, and the fields that are guilty of it.
    pub replaced: Vec<Replaced>,
    /// The most of everything that there was at a time.
    pub peak: Peak,
    /// Pods that were evicted, and those that a budget held.
    pub pods: Pods,
    /// The API of the cluster.
    pub api: Api,
    /// How far versions and members of etcd went.
    pub worst: Worst,
    /// What was waited for, the longest first.
    pub waits: Vec<Wait>,
    /// What must never be and was.
    pub violations: Vec<Violated>,
    /// What may go wrong for reasons that are known beforehand.
    pub risks: Vec<Risk>,
    /// What became of each fault at each step, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<crate::matrix::FaultMatrix>,
    /// What the times are made of.
    pub estimate: Estimate,
    /// What is real in a rehearsal, and what is not.
    pub fidelity: Vec<Fidelity>,
    /// What it started from.
    pub snapshot: Origin,
    /// The command that rehearses the run again that is told here.
    pub replay: String,
    /// The run that is told here: the first of those that ended worst.
    pub reference: Rehearsal,
}

/// The most of everything that there was at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// Machines at first.
    pub machines_before: u64,
    /// Machines at most.
    pub machines: u64,
    /// Addresses at most: one for each machine, and one for the API.
    pub addresses: u64,
    /// What the namespace may have of machines, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
}

/// How many machines a namespace may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Who says so: `ResourceQuota/machines`, or the scenario.
    pub by: String,
    /// So many.
    pub limit: u64,
    /// So many there are now, of all its clusters.
    pub used: u64,
    /// So many are needed at a time.
    pub needed: u64,
}

/// Pods that had to leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// How many were evicted; the most of all runs.
    pub moved: u64,
    /// Those that a budget did not let go at once, in the run that is told here.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub held: Vec<Held>,
}

/// The API of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// How many of its servers ended: so often do clients have to connect again.
    pub servers_ended: u64,
    /// When there was none, in the run that is told here.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub outages: Vec<Outage>,
}

/// How far versions and members of etcd went, over all runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Worst {
    /// The kubelet that was furthest from an API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub skew: Option<Skewed>,
    /// etcd when it had the least to spare.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub quorum: Option<Quorum>,
}

/// There is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run could not be held.
    #[error(transparent)]
    Rehearse(#[from] rehearsal::Error),
    /// It could not be told which fields replace machines.
    #[error("foresee which machines are replaced")]
    Foresee(#[source] preview::Error),
    /// There was not even one run.
    #[error("a report needs a run")]
    NoRuns,
}

/// Rehearses an update as often as is asked, and tells how it went. The World is the one that the first run left.
pub fn report(start: &World, asked: &Asked) -> Result<(Report, World), Error> {
    let request = &asked.request;
    let (estimate, calibrated) = estimate::estimate(start, request)?;
    let start = calibrated.as_ref().unwrap_or(start);
    let (runs, left) = runs::hold(start, request, asked.runs, asked.threads)?;
    let verdicts = tally::verdicts(&runs);
    let worst = verdicts.first().ok_or(Error::NoRuns)?.first_run;
    let reference = runs.get(worst).cloned().ok_or(Error::NoRuns)?;
    let foreseen = stage::foresee(start, request, &reference)?;
    let replay = Request { seed: Seed(reference.seed), ..request.clone() }.replay();
    let report = Report {
        cluster: request.cluster.clone(),
        asked: reference.asked.clone(),
        to: reference.to.clone(),
        seed: request.seed.0,
        runs: asked.runs,
        verdict: reference.verdict.clone(),
        took: Spread::of(runs.iter().map(|run| run.took)),
        stages: stage::stages(&runs, &reference, &foreseen),
        replaced: stage::replaced(&reference, &foreseen),
        peak: peak(start, request, &runs),
        pods: pods(&runs, &reference),
        api: api(&runs, &reference),
        worst: extremes(&runs),
        waits: wait::waits(&reference),
        violations: tally::violations(&runs),
        risks: asked.risks.clone(),
        faults: None,
        estimate,
        fidelity: fidelity::all(),
        snapshot: asked.origin.clone(),
        verdicts,
        replay,
        reference,
    };
    Ok((report, left))
}

impl Quota {
    /// There is not enough.
    pub fn is_exceeded(&self) -> bool {
        self.needed > self.limit
    }
}

impl Report {
    /// All runs reached what was asked for, and nothing happened on the way that must never be.
    pub fn is_good(&self) -> bool {
        let is_reached = |tally: &Tally| matches!(tally.verdict, Verdict::Reached { .. } | Verdict::Gone);
        let is_sound = self.faults.as_ref().is_none_or(|matrix| matrix.broken().next().is_none());
        self.violations.is_empty() && self.verdicts.iter().all(is_reached) && is_sound
    }

    /// How long after its beginning something was, in the run that is told here.
    fn after(&self, at: Timestamp) -> SignedDuration {
        self.reference.began.duration_until(at)
    }
}

fn peak(start: &World, request: &Request, runs: &[Rehearsal]) -> Peak {
    let before = runs.first().map_or(0, |run| run.extremes.machines_before);
    let machines = runs.iter().map(|run| run.extremes.machines_max).max().unwrap_or(before);
    let quota = stage::quota(start, request).map(|(by, limit)| {
        let used = stage::machines_of(start, &request.cluster);
        Quota { by, limit, used, needed: used + machines.saturating_sub(before) }
    });
    Peak { machines_before: before, machines, addresses: machines + 1, quota }
}

fn pods(runs: &[Rehearsal], reference: &Rehearsal) -> Pods {
    let moved = |run: &Rehearsal| {
        let evicted = run.timeline.events.iter().filter(|event| event.what == What::PodEvicted);
        evicted.count() as u64
    };
    let mut held = reference.extremes.held.clone();
    // What never went comes first, then what took longest.
    held.sort_by_key(|held| (held.to.is_some(), std::cmp::Reverse(held.lasted())));
    Pods { moved: runs.iter().map(moved).max().unwrap_or_default(), held }
}

fn api(runs: &[Rehearsal], reference: &Rehearsal) -> Api {
    let ended = runs.iter().map(|run| run.extremes.api_servers_ended).max();
    Api { servers_ended: ended.unwrap_or_default(), outages: reference.extremes.outages.clone() }
}

fn extremes(runs: &[Rehearsal]) -> Worst {
    let mut worst = Worst { skew: None, quorum: None };
    for run in runs {
        if let Some(skew) = &run.extremes.skew
            && worst.skew.as_ref().is_none_or(|known| skew.minors > known.minors)
        {
            worst.skew = Some(skew.clone());
        }
        if let Some(quorum) = &run.extremes.quorum
            && worst.quorum.as_ref().is_none_or(|known| quorum.spare() < known.spare())
        {
            worst.quorum = Some(quorum.clone());
        }
    }
    worst
}
