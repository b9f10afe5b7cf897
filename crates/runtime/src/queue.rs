//! What runs next: a queue of keys without time or tasks of its own.
//!
//! A key is in one place only, so the queue never holds more than there are keys. It is *ready*, or *waiting* for a
//! time, or *parked* until the caches have seen what its last reconcile wrote, or *running*. Time is told to it, as the
//! duration since the run began.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::backoff::Backoff;
use crate::chance::Chance;
use crate::key::Key;

/// The order in which ready keys are taken.
#[derive(Debug, Clone)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// Any order, drawn from this stream: another seed explores another schedule. With all slots taken for long, a key
    /// may be overtaken by others for long.
    Permuted(Chance),
}

/// Something that a reconcile wrote: its cache has seen it when it has come to this resource version.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub seen: Arc<AtomicU64>,
    pub version: u64,
}

impl Write {
    fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Acquire) >= self.version
    }

    /// Adds this to what is waited for. A cache sees in order, so of each only the latest write counts.
    fn join(self, writes: &mut Vec<Self>) {
        match writes.iter_mut().find(|write| Arc::ptr_eq(&write.seen, &self.seen)) {
            Some(write) => write.version = write.version.max(self.version),
            None => writes.push(self),
        }
    }
}

/// A key whose turn it is.
#[derive(Debug, PartialEq)]
pub(crate) struct Turn {
    pub key: Key,
    /// False as long as the caches have not seen the key's own writes, for which it no longer waits.
    pub caught_up: bool,
    /// How long it was due.
    pub waited: Duration,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Done,
    Again(Duration),
    Failed,
}

#[derive(Debug)]
pub(crate) struct Queue {
    order: Order,
    backoff: Backoff,
    jitter: Chance,
    /// How long a key waits for its own writes to be seen.
    patience: Duration,
    /// By rank and ticket: the rank is chance's (or nobody's), the ticket counts.
    ready: BTreeMap<(u64, u64), Key>,
    tickets: u64,
    timers: BTreeSet<(Duration, Key)>,
    parked: BTreeSet<Key>,
    entries: BTreeMap<Key, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    state: State,
    failures: u32,
    /// Since when its turn is due, if it is.
    due: Option<Duration>,
    /// No turn before this, whatever changes.
    not_before: Duration,
    /// What the turns so far wrote and the caches have not seen, and until when to wait for that.
    writes: Vec<Write>,
    patient_until: Duration,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Idle,
    Ready,
    Waiting {
        until: Duration,
    },
    Parked,
    Running {
        again: bool,
    },
}

/// The resolution of tokio's timers. A shorter requeue would be a loop in which virtual time never moves.
const TICK: Duration = Duration::from_millis(1);

impl Queue {
    pub fn new(order: Order, backoff: Backoff, jitter: Chance, patience: Duration) -> Self {
        Self {
            order,
            backoff,
            jitter,
            patience,
            ready: BTreeMap::new(),
            tickets: 0,
            timers: BTreeSet::new(),
            parked: BTreeSet::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Something changed for this key. During its turn that is remembered, so that the change is not lost.
    pub fn add(&mut self, key: &Key, now: Duration) {
        let entry = self.entries.entry(key.clone()).or_default();
        match &mut entry.state {
            State::Ready | State::Parked => {}
            State::Running { again } => *again = true,
            State::Waiting { until } if *until <= entry.not_before => {}
            State::Waiting { until } => {
                self.timers.remove(&(*until, key.clone()));
                let at = entry.not_before;
                self.schedule(key, at, now);
            }
            State::Idle => {
                let at = entry.not_before;
                self.schedule(key, at, now);
            }
        }
    }

    /// Makes ready what waits for a time that has come, in the order of those times.
    pub fn wake(&mut self, now: Duration) {
        while let Some((at, key)) = self.timers.pop_first() {
            if at > now {
                self.timers.insert((at, key));
                return;
            }
            self.parked.remove(&key);
            self.make_ready(&key, at);
        }
    }

    /// Makes ready what was parked and whose writes have been seen.
    pub fn unpark(&mut self) {
        let entries = &self.entries;
        let caught_up = |key: &&Key| entries.get(*key).is_none_or(|entry| entry.writes.iter().all(Write::is_seen));
        let keys: Vec<Key> = self.parked.iter().filter(caught_up).cloned().collect();
        for key in keys {
            self.parked.remove(&key);
            let until = self.entries.get(&key).map(|entry| entry.patient_until).unwrap_or_default();
            self.timers.remove(&(until, key.clone()));
            // It has been due since before it was parked.
            self.make_ready(&key, until);
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many keys could have their turn now.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// When to call [`wake`](Self::wake) next.
    pub fn next_timer(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next key. One whose own writes have not been seen is parked instead, until they are or it lost patience.
    pub fn take(&mut self, now: Duration) -> Option<Turn> {
        while let Some((_, key)) = self.ready.pop_first() {
            let entry = self.entries.entry(key.clone()).or_default();
            entry.writes.retain(|write| !write.is_seen());
            let caught_up = entry.writes.is_empty();
            if caught_up || entry.patient_until <= now {
                entry.state = State::Running { again: false };
                let waited = now.saturating_sub(entry.due.take().unwrap_or(now));
                return Some(Turn { key, caught_up, waited });
            }
            entry.state = State::Parked;
            self.timers.insert((entry.patient_until, key.clone()));
            self.parked.insert(key);
        }
        None
    }

    /// The turn is over. Returns when the key comes back, if nothing changes before.
    pub fn finish(&mut self, key: &Key, ending: Ending, writes: Vec<Write>, now: Duration) -> Option<Duration> {
        let entry = self.entries.entry(key.clone()).or_default();
        let again = entry.state == State::Running { again: true };
        entry.state = State::Idle;
        if !writes.is_empty() {
            entry.patient_until = now.saturating_add(self.patience);
        }
        for write in writes {
            write.join(&mut entry.writes);
        }
        entry.writes.retain(|write| !write.is_seen());
        entry.failures = if ending == Ending::Failed { entry.failures.saturating_add(1) } else { 0 };
        entry.not_before = Duration::ZERO;
        let delay = match ending {
            Ending::Done => None,
            Ending::Again(delay) => Some(delay.max(TICK)),
            Ending::Failed => {
                let delay = self.backoff.delay(entry.failures, &mut self.jitter);
                entry.not_before = now.saturating_add(delay.min(self.backoff.soonest));
                Some(delay)
            }
        };
        if let Some(delay) = delay {
            self.schedule(key, now.saturating_add(delay), now);
        }
        if again {
            self.add(key, now);
        }
        self.forget_if_idle(key);
        delay
    }

    fn schedule(&mut self, key: &Key, at: Duration, now: Duration) {
        if at <= now {
            return self.make_ready(key, now);
        }
        self.timers.insert((at, key.clone()));
        self.enter(key, State::Waiting { until: at });
    }

    /// A key that was due already has been due since then.
    fn make_ready(&mut self, key: &Key, since: Duration) {
        let rank = match &mut self.order {
            Order::Fifo => 0,
            Order::Permuted(chance) => chance.u64(),
        };
        self.tickets += 1;
        self.ready.insert((rank, self.tickets), key.clone());
        self.enter(key, State::Ready);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.due.get_or_insert(since);
        }
    }

    fn enter(&mut self, key: &Key, state: State) {
        self.entries.entry(key.clone()).or_default().state = state;
    }

    fn forget_if_idle(&mut self, key: &Key) {
        let idle = |entry: &Entry| entry.state == State::Idle && entry.writes.is_empty();
        if self.entries.get(key).is_some_and(idle) {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
