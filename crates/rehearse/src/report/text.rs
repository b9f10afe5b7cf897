//! A report, for people at a terminal: the verdict, what will happen, the worst things first, and what it is all worth.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use windlass_sim::timeline::Held;

use super::risk;
use super::spread::told;
use super::{Estimate, How, Origin, Quota, Report, StageForeseen, Tally, Wait};
use crate::rehearsal::Verdict;

/// Of a list of machines no more than this is told; the document has all.
const MACHINES_MAX: usize = 12;
/// Of waits and pods that were held.
const TOLD_MAX: usize = 5;
/// What takes longer than a machine does is no ordinary wait.
const LONG: SignedDuration = SignedDuration::from_mins(5);
/// What stages wait for because that is their order. What holds the one before them up is told of that.
const IN_ORDER: [&str; 3] = ["ControlPlaneBehind", "ControlPlaneUpdateRunning", "PoolRolling"];
/// The section that a page has as a table.
pub(super) const FAULTS: &str = "Faults";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        for line in self.verdict_lines() {
            writeln!(f, "  {line}")?;
        }
        for (title, lines) in self.sections() {
            if !lines.is_empty() {
                writeln!(f, "\n{title}")?;
                lines.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// The whole for people to read.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The verdict in a line.
    pub(super) fn headline(&self) -> String {
        let sign = if self.is_good() { '✔' } else { '✖' };
        let word = match &self.verdict {
            Verdict::Reached { distribution } => format!("reaches {distribution}"),
            Verdict::Gone => "is gone in the end".to_owned(),
            Verdict::GivenUp { distribution } => format!("is given up, and keeps {distribution}"),
            Verdict::Refused { .. } => "is refused".to_owned(),
            Verdict::Failed { .. } => "fails".to_owned(),
            Verdict::Stuck { .. } => "gets stuck".to_owned(),
        };
        let runs = match (self.verdicts.first().map(|tally| tally.runs), self.runs) {
            (_, 1) => "in 1 run".to_owned(),
            (Some(these), all) if these < all => format!("in {these} of {all} runs"),
            (_, all) => format!("in all {all} runs"),
        };
        let broken = self.violations.len();
        let but = match broken {
            0 => String::new(),
            1 => ", and 1 rule is violated on the way".to_owned(),
            many => format!(", and {many} rules are violated on the way"),
        };
        let broken = self.faults.iter().flat_map(crate::matrix::FaultMatrix::broken).count();
        let but = if broken == 0 { but } else { format!("{but}; broken by a fault in {broken} of the runs with one") };
        let took = if matches!(self.verdict, Verdict::Refused { .. }) {
            String::new()
        } else {
            format!(": {}", self.took_words())
        };
        format!("{} {}, seed {}\n{sign} {word} {runs}{took}{but}", self.cluster, self.asked, self.seed)
    }

    /// One time where there is one run.
    fn took_words(&self) -> String {
        if self.runs == 1 { told(self.took.p50) } else { self.took.to_string() }
    }

    /// Why it ended so, and how the other runs did.
    pub(super) fn verdict_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = why(&self.verdict).into_iter().map(|why| format!("why: {why}")).collect();
        if self.verdicts.len() > 1 {
            let tally = |tally: &Tally| {
                let runs = if tally.runs == 1 { "run" } else { "runs" };
                format!("{} {runs}: {}, first with seed {}", tally.runs, tally.verdict, tally.seed)
            };
            lines.extend(self.verdicts.iter().map(tally));
        }
        lines
    }

    /// What else there is to say, the worst first.
    pub(super) fn sections(&self) -> Vec<(&'static str, Vec<String>)> {
        vec![
            ("What must never be, and was", self.violation_lines()),
            ("What stands in the way", self.obstacle_lines()),
            ("Risks", risk::lines(&self.risks)),
            ("What will happen", self.stage_lines()),
            ("What it takes", self.cost_lines()),
            (FAULTS, self.faults.iter().flat_map(crate::matrix::FaultMatrix::lines).collect()),
            ("How far to trust this", self.trust_lines()),
        ]
    }

    fn violation_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for violated in &self.violations {
            let violation = &violated.first.violation;
            let runs = if violated.runs == 1 { "1 run".to_owned() } else { format!("{} runs", violated.runs) };
            lines.push(format!("✖ {} {}: {} (in {runs})", violation.id, violation.cluster, violation.message));
            lines.push(format!("    again: {}", violated.first.replay));
        }
        lines
    }

    /// What holds an update up: pods that are kept, what a run waits for at a bad end or for long, and the way out of each.
    fn obstacle_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(quota) = self.peak.quota.as_ref().filter(|quota| quota.is_exceeded()) {
            lines.push(format!("✖ not enough machines: {quota}"));
            lines.push("    way out: raise it, or let something else in the namespace go".to_owned());
        }
        let kept: Vec<&Held> = self.pods.held.iter().filter(|held| is_obstacle(held)).collect();
        for held in kept.iter().take(TOLD_MAX) {
            let lasted = held.lasted().map_or_else(|| "to the end".to_owned(), |time| format!("for {}", told(time)));
            let (sign, after) = (if held.to.is_none() { '✖' } else { '…' }, told(self.after(held.from)));
            lines.push(format!("{sign} Pod {} keeps Machine {} {lasted}, from {after} on", held.pod, held.machine));
            lines.push(format!("    because PodDisruptionBudget {}: {}", held.budget, held.why));
            if let Some((namespace, name)) = held.budget.split_once('/').filter(|_| held.to.is_none()) {
                let edit = format!("kubectl -n {namespace} edit poddisruptionbudget {name}");
                lines.push(format!("    way out, in the workload cluster: run more of its pods elsewhere, or {edit}"));
            }
        }
        lines.extend(more(kept.len(), TOLD_MAX, "pods that were held"));
        for wait in self.told_waits(!lines.is_empty()).into_iter().take(TOLD_MAX) {
            let sign = if wait.at_the_end && !self.is_good() { '✖' } else { '…' };
            lines.push(format!(
                "{sign} {} waits {} for {}: {}",
                wait.stage,
                told(wait.took),
                wait.object,
                wait.message
            ));
            lines.extend(
                wait.because
                    .last()
                    .filter(|cause| !cause.starts_with(&wait.message))
                    .map(|cause| format!("    because {cause}")),
            );
            lines.extend(wait.way_out.iter().map(|way_out| format!("    way out: {way_out}")));
        }
        lines
    }

    /// The long waits at a bad end, and those that people can do something about; nothing that was told already, and nothing
    /// that is only the order of things. Where that leaves nothing to say about a bad end, all that was waited for then.
    fn told_waits(&self, is_told: bool) -> Vec<&Wait> {
        let is_bad = !self.is_good();
        let is_known = |wait: &Wait| {
            let says = |pod: &str| wait.message.contains(pod) || wait.because.iter().any(|why| why.contains(pod));
            self.pods.held.iter().any(|held| says(&held.pod) || wait.reason == "PoolStalled")
        };
        let is_obstacle = |wait: &&Wait| {
            let can_be_ended = wait.way_out.as_ref().is_some_and(|way| !way.starts_with("wait"));
            let is_last = is_bad && wait.at_the_end;
            wait.took >= LONG && (is_last || can_be_ended) && !IN_ORDER.contains(&wait.reason.as_str())
        };
        let new: Vec<&Wait> = self.waits.iter().filter(|wait| !is_known(wait)).collect();
        let obstacles: Vec<&Wait> = new.iter().copied().filter(is_obstacle).collect();
        if is_bad && obstacles.is_empty() && !is_told {
            return new.into_iter().filter(|wait| wait.at_the_end && wait.took.is_positive()).collect();
        }
        obstacles
    }

    fn stage_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, stage) in (1_u32..).zip(&self.stages) {
            lines.push(self.stage_line(number, stage));
            lines.extend(changes(&stage.changes).into_iter().map(|change| format!("    {change}")));
        }
        for replaced in self.replaced.iter().take(MACHINES_MAX) {
            let after = told(replaced.gone_after);
            let by = replaced.by.as_ref().map_or_else(|| "by none".to_owned(), |by| format!("by {by}"));
            let mut guilty: Vec<&str> = replaced.because.iter().map(super::stage::short).collect();
            guilty.dedup();
            let guilty = if guilty.is_empty() { String::new() } else { format!("   # {}", guilty.join(", ")) };
            lines.push(format!("-/+ {} {by}, after {after}{guilty}", replaced.machine));
        }
        lines.extend(more(self.replaced.len(), MACHINES_MAX, "machines"));
        lines
    }

    fn stage_line(&self, number: u32, stage: &StageForeseen) -> String {
        let took = match stage.ended {
            0 => "does not end in any run".to_owned(),
            ended if ended < self.runs => {
                format!("{}, in the {ended} of {} runs in which it ends", stage.took, self.runs)
            }
            _ => stage.took.to_string(),
        };
        format!("{number} {:<14} {took}", stage.stage)
    }

    fn cost_lines(&self) -> Vec<String> {
        if matches!(self.verdict, Verdict::Refused { .. }) {
            return Vec::new();
        }
        let peak = &self.peak;
        let more = peak.machines.saturating_sub(peak.machines_before);
        let mut lines = vec![format!(
            "machines: {} replaced; at most {} at a time, {more} more than now, each with an address",
            self.replaced.len(),
            peak.machines,
        )];
        lines.extend(peak.quota.as_ref().map(|quota| format!("quota: {quota}")));
        lines.push(format!("pods: {} evicted, {} of them held by a budget", self.pods.moved, self.pods.held.len()));
        lines.push(format!("API: {}", self.api_line()));
        lines.push(format!("versions: {}", self.skew_line()));
        lines.extend(self.quorum_line().map(|line| format!("etcd: {line}")));
        lines
    }

    fn api_line(&self) -> String {
        let ended = match self.api.servers_ended {
            0 => "no server ends".to_owned(),
            1 => "1 server ends, and its clients connect again".to_owned(),
            many => format!("{many} servers end, one after the other, and their clients connect again"),
        };
        let outages = self.api.outages.iter().map(|outage| {
            let to = outage
                .to
                .map_or_else(|| "to the end".to_owned(), |to| format!("for {}", told(outage.from.duration_until(to))));
            format!("away {to}, from {} on", self.told_after(outage.from))
        });
        let outages: Vec<String> = outages.collect();
        if outages.is_empty() {
            format!("{ended}; it is never away")
        } else {
            format!("✖ {ended}; {}", outages.join("; "))
        }
    }

    fn skew_line(&self) -> String {
        match &self.worst.skew {
            None => "no kubelet is ever of another minor than an API server".to_owned(),
            Some(skew) => {
                let minors = if skew.minors == 1 { "1 minor".to_owned() } else { format!("{} minors", skew.minors) };
                format!(
                    "at most {minors} apart: the kubelet of {} is {}, an API server {}",
                    skew.node, skew.kubelet, skew.api_server
                )
            }
        }
    }

    fn quorum_line(&self) -> Option<String> {
        let quorum = self.worst.quorum.as_ref()?;
        let line =
            format!("at worst {} of {} members healthy, {} needed", quorum.healthy, quorum.voters, quorum.needed);
        Some(if quorum.spare() < 0 { format!("{line} ({})", self.why_thin()) } else { line })
    }

    /// A quorum that is thin for a declared reason is no violation.
    fn why_thin(&self) -> &'static str {
        if self.violations.iter().any(|violated| violated.first.violation.id == "E1") {
            "it is lost"
        } else {
            "while one joins, as a declared exception"
        }
    }

    fn trust_lines(&self) -> Vec<String> {
        let mut lines = vec![self.estimate.to_string(), self.snapshot.to_string()];
        lines.extend(self.snapshot.gaps.iter().map(|gap| format!("▲ not read: {}: {}", gap.what, gap.why)));
        for how in [How::Real, How::Modelled, How::Assumed] {
            let of = self.fidelity.iter().filter(|one| one.how == how);
            let short: Vec<&str> = of.map(|one| one.short.as_str()).collect();
            lines.push(format!("{how}: {}", short.join("; ")));
        }
        lines.push(format!("again: {}", self.replay));
        lines
    }

    fn told_after(&self, at: Timestamp) -> String {
        told(self.after(at))
    }
}

/// Whether a pod that was held holds the update up: it never went, or it took long.
fn is_obstacle(held: &Held) -> bool {
    held.lasted().is_none_or(|lasted| lasted >= LONG)
}

/// What is behind an end that nobody wanted.
fn why(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Refused { why } | Verdict::Failed { why } => Some(why),
        Verdict::Stuck { waiting_for } => Some(waiting_for),
        Verdict::Reached { .. } | Verdict::GivenUp { .. } | Verdict::Gone => None,
    }
}

/// What a stage changes: of add-ons their names, of machines all of it.
fn changes(changes: &[String]) -> Vec<String> {
    let (mut addons, mut lines): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for change in changes {
        match change.strip_prefix("addon/").and_then(|rest| rest.split(['/', ':']).next()) {
            Some(addon) => addons.push(addon),
            None => lines.push(change.clone()),
        }
    }
    addons.dedup();
    if !addons.is_empty() {
        lines.insert(0, format!("add-ons: {}", addons.join(", ")));
    }
    let rest = more(lines.len(), MACHINES_MAX, "changes");
    lines.truncate(MACHINES_MAX);
    lines.extend(rest);
    lines
}

fn more(all: usize, told: usize, what: &str) -> Option<String> {
    let rest = all.checked_sub(told).filter(|rest| *rest > 0)?;
    Some(format!("and {rest} more {what}: -o json has all"))
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Recorded(recorded) = self else {
            return f.write_str("times: from the data file, as no earlier update of this cluster is on record");
        };
        let each = [("a control-plane machine", recorded.control_plane_machine), ("a worker", recorded.worker)];
        let each = each.into_iter().filter_map(|(what, took)| Some(format!("{what} took {}", told(took?))));
        write!(
            f,
            "times: from {}, where {}: {}.{:02} times the data file",
            recorded.updates.join(", "),
            each.collect::<Vec<_>>().join(" and "),
            recorded.percent / 100,
            recorded.percent % 100
        )
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, limit, used, needed } = self;
        write!(f, "{by} allows {limit} in the namespace, {used} are there now, and {needed} are needed at a time")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.folder, self.taken_at) {
            (Some(folder), Some(taken_at)) => {
                let age = self.age.map(|age| format!(", {} old", told(age))).unwrap_or_default();
                write!(f, "snapshot: {folder}, taken at {taken_at}{age}; values of Secrets are not in it")
            }
            (None, Some(_)) => f.write_str("snapshot: read just now; values of Secrets are not in it"),
            _ => f.write_str("snapshot: none, the start was made for this"),
        }
    }
}
