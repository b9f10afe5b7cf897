//! A rehearsal, for people.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::{Change, Rehearsal, Reported, Verdict};

impl fmt::Display for Rehearsal {
    /// The whole for people to read: the verdict, the timeline, the machines, what must never be and was, and what it cost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}, seed {}", self.cluster, self.asked, self.seed)?;
        writeln!(f, "{} after {}\n", self.verdict, Elapsed(self.took))?;
        f.write_str(&self.timeline.text())?;
        self.write_stages(f)?;
        self.write_machines(f)?;
        self.write_violations(f)?;
        writeln!(f, "\nRequests")?;
        for (caller, requests) in &self.requests {
            writeln!(f, "  {caller:<12} {:>6}, of which {:>5} to write", requests.all, requests.writes)?;
        }
        Ok(())
    }
}

impl Rehearsal {
    /// The whole for people to read.
    pub fn text(&self) -> String {
        self.to_string()
    }

    fn write_stages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.stages.is_empty() {
            writeln!(f, "\nStages")?;
        }
        for stage in &self.stages {
            let at = |time: &Option<String>| {
                let time = time.as_ref().and_then(|time| time.parse::<Timestamp>().ok());
                time.map_or_else(
                    || "-".to_owned(),
                    |time| Elapsed::between(self.began, time.max(self.began)).to_string(),
                )
            };
            writeln!(f, "  {:<14} {} to {}", stage.stage, at(&stage.started_at), at(&stage.finished_at))?;
        }
        Ok(())
    }

    fn write_machines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.machines.is_empty() {
            writeln!(f, "\nMachines")?;
        }
        for machine in &self.machines {
            let sign = match machine.change {
                Change::Created => '+',
                Change::Deleted => '-',
            };
            writeln!(f, "  {}  {sign} {}", Elapsed::between(self.began, machine.at), machine.name)?;
        }
        Ok(())
    }

    fn write_violations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.violations.is_empty() {
            writeln!(f, "\nViolations")?;
        }
        for Reported { violation, replay } in &self.violations {
            let at = Elapsed::between(self.began, violation.at);
            writeln!(f, "  {at}  {} {}: {}", violation.id, violation.cluster, violation.message)?;
            writeln!(f, "            again: {replay}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached { distribution } => write!(f, "reached {distribution}"),
            Self::Refused { why } => write!(f, "refused: {why}"),
            Self::Failed { why } => write!(f, "failed: {why}"),
            Self::Stuck { waiting_for } => write!(f, "stuck: {waiting_for}"),
            Self::Gone => f.write_str("gone"),
            Self::GivenUp { distribution } => write!(f, "given up: it keeps {distribution}"),
        }
    }
}

/// A time since the beginning, as timelines have it: `0:12:07`.
struct Elapsed(SignedDuration);

impl Elapsed {
    fn between(began: Timestamp, at: Timestamp) -> Self {
        Self(began.duration_until(at))
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        write!(f, "{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}
