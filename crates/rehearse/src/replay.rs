//! One run, written down so that it can be repeated exactly: what was asked of which cluster, with which seed, and what went wrong.
//! What it started from is a snapshot beside it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_api::name::NamespacedName;
use windlass_plan::gate::Gate;
use windlass_runtime::chance::Seed;
use windlass_sim::fault::Scenario;
use windlass_sim::world::World;

use crate::rehearsal::{Error, Rehearsal, Request, Wish, rehearse};
use crate::report::at_pace;

/// A run, as a file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// The cluster.
    pub cluster: NamespacedName,
    /// What is asked of it.
    pub wish: Wish,
    /// What decides everything random.
    pub seed: u64,
    /// What time it is when it begins.
    pub at: Timestamp,
    /// Rules that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_gates: Vec<String>,
    /// How long it may take, in its own time.
    pub deadline_seconds: u64,
    /// How many times as long as in the data file everything takes, in hundredths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Scenario::is_empty")]
    pub scenario: Scenario,
    /// How it ended.
    pub verdict: String,
    /// The digest of all that happened in it.
    pub digest: String,
}

/// A run that was repeated.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// All that happened was the same, to the byte.
    pub same: bool,
    /// How it ended when it was written down.
    pub was: String,
    /// How it went now.
    pub run: Rehearsal,
}

impl Run {
    /// A run that was held.
    pub fn of(request: &Request, percent: Option<u32>, held: &Rehearsal) -> Self {
        Self {
            cluster: request.cluster.clone(),
            wish: request.ask.clone(),
            seed: held.seed,
            at: request.at,
            without_gates: request.without_gates.iter().map(ToString::to_string).collect(),
            deadline_seconds: request.deadline.as_secs(),
            percent,
            scenario: request.faults.clone(),
            verdict: held.verdict.to_string(),
            digest: digest(held),
        }
    }

    /// Repeats it, from the World that its snapshot is.
    pub fn replay(&self, start: &World) -> Result<Replayed, Error> {
        let paced = self.percent.map(|percent| at_pace(start, percent));
        let run = rehearse(paced.as_ref().unwrap_or(start), &self.request())?;
        Ok(Replayed { same: digest(&run) == self.digest, was: self.verdict.clone(), run })
    }

    fn request(&self) -> Request {
        let gates = self.without_gates.iter().filter_map(|gate| gate.parse::<Gate>().ok());
        Request {
            without_gates: gates.collect(),
            deadline: Duration::from_secs(self.deadline_seconds),
            faults: self.scenario.clone(),
            ..Request::asking(self.cluster.clone(), self.wish.clone(), Seed(self.seed), self.at)
        }
    }
}

/// The digest of all that happened in a run: FNV-1a, which is the same wherever it is computed. It guards against nobody.
fn digest(run: &Rehearsal) -> String {
    let text = run.text();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}-{}", text.len())
}
