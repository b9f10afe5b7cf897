//! The oracles: what must be so when a trial has ended.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use windlass_api::name::NamespacedName;
use windlass_sim::invariant::Violation;
use windlass_sim::timeline::{Event, Timeline, Turnover, What};

use super::plan::{Expect, Plan};
use super::run::Run;
use super::shape::Shape;
use crate::rehearsal::Verdict;
use crate::state::State;

/// Resources whose objects come and go more often when something is tried again: attempts of Jobs, and what tells of them; and
/// pods, which are moved by whoever rolls nodes.
const ATTEMPTS: [&str; 6] =
    ["pods", "events", "events.events.k8s.io", windlass_sim::log::LOGS, "leases.coordination.k8s.io", "endpoints"];

/// What does not hold while the only machine of a control plane is away.
const QUORUM: [&str; 2] = ["C2", "E1"];
/// The faults that take machines and members of etcd away.
const AWAY: [&str; 2] = ["F19: ", "F22: "];
/// What does not hold where etcd complains between the look and the write of whoever rolls the control plane.
const ALARM: &str = "E13";

/// How many differences are told of one trial.
const TOLD_MAX: usize = 5;

/// Something that must be so and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// Which oracle says so.
    pub oracle: Oracle,
    /// What is wrong.
    pub message: String,
}

/// What must be so when a trial has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Oracle {
    /// No invariant was violated.
    Invariants,
    /// It ended, and as it should.
    Settling,
    /// The end is that of the reference, or of what is wished for now.
    EndState,
    /// Each object came and went as often as in the reference.
    Counts,
    /// Nothing is written when nothing is to be done.
    Quiescence,
    /// Nobody panicked.
    NoPanic,
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Invariants => "invariants",
            Self::Settling => "settling",
            Self::EndState => "end state",
            Self::Counts => "counts",
            Self::Quiescence => "quiescence",
            Self::NoPanic => "no panic",
        })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.oracle, self.message)
    }
}

/// What a trial is compared with.
pub(super) struct Expected {
    verdict: Verdict,
    state: State,
    shape: Shape,
    machines: Vec<String>,
    objects: BTreeMap<String, Turnover>,
}

impl Expected {
    /// What a run was.
    pub(super) fn of(run: &Run, cluster: &NamespacedName) -> Self {
        let mut machines = run.machines();
        machines.sort_unstable();
        Self {
            verdict: run.verdict.clone(),
            state: State::of(&run.world),
            shape: Shape::of(&run.world, cluster),
            machines,
            objects: lasting(&run.objects),
        }
    }
}

/// The objects that are made and removed once, however often somebody tries.
fn lasting(objects: &BTreeMap<String, Turnover>) -> BTreeMap<String, Turnover> {
    let is_attempt = |name: &str| name.split(' ').nth(1).is_some_and(|resource| ATTEMPTS.contains(&resource));
    objects.iter().filter(|(name, _)| !is_attempt(name)).map(|(name, turnover)| (name.clone(), *turnover)).collect()
}

/// What a run by itself says: the reference, too, must be so.
pub(super) fn judge_alone(run: &Run, tolerated: &[&str]) -> Vec<Broken> {
    let is_let_pass =
        |violation: &Violation| tolerated.contains(&&*violation.id) || is_of_a_fault(violation, &run.timeline);
    let violations = run.timeline.violations.iter().filter(|violation| !is_let_pass(violation));
    let violated = violations.map(|violation| (Oracle::Invariants, format!("{}: {}", violation.id, violation.message)));
    let restless = run
        .restless
        .iter()
        .map(|write| (Oracle::Quiescence, format!("{} of the {} after the end", write.what, write.caller)));
    told(violated).chain(told(restless)).chain(wasted_keys(run)).collect()
}

/// Who crashes makes a key again, and of two leaders both may; at every look nobody does.
fn wasted_keys(run: &Run) -> Option<Broken> {
    let (made, kept) = (run.keys_made, run.certificates());
    let message = || format!("certificates and keys were made {made} times for {kept} Secrets");
    (made > 2 * kept).then(|| Broken { oracle: Oracle::Counts, message: message() })
}

/// Whether an invariant does not hold from the very write on by which a fault took a machine or a member of etcd away: of one there
/// is no other; or because a fault made etcd complain in the very moment of a decision, after it was looked at. What follows from later
/// writes, or from decisions of later moments, is not let pass.
fn is_of_a_fault(violation: &Violation, timeline: &Timeline) -> bool {
    let takes_away = |event: &&Event| {
        event.what == What::Fault
            && event.cluster == violation.cluster
            && AWAY.iter().any(|fault| event.text.starts_with(fault))
    };
    let is_of_its_moment = |event: &Event| event.at == violation.at;
    let is_of_its_write = |event: &Event| is_of_its_moment(event) && event.write == violation.write;
    let mut faults = timeline.events.iter().filter(takes_away);
    match &*violation.id {
        ALARM => faults.any(is_of_its_moment),
        id => QUORUM.contains(&id) && faults.any(is_of_its_write),
    }
}

/// What is wrong with a run, compared with what must come of it.
pub(super) fn judge(plan: &Plan, expected: &Expected, run: &Run, cluster: &NamespacedName) -> Vec<Broken> {
    let mut broken = judge_alone(run, plan.tolerated);
    let is_explained = plan.expect == Expect::Explained && says_why(&run.verdict);
    if run.verdict != expected.verdict && !(matches!(plan.expect, Expect::Wished(_)) && goes_back(run, expected)) {
        if !is_explained {
            let message = format!("{} instead of {}", run.verdict, expected.verdict);
            broken.push(Broken { oracle: Oracle::Settling, message });
        }
        return broken;
    }
    match plan.expect {
        Expect::Same => {
            let state = expected.state.differences(&State::of(&run.world));
            broken.extend(told(state.into_iter().map(|line| (Oracle::EndState, line))));
            broken.extend(told(counts(expected, run).into_iter().map(|line| (Oracle::Counts, line))));
        }
        Expect::Alike | Expect::Explained | Expect::Wished(_) => {
            let shape = expected.shape.differences(&Shape::of(&run.world, cluster));
            broken.extend(told(shape.into_iter().map(|line| (Oracle::EndState, line))));
        }
    }
    broken
}

/// Whether a cluster has the release again that somebody wished back, because its update was given up for that.
fn goes_back(run: &Run, expected: &Expected) -> bool {
    match (&run.verdict, &expected.verdict) {
        (Verdict::GivenUp { distribution: kept }, Verdict::Reached { distribution: wished }) => kept == wished,
        _ => false,
    }
}

/// Whether an end that is not the one that was wished for says why.
fn says_why(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Failed { why } => !why.is_empty() && why != "no reason is given",
        Verdict::Stuck { waiting_for } => !waiting_for.is_empty() && waiting_for != "it does not say what it waits for",
        Verdict::Reached { .. } | Verdict::GivenUp { .. } | Verdict::Refused { .. } | Verdict::Gone => false,
    }
}

/// Machines that should not have been made, or were not; and objects that came and went more often, or less.
fn counts(expected: &Expected, run: &Run) -> Vec<String> {
    let mut machines = run.machines();
    machines.sort_unstable();
    let mut lines = Vec::new();
    if machines != expected.machines {
        lines.push(format!(
            "the machines {} were made instead of {}",
            machines.join(", "),
            expected.machines.join(", ")
        ));
    }
    let found = lasting(&run.objects);
    let names = expected.objects.keys().chain(found.keys().filter(|name| !expected.objects.contains_key(*name)));
    for name in names {
        let [expected, found] = [&expected.objects, &found].map(|all| all.get(name).copied().unwrap_or_default());
        if expected != found {
            let words =
                |turnover: Turnover| format!("{} times made and {} times removed", turnover.created, turnover.deleted);
            lines.push(format!("{name}: {} instead of {}", words(found), words(expected)));
        }
    }
    lines
}

/// The first few, and how many more there are.
fn told(lines: impl Iterator<Item = (Oracle, String)>) -> impl Iterator<Item = Broken> {
    let mut all: Vec<Broken> = lines.map(|(oracle, message)| Broken { oracle, message }).collect();
    let more = all.len().saturating_sub(TOLD_MAX);
    all.truncate(TOLD_MAX);
    if let Some(last) = all.last_mut().filter(|_| more > 0) {
        last.message = format!("{} (and {more} more)", last.message);
    }
    all.into_iter()
}
