//! What happened to a resource lately: the history that watches and paged lists are answered from.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Entry;

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object is new.
    Added,
    /// The object is another than before.
    Modified,
    /// The object is gone.
    Deleted,
}

/// One committed write.
#[derive(Debug)]
pub struct Change {
    /// What it did.
    pub kind: ChangeKind,
    /// Its revision: each is used once, and higher than all before.
    pub revision: u64,
    /// When.
    pub at: Timestamp,
    /// The object after the change; for a deletion its last state, at the revision of the deletion.
    pub object: Arc<Entry>,
    /// The object before the change: a watch with a selector needs it to tell who entered and who left.
    pub previous: Option<Arc<Entry>>,
}

/// How much history is kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Changes younger than this stay, as long as `events_max` allows. Kubernetes keeps 75 seconds.
    pub age: Duration,
    /// At least this many changes stay for each resource, however old: a quiet resource costs nothing.
    pub events_min: usize,
    /// No more than this many stay, however young: a bound on memory.
    pub events_max: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: Duration::from_secs(75), events_min: 1_000, events_max: 100_000 }
    }
}

/// The revision asked for is older than the history that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The oldest revision that can still be asked for.
    pub oldest: u64,
}

/// The changes of one resource, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<Arc<Change>>,
    /// History up to this revision cannot be asked for any more.
    forgotten: u64,
    /// The newest change that was thrown away. Whoever had seen it has missed nothing, though it be older than `forgotten`.
    dropped: u64,
}

impl Log {
    /// An empty log of a resource whose history before `revision` is unknown.
    pub(super) fn starting_after(revision: u64) -> Self {
        Self { changes: VecDeque::new(), forgotten: revision, dropped: revision }
    }

    pub(super) fn push(&mut self, change: Arc<Change>, retention: Retention) {
        let now = change.at;
        self.changes.push_back(change);
        while self.changes.len() > retention.events_min {
            let Some(oldest) = self.changes.front() else { break };
            let young = now.duration_since(oldest.at).unsigned_abs() < retention.age;
            if young && self.changes.len() <= retention.events_max {
                break;
            }
            self.forgotten = oldest.revision;
            self.dropped = oldest.revision;
            self.changes.pop_front();
        }
    }

    /// The changes after `revision`, for a reader that has followed the log up to there.
    pub(super) fn following(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Expired> {
        if revision < self.dropped {
            return Err(Expired { oldest: self.forgotten });
        }
        Ok(self.later_than(revision))
    }

    /// The changes after `revision`, for a reader who comes with it.
    pub(super) fn after(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Expired> {
        if revision < self.forgotten {
            return Err(Expired { oldest: self.forgotten });
        }
        Ok(self.later_than(revision))
    }

    fn later_than(&self, revision: u64) -> impl Iterator<Item = &Arc<Change>> {
        let start = self.changes.partition_point(|change| change.revision <= revision);
        self.changes.range(start..)
    }

    pub(super) fn latest(&self) -> u64 {
        self.changes.back().map_or(self.forgotten, |change| change.revision)
    }

    pub(super) fn compact(&mut self, revision: u64) {
        while let Some(oldest) = self.changes.front().filter(|change| change.revision <= revision) {
            self.dropped = oldest.revision;
            self.changes.pop_front();
        }
        self.forgotten = self.forgotten.max(revision);
    }
}
