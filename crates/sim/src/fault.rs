//! What goes wrong in a World, on purpose.
//!
//! ```text
//! Scenario (file, seed) ──▶ Faults ──┬── layer, watch    requests, answers and watches of a client      T W
//!                                    ├── network         the way to a workload cluster                  N
//!                                    ├── machine, node   infrastructure, kubeadm, kubelets, etcd        I
//!                                    ├── disk, time      the store of the management API, clocks        S C
//!                                    └── deed            what happens at its time, and what people do
//! ```
//!
//! A [`Scenario`] is data; [`Faults`] is a scenario at work in one World: it counts, draws from the seed, and marks in the
//! timeline what bit. Processes that crash or stand still are the business of whoever runs them, who reads the scenario.
//!
//! **Invariant**: a World with an empty scenario goes past every seam as if it were not there: no layer, no draw, no lock.
//!
//! **Invariant**: what bites follows from the scenario, the seed and what is asked. A fork with the same scenario goes on
//! counting where its World was; one with another scenario begins anew.

mod action;
mod deed;
mod disk;
mod kind;
mod layer;
mod machine;
mod network;
mod node;
mod pattern;
mod request;
mod scenario;
mod span;
mod swarm;
mod time;
mod watch;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use windlass_apiserver::ApiServer;
use windlass_runtime::chance::{Chance, Seed};
use windlass_runtime::clock::Clock;

use crate::actor::Caller;
use crate::management::Infrastructure;
use crate::timeline::Recorder;

pub use action::{Action, ActionError, Scheduled};
pub use disk::{Disk, Recovered};
pub use kind::{
    DiskFault, EtcdFault, Fault, InfrastructureFault, LoadBalancerFault, Loss, MachineFault, Moment, NodeFault,
    Silence, Skew, WatchEnd, WebhookFault,
};
pub use layer::Faulty;
pub(crate) use machine::{Booting, Held, Making};
pub(crate) use network::Passage;
pub use pattern::{Pattern, Whom};
pub use request::{Asked, Place, Requests};
pub use scenario::{Injection, Scenario, ScenarioError, When};
pub use span::{Span, SpanError};
pub use webhook::Unasked;

use deed::Deed;

/// Does what a scenario has a time for. Does not end.
pub(crate) use deed::run;

/// A scenario at work in a World. Cheap to clone: clones are the same one. Without a scenario it is nothing at all.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Live>>);

struct Live {
    scenario: Scenario,
    clock: Clock,
    seed: Seed,
    recorder: Recorder,
    state: Mutex<State>,
    /// Replicas of the management API that stand still, by the fault that stopped them.
    replicas: Mutex<BTreeMap<usize, ApiServer>>,
    /// Told when there is something new to be done at its time.
    woken: Notify,
}

/// What a fork goes on with.
#[derive(Clone)]
struct State {
    began: Timestamp,
    /// How many were meant so far, by fault.
    meant: BTreeMap<usize, u64>,
    /// How many of them it bit, by fault.
    bitten: BTreeMap<usize, u64>,
    /// When it first did, by fault.
    first_bites: BTreeMap<usize, Timestamp>,
    /// Whether it bites an object: decided once.
    decided: BTreeMap<(usize, String), bool>,
    /// What was said in the timeline, where once is enough.
    said: BTreeSet<(usize, String)>,
    /// What is to be done, by time and number.
    deeds: BTreeMap<(Timestamp, u64), Deed>,
    deeds_ever: u64,
}

/// Where something bit.
pub(crate) struct Bite<'a> {
    /// `management`, or the workload cluster as `namespace/name`.
    pub(crate) place: &'a str,
    /// The cluster that it is about, as `namespace/name`; empty where it is about none.
    pub(crate) cluster: &'a str,
    /// What it is about.
    pub(crate) object: &'a str,
    /// What happened.
    pub(crate) text: &'a str,
}

impl Faults {
    /// A scenario, from now on.
    pub(crate) fn new(scenario: &Scenario, clock: &Clock, seed: Seed, recorder: &Recorder) -> Self {
        let began = clock.now();
        let state = State {
            began,
            meant: BTreeMap::new(),
            bitten: BTreeMap::new(),
            first_bites: BTreeMap::new(),
            decided: BTreeMap::new(),
            said: BTreeSet::new(),
            deeds: BTreeMap::new(),
            deeds_ever: 0,
        };
        let faults = Self::with(scenario, clock, seed, recorder, state);
        faults.schedule();
        faults
    }

    /// The same scenario in a fork, which goes on from here; another one begins.
    pub(crate) fn fork(&self, scenario: &Scenario, clock: &Clock, seed: Seed, recorder: &Recorder) -> Self {
        match self.live() {
            Some(live) if live.scenario == *scenario => {
                let fork = Self::with(scenario, clock, seed, recorder, live.state().clone());
                if let Some(fork) = fork.live() {
                    // A replica stands still: it can be shared.
                    live.replicas().iter().for_each(|(index, replica)| {
                        fork.replicas().insert(*index, replica.clone());
                    });
                }
                fork
            }
            _ => Self::new(scenario, clock, seed, recorder),
        }
    }

    fn with(scenario: &Scenario, clock: &Clock, seed: Seed, recorder: &Recorder, state: State) -> Self {
        if scenario.is_empty() {
            return Self(None);
        }
        Self(Some(Arc::new(Live {
            scenario: scenario.clone(),
            clock: clock.clone(),
            seed: seed.child("faults"),
            recorder: recorder.clone(),
            state: Mutex::new(state),
            replicas: Mutex::default(),
            woken: Notify::new(),
        })))
    }

    /// Nothing goes wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How often each fault bit so far, in the order of the scenario.
    pub fn bites(&self) -> Vec<u64> {
        let Some(live) = self.live() else { return Vec::new() };
        let state = live.state();
        (0..live.scenario.faults.len()).map(|index| state.bitten.get(&index).copied().unwrap_or_default()).collect()
    }

    /// What runs in any order, if anything does: the stream that decides the order of a caller.
    pub fn order(&self, caller: Caller) -> Option<Chance> {
        let live = self.live()?;
        let (index, _) = live.open().find(|(_, injection)| injection.fault == Fault::AnyOrder {})?;
        let text = format!("the {caller} run in any order");
        live.say_once(index, &Bite { place: "management", cluster: "", object: caller.as_str(), text: &text });
        Some(live.seed.stream(&format!("order {caller}")))
    }

    /// When the controllers stand still and others take over: from when, until when, and how it goes.
    pub fn split(&self) -> Option<Split> {
        let live = self.live()?;
        live.scenario.faults.iter().enumerate().find_map(|(index, injection)| match injection.fault {
            Fault::SplitLeadership { takeover, notices_after } if !live.is_past(index) => Some(Split {
                index,
                stops_after: live.until(injection.when.after),
                lasts: injection.when.length()?,
                takeover: takeover.0,
                notices_after: notices_after.0,
            }),
            _ => None,
        })
    }

    /// Says in the timeline that the controllers stand still, or go on.
    pub fn say_split(&self, split: &Split, text: &str) {
        if let Some(live) = self.live() {
            live.count(split.index);
            live.say(split.index, &Bite { place: "management", cluster: "", object: "controllers", text });
        }
    }

    /// How much there is to make machines of.
    pub(crate) fn infrastructure(&self) -> &Infrastructure {
        self.live().map_or(Infrastructure::usual(), |live| &live.scenario.infrastructure)
    }

    fn live(&self) -> Option<&Live> {
        self.0.as_deref()
    }
}

/// Controllers that stand still while others take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    index: usize,
    /// From now until they stop.
    pub stops_after: Duration,
    /// How long they stand still.
    pub lasts: Duration,
    /// From their stop until others begin.
    pub takeover: Duration,
    /// How long they go on afterwards before they notice.
    pub notices_after: Duration,
}

impl Live {
    // The state is whole after every statement, so a poisoned lock is as good as any.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replicas(&self) -> MutexGuard<'_, BTreeMap<usize, ApiServer>> {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When so much time has passed since the start.
    fn at(&self, span: Span) -> Timestamp {
        self.state().began.checked_add(span.0).unwrap_or(Timestamp::MAX)
    }

    /// From now until so much time has passed since the start.
    fn until(&self, span: Span) -> Duration {
        Duration::try_from(self.at(span).duration_since(self.clock.now())).unwrap_or_default()
    }

    fn is_open(&self, index: usize) -> bool {
        let after = self.scenario.faults.get(index).map(|injection| injection.when.after);
        after.is_some_and(|after| self.at(after) <= self.clock.now()) && !self.is_past(index)
    }

    fn is_past(&self, index: usize) -> bool {
        self.ends_at(index).is_some_and(|end| end <= self.clock.now())
    }

    /// When a fault ends, as far as it is known now.
    fn ends_at(&self, index: usize) -> Option<Timestamp> {
        let when = &self.scenario.faults.get(index)?.when;
        let first = self.state().first_bites.get(&index).copied();
        let lasted = first.zip(when.lasts).map(|(first, lasts)| first.checked_add(lasts.0).unwrap_or(Timestamp::MAX));
        when.until.map(|until| self.at(until)).into_iter().chain(lasted).min()
    }

    /// The faults whose time it is.
    fn open(&self) -> impl Iterator<Item = (usize, &Injection)> {
        self.scenario.faults.iter().enumerate().filter(|(index, _)| self.is_open(*index))
    }

    /// One more is meant by a fault: does it bite this one?
    fn strikes(&self, index: usize, when: &When) -> bool {
        let mut state = self.state();
        let number = state.meant.get(&index).copied().unwrap_or_default() + 1;
        self.draw(&mut state, index, when, &number.to_string())
    }

    /// Whether a fault bites an object: the same answer each time.
    fn holds(&self, index: usize, when: &When, object: &str) -> bool {
        let mut state = self.state();
        let key = (index, object.to_owned());
        if let Some(decided) = state.decided.get(&key) {
            return *decided;
        }
        let bites = self.draw(&mut state, index, when, object);
        state.decided.insert(key, bites);
        bites
    }

    fn draw(&self, state: &mut State, index: usize, when: &When, what: &str) -> bool {
        let meant = state.meant.entry(index).or_default();
        *meant += 1;
        let chosen = when.nth.is_none_or(|nth| nth == *meant);
        let drawn = |chance: f64| self.seed.stream(&format!("fault {index} {what}")).f64() < chance;
        let bitten = state.bitten.entry(index).or_default();
        let bites = chosen && when.times.is_none_or(|times| *bitten < times) && when.chance.is_none_or(drawn);
        *bitten += u64::from(bites);
        if bites {
            state.first_bites.entry(index).or_insert_with(|| self.clock.now());
        }
        bites
    }

    /// It bit, whether or not anybody was asked.
    fn count(&self, index: usize) {
        let mut state = self.state();
        *state.bitten.entry(index).or_default() += 1;
        state.first_bites.entry(index).or_insert_with(|| self.clock.now());
    }

    /// Says in the timeline that a fault bit.
    fn say(&self, index: usize, bite: &Bite<'_>) {
        let id = self.scenario.faults.get(index).map_or("", |injection| injection.fault.id());
        self.recorder.mark(self.clock.now(), bite.place, bite.cluster, bite.object, &format!("{id}: {}", bite.text));
    }

    /// The same, once for each object.
    fn say_once(&self, index: usize, bite: &Bite<'_>) {
        let is_new = self.state().said.insert((index, format!("{} {}", bite.cluster, bite.object)));
        if is_new {
            self.say(index, bite);
        }
    }

    /// A stream for one purpose of one fault.
    fn stream(&self, index: usize, what: &str) -> Chance {
        self.seed.stream(&format!("{index} {what}"))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.live() {
            None => f.write_str("Faults::none"),
            Some(live) => f.debug_tuple("Faults").field(&live.scenario).finish(),
        }
    }
}
