//! Who sees every write: it folds changes into facts, and tells them to the timeline and to the rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use windlass_apiserver::store::{Change, ChangeKind, Observer, Resource};

use super::extremes::{Extremes, Gauges};
use super::{Event, Machines, Timeline, Turnover, What, lane, sentence, why};
use crate::actor::Actor;
use crate::invariant::{Exempted, Violation, Watch};
use crate::truth::{Fact, Place, Role, Truth};
use crate::world::KeptStores;

/// Sees every write to every API server of a World, keeps the timeline, and checks invariants after each. Cheap to clone:
/// clones are the same recorder.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    writes: u64,
    began_at: Option<Timestamp>,
    truth: Truth,
    watch: Watch,
    events: Vec<Event>,
    turnover: Vec<Turned>,
    gauges: Gauges,
    /// How often each object came and went, by place, resource and name; where somebody wants to know.
    objects: Option<BTreeMap<String, Turnover>>,
    /// How many events are remembered; all of them without a number.
    events_max: Option<usize>,
    /// Nothing is looked at.
    is_blind: bool,
}

/// A machine came or went.
#[derive(Clone)]
struct Turned {
    write: u64,
    role: Role,
    came: bool,
}

impl Recorder {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that remembers about so many events, the latest: for Worlds that go on for days. What is true it knows in full, so
    /// that no rule misses anything.
    pub fn remembering(events_max: usize) -> Self {
        Self(Arc::new(Mutex::new(State { events_max: Some(events_max), ..State::default() })))
    }

    /// One that counts writes and looks at none of them: to see what looking costs.
    pub fn blind() -> Self {
        Self(Arc::new(Mutex::new(State { is_blind: true, ..State::default() })))
    }

    /// One for a fork of the World: it knows what this one knows, and from then on sees other writes. Those before the fork
    /// count. How far things go is measured anew.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut state = self.state().clone();
        state.gauges = Gauges::anew(state.truth.clusters());
        Self(Arc::new(Mutex::new(state)))
    }

    /// Takes note of what was there before it began to look: nothing is told, and no rule is asked.
    pub fn know(&self, kept: &KeptStores) {
        let mut state = self.state();
        if !state.is_blind {
            state.truth.know(kept);
            state.gauges = Gauges::anew(state.truth.clusters());
        }
    }

    /// How far things went in a cluster, as `namespace/name`, from when this World was forked on.
    pub fn extremes(&self, cluster: &str) -> Extremes {
        self.state().gauges.of(cluster)
    }

    /// What observes the API server of a place: `management`, or the workload cluster as `namespace/name`.
    pub fn observer(&self, place: &str) -> Arc<dyn Observer> {
        Arc::new(Seat { place: Place::new(place), recorder: self.clone() })
    }

    /// Takes note of something that is no write: what a scenario did. It stands before the write that comes next.
    pub fn mark(&self, at: Timestamp, place: &str, cluster: &str, object: &str, text: &str) {
        let mut state = self.state();
        state.began_at.get_or_insert(at);
        let (place, cluster, object) = (place.to_owned(), cluster.to_owned(), object.to_owned());
        let (write, text) = (state.writes + 1, text.to_owned());
        let (what, actor) = (What::Fault, Actor::Fault);
        state.events.push(Event { at, write, place, cluster, what, object, lane: None, actor, why: None, text });
        if let Some(max) = state.events_max {
            forget(&mut state.events, max);
        }
    }

    /// Counts from now on how often each object comes and goes.
    pub fn count_objects(&self) {
        self.state().objects = Some(BTreeMap::new());
    }

    /// How often each object came and went since somebody wanted to know, by place, resource and name.
    pub fn objects(&self) -> BTreeMap<String, Turnover> {
        self.state().objects.clone().unwrap_or_default()
    }

    /// How many writes were seen.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// When something last happened that people care about.
    pub fn last_event_at(&self) -> Option<Timestamp> {
        self.state().events.last().map(|event| event.at)
    }

    /// What has happened so far.
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// What has happened after a write: `events_since(recorder.writes())` is empty.
    pub fn events_since(&self, write: u64) -> Vec<Event> {
        since(&self.state().events, write, |event| event.write)
    }

    /// Which invariants were violated so far, in order.
    pub fn violations(&self) -> Vec<Violation> {
        self.state().watch.violations().to_vec()
    }

    /// Which declared exceptions were made use of so far, in order.
    pub fn exempted(&self) -> Vec<Exempted> {
        self.state().watch.exempted().to_vec()
    }

    /// All that has happened so far.
    pub fn timeline(&self) -> Timeline {
        self.timeline_since(0)
    }

    /// All that has happened after a write.
    pub fn timeline_since(&self, write: u64) -> Timeline {
        let state = self.state();
        let events = since(&state.events, write, |event| event.write);
        let began_at = state.began_at.filter(|_| write == 0);
        let first = events.first().map(|event| event.at);
        Timeline {
            from: began_at.or(first).unwrap_or(Timestamp::UNIX_EPOCH),
            writes: state.writes.saturating_sub(write),
            machines: counted(&since(&state.turnover, write, |turned| turned.write)),
            exempted: since(state.watch.exempted(), write, |exempted| exempted.write),
            violations: since(state.watch.violations(), write, |violation| violation.write),
            events,
        }
    }

    /// A change is folded in whole before the lock is free, and nobody panics on the way: a poisoned lock still guards a
    /// whole state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest, not one by one: moving all others up each time would cost more than remembering twice as many.
fn forget<T>(all: &mut Vec<T>, max: usize) {
    if all.len() >= max.saturating_mul(2).max(1) {
        all.drain(..all.len() - max);
    }
}

/// The tail of what is in the order of writes.
fn since<T: Clone>(all: &[T], write: u64, write_of: impl Fn(&T) -> u64) -> Vec<T> {
    all[all.partition_point(|item| write_of(item) <= write)..].to_vec()
}

fn counted(turnover: &[Turned]) -> Machines {
    let count = |role, came| turnover.iter().filter(|turned| (turned.role, turned.came) == (role, came)).count() as u64;
    let of = |role| Turnover { created: count(role, true), deleted: count(role, false) };
    Machines { control_plane: of(Role::ControlPlane), workers: of(Role::Worker) }
}

/// One place that a recorder looks at.
struct Seat {
    place: Place,
    recorder: Recorder,
}

impl Observer for Seat {
    fn committed(&self, resource: &Resource, change: &Arc<Change>) {
        self.recorder.state().take(&self.place, resource, change);
    }
}

impl State {
    fn take(&mut self, place: &Place, resource: &Resource, change: &Change) {
        self.writes += 1;
        self.began_at.get_or_insert(change.at);
        self.count(place, resource, change);
        if self.is_blind {
            return;
        }
        let Some((cluster, facts)) = self.truth.fold(place, resource, change) else { return };
        for fact in &facts {
            self.tell(place, &cluster, fact, change.at);
            if let Some(truth) = self.truth.cluster(&cluster) {
                self.gauges.take(&cluster, truth, fact, change.at);
                self.watch.check(truth, fact, &cluster, change.at, self.writes);
            }
        }
    }

    fn count(&mut self, place: &Place, resource: &Resource, change: &Change) {
        let Some(objects) = self.objects.as_mut().filter(|_| change.kind != ChangeKind::Modified) else { return };
        let object = format!("{} {resource} {}", place.as_str(), change.object.key);
        let turnover = objects.entry(object).or_default();
        match change.kind {
            ChangeKind::Added => turnover.created += 1,
            ChangeKind::Deleted => turnover.deleted += 1,
            ChangeKind::Modified => {}
        }
    }

    fn tell(&mut self, place: &Place, cluster: &str, fact: &Fact, at: Timestamp) {
        match *fact {
            Fact::MachineCreated { role, .. } => self.turnover.push(Turned { write: self.writes, role, came: true }),
            Fact::MachineDeleted { role, .. } => self.turnover.push(Turned { write: self.writes, role, came: false }),
            _ => {}
        }
        let Some((what, object, text)) = sentence::of(fact, cluster) else { return };
        let truth = self.truth.cluster(cluster);
        let actor = truth.map_or(Actor::Person, |truth| why::actor(fact, truth));
        let (lane, why) = (truth.and_then(|t| lane::of(fact, t)), truth.and_then(|t| why::of(fact, t)));
        let (place, cluster) = (place.as_str().to_owned(), cluster.to_owned());
        self.events.push(Event { at, write: self.writes, place, cluster, what, object, lane, actor, why, text });
        if let Some(max) = self.events_max {
            forget(&mut self.events, max);
            forget(&mut self.turnover, max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::forget;

    #[test]
    fn what_is_forgotten_is_the_oldest() {
        let mut remembered = Vec::new();
        for event in 0..1_000 {
            remembered.push(event);
            forget(&mut remembered, 10);
            assert!(remembered.len() < 20 && remembered.last() == Some(&event));
        }
        assert_eq!(remembered.len(), 10);
    }
}
