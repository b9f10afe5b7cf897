//! One look after the other: what has come since the last one, whether anything moved, and whether to go on.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::{Awaited, Observed, awaited, brief, since};

/// All of it may take as many times as long as nothing may change.
const CAP: i32 = 3;

/// How a creation has gone so far, to somebody who waits for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    patience: SignedDuration,
    began: Timestamp,
    moved: Timestamp,
    /// What was seen at the last look.
    state: Vec<String>,
    /// How many of the awaited things were told to have come.
    told: usize,
}

/// What a look has shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// What has come, and was not told yet: in order, and nothing before what is awaited before it.
    pub came: Vec<Awaited>,
    /// What is awaited now; nothing if all has come.
    pub awaited: Option<Awaited>,
    /// How much has come, of how much.
    pub count: (usize, usize),
    /// Whether something has changed.
    pub moved: bool,
    /// Whether waiting is over.
    pub end: Option<End>,
}

/// Why waiting is over.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// All has come.
    Done,
    /// The cluster was deleted.
    Gone,
    /// It will not help.
    Stalled(Stall),
}

/// Why waiting will not help.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// What was awaited.
    pub awaited: Awaited,
    /// How long nothing has changed, or how long it has taken in all.
    pub after: SignedDuration,
    /// Things changed, and it did not end.
    pub restless: bool,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Awaited { thing, how, .. }, after) = (&self.awaited, brief(self.after));
        if self.restless {
            return write!(f, "it changes and does not end ({after} so far); it waits for {thing}: {how}");
        }
        write!(f, "nothing has changed for too long ({after} so far); it waits for {thing}: {how}")
    }
}

impl Course {
    /// It begins now, and nothing may stay as it is for longer than this.
    pub fn begin(patience: SignedDuration, now: Timestamp) -> Self {
        Self { patience, began: now, moved: now, state: Vec::new(), told: 0 }
    }

    /// When it must be looked at again, even if nobody says that something has changed.
    pub fn due(&self) -> Timestamp {
        let unchanged = self.moved.saturating_add(self.patience).unwrap_or(Timestamp::MAX);
        let whole = self.began.saturating_add(self.patience * CAP).unwrap_or(Timestamp::MAX);
        unchanged.min(whole)
    }

    /// Looks at what was read.
    pub fn look(&mut self, observed: &Observed, now: Timestamp) -> Look {
        let awaited = awaited(observed);
        let state = state(observed, &awaited);
        let moved = state != self.state;
        if moved {
            self.state = state;
            self.moved = now;
        }
        let first = awaited.iter().position(|awaited| !awaited.came);
        let reached = first.unwrap_or(awaited.len());
        let came = awaited.get(self.told..reached).unwrap_or_default().to_vec();
        self.told = self.told.max(reached);
        let count = (awaited.iter().filter(|awaited| awaited.came).count(), awaited.len());
        let gone = observed.cluster.as_ref().is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some());
        let end = match first.and_then(|first| awaited.get(first)) {
            _ if gone => Some(End::Gone),
            None => Some(End::Done),
            Some(awaited) => self.stall(awaited, now).map(End::Stalled),
        };
        Look { came, awaited: first.and_then(|first| awaited.get(first)).cloned(), count, moved, end }
    }

    fn stall(&self, awaited: &Awaited, now: Timestamp) -> Option<Stall> {
        let (unchanged, whole) = (since(self.moved, now), since(self.began, now));
        let restless = whole >= self.patience * CAP && unchanged < self.patience;
        let after = if restless { whole } else { unchanged };
        (restless || unchanged >= self.patience).then(|| Stall { awaited: awaited.clone(), after, restless })
    }
}

/// What counts as a change: what is awaited, how each machine is, and how the cluster calls itself.
fn state(observed: &Observed, awaited: &[Awaited]) -> Vec<String> {
    let machine = |machine: &windlass_api::kind::cluster_api::Machine| {
        let status = machine.status.clone().unwrap_or_default();
        let ready = super::part::is_true(&status.conditions, "Ready");
        let (name, node) = (machine.metadata.name.as_deref().unwrap_or_default(), status.node_ref.is_some());
        format!("{name} {} {node} {ready}", status.phase.as_deref().unwrap_or_default())
    };
    let phase = observed.cluster.as_ref().and_then(|cluster| cluster.status.as_ref()?.phase.clone());
    let parts = awaited.iter().map(|awaited| format!("{} {awaited}", awaited.came));
    parts.chain(observed.machines.iter().map(machine)).chain(phase).collect()
}
