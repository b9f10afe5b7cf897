//! Crashes at chosen writes. After one (fault F01), the write is committed, and its sender never hears of it; before one (F02), it
//! is not sent. A second one (F03) hits whoever goes on. Before a write, somebody else may also act while it waits (F23 to F25):
//! between what its sender has read and what it writes.
//!
//! The writes of the controllers and of the upgrader are counted together, in the order in which they are answered. Removing a
//! member of etcd is one of them. Reads, dry runs and refusals are not.

use std::collections::BTreeMap;
use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use windlass_runtime::clock::Clock;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Moment, Scenario};

/// One write of Windlass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Which one, from 1.
    pub number: u64,
    /// Who wrote.
    #[serde(rename = "actor")]
    #[schemars(with = "serde_json::Value")]
    pub caller: Caller,
    /// What: `patch machinedeployments default/my-tkc-workers-default`.
    pub what: String,
    /// When, where there is a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// Which of the requests to write that its sender made, from 1; nothing for what is asked of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
}

/// Counts writes, and lets chosen ones be the last of their senders. A handle: clones count together.
#[derive(Debug, Clone, Default)]
pub struct Crashes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Those that are still to come.
    points: Vec<(u64, Moment)>,
    /// Whose writes these are counted by, where others never crash.
    only: Option<Caller>,
    /// How many writes each caller made.
    made: BTreeMap<Caller, u64>,
    writes: Vec<Write>,
    /// The write that waits while somebody acts.
    interrupted: Option<(u64, Interruption)>,
    /// How many requests to write each caller made.
    asked: BTreeMap<Caller, u64>,
    clock: Option<Clock>,
}

/// A write that waits while somebody acts. A handle: clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Interruption {
    reached: Arc<Notify>,
    over: Arc<Notify>,
}

impl Interruption {
    /// Resolves when the write is about to be sent, and waits.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// The write goes on its way.
    pub fn end(&self) {
        self.over.notify_one();
    }

    async fn wait(self) {
        self.reached.notify_one();
        self.over.notified().await;
    }
}

impl Crashes {
    /// Nobody crashes; writes are only counted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whoever makes the write of this number crashes right after it.
    pub fn after(number: u64) -> Self {
        Self::at(vec![(number, Moment::After)])
    }

    /// Whoever is about to make the write of this number crashes before.
    pub fn before(number: u64) -> Self {
        Self::at(vec![(number, Moment::Before)])
    }

    /// Whoever makes one of these writes crashes at it. Each point is passed once: who comes back goes on.
    pub fn at(points: Vec<(u64, Moment)>) -> Self {
        Self(Arc::new(Mutex::new(State { points, ..State::default() })))
    }

    /// Whoever is this caller crashes at these of its own writes; others never do.
    pub fn of(caller: Caller, points: Vec<(u64, Moment)>) -> Self {
        Self(Arc::new(Mutex::new(State { points, only: Some(caller), ..State::default() })))
    }

    /// The write of this number waits until whoever gets this lets it go on.
    pub fn interrupt(&self, number: u64) -> Interruption {
        let interruption = Interruption::default();
        self.lock().interrupted = Some((number, interruption.clone()));
        interruption
    }

    /// The points that were not reached so far.
    pub fn left(&self) -> usize {
        let state = self.lock();
        state.points.len() + usize::from(state.interrupted.is_some())
    }

    /// Writes have the times of this clock from now on.
    pub(crate) fn timed_by(&self, clock: &Clock) {
        self.lock().clock = Some(clock.clone());
    }

    /// The same, or those of a scenario where nobody crashes yet.
    #[must_use]
    pub fn or_of(self, scenario: &Scenario) -> Self {
        let scripted = scenario.crashes();
        if scripted.is_empty() || !self.lock().points.is_empty() {
            return self;
        }
        self.lock().points = scripted;
        self
    }

    /// The writes so far.
    pub fn writes(&self) -> Vec<Write> {
        self.lock().writes.clone()
    }

    /// How many writes there have been so far.
    pub fn count(&self) -> u64 {
        self.lock().count()
    }

    /// A process that may crash.
    pub fn process(&self, caller: Caller) -> Process {
        Process { caller, crashes: self.clone(), died: Arc::default(), cause: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&self) -> u64 {
        self.writes.last().map_or(0, |write| write.number)
    }

    /// Whether somebody crashes at this write.
    fn is_point(&mut self, (number, caller): (u64, Caller), moment: Moment) -> bool {
        let number = match self.only {
            Some(only) if only != caller => return false,
            Some(_) => self.made.get(&caller).copied().unwrap_or_default() + 1,
            None => number,
        };
        let found = self.points.iter().position(|point| *point == (number, moment));
        found.map(|index| self.points.remove(index)).is_some()
    }
}

/// A process that may crash: the controllers together, or the program in one pod. A handle: clones are the same process.
#[derive(Debug, Clone)]
pub struct Process {
    caller: Caller,
    crashes: Crashes,
    died: Arc<Notify>,
    /// Why it has crashed.
    cause: Arc<Mutex<String>>,
}

impl Process {
    /// Who it is.
    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// Takes note of a write of the process that was committed. If it is the one to crash after, this never returns: the
    /// process is to be dropped.
    pub async fn wrote(&self, what: String, request: Option<u64>) {
        let crashes = {
            let mut state = self.crashes.lock();
            let number = state.count() + 1;
            let crash = state
                .is_point((number, self.caller), Moment::After)
                .then(|| format!("F01: crash of the {} after {what}", self.caller));
            *state.made.entry(self.caller).or_default() += 1;
            let at = state.clock.as_ref().map(Clock::now);
            state.writes.push(Write { number, caller: self.caller, what, at, request });
            crash
        };
        if let Some(cause) = crashes {
            self.die(cause);
            future::pending::<()>().await;
        }
    }

    /// Takes note of a request to write that the process makes: which one of its own it is.
    pub fn asks(&self) -> u64 {
        let mut state = self.crashes.lock();
        let asked = state.asked.entry(self.caller).or_default();
        *asked += 1;
        *asked
    }

    /// What a write that the process is about to make has to wait for; for ever if the process crashes before it.
    pub fn before(&self, what: &str) -> Option<BoxFuture<'static, ()>> {
        let mut state = self.crashes.lock();
        let next = state.count() + 1;
        let interruption = state.interrupted.take_if(|(number, _)| *number == next);
        let crashes = state.is_point((next, self.caller), Moment::Before);
        drop(state);
        if crashes {
            self.die(format!("F02: crash of the {} before {what}", self.caller));
            return Some(future::pending().boxed());
        }
        interruption.map(|(_, interruption)| interruption.wait().boxed())
    }

    fn die(&self, cause: String) {
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = cause;
        self.died.notify_one();
    }

    /// Resolves when the process has crashed, with the reason in words.
    pub async fn died(&self) -> String {
        self.died.notified().await;
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn writes_of_all_processes_are_counted_together_and_only_the_chosen_one_is_the_last_of_its_sender() {
        let crashes = Crashes::after(2);
        let (controllers, pod) = (crashes.process(Caller::Controllers), crashes.process(Caller::Upgrader));
        assert!(controllers.wrote("create a".into(), None).now_or_never().is_some());
        assert!(pod.wrote("create b".into(), None).now_or_never().is_none());
        assert!(controllers.wrote("create c".into(), None).now_or_never().is_some());
        assert!(pod.died().now_or_never().is_some());
        assert!(controllers.died().now_or_never().is_none());
        let numbers: Vec<(u64, Caller)> = crashes.writes().iter().map(|write| (write.number, write.caller)).collect();
        assert_eq!(numbers, [(1, Caller::Controllers), (2, Caller::Upgrader), (3, Caller::Controllers)]);
    }

    #[test]
    fn a_point_is_passed_once_and_there_may_be_several() {
        let crashes = Crashes::at(vec![(1, Moment::Before), (1, Moment::After)]);
        let [first, second, third] = [0; 3].map(|_| crashes.process(Caller::Controllers));
        assert!(first.before("create a").is_some() && first.died().now_or_never().is_some());
        assert!(second.before("create a").is_none());
        assert!(second.wrote("create a".into(), None).now_or_never().is_none());
        assert!(third.before("create b").is_none() && third.wrote("create b".into(), None).now_or_never().is_some());
        assert_eq!((crashes.count(), crashes.left()), (2, 0));
    }

    #[test]
    fn where_one_caller_crashes_its_own_writes_are_counted() {
        let crashes = Crashes::of(Caller::Controllers, vec![(2, Moment::After), (2, Moment::Before)]);
        let (controllers, pod) = (crashes.process(Caller::Controllers), crashes.process(Caller::Upgrader));
        for _ in 0..3 {
            assert!(pod.before("create a").is_none() && pod.wrote("create a".into(), None).now_or_never().is_some());
        }
        assert!(controllers.before("create b").is_none());
        assert!(controllers.wrote("create b".into(), None).now_or_never().is_some());
        assert!(controllers.before("create c").is_some() && controllers.died().now_or_never().is_some());
        let next = crashes.process(Caller::Controllers);
        assert!(next.before("create c").is_none() && next.wrote("create c".into(), None).now_or_never().is_none());
        assert_eq!((crashes.left(), pod.died().now_or_never()), (0, None));
    }

    #[test]
    fn a_write_waits_while_somebody_acts_and_then_goes_on() {
        let crashes = Crashes::none();
        let interruption = crashes.interrupt(1);
        let process = crashes.process(Caller::Controllers);
        assert!(interruption.reached().now_or_never().is_none());
        let mut waiting = process.before("create a").unwrap();
        assert!((&mut waiting).now_or_never().is_none() && interruption.reached().now_or_never().is_some());
        interruption.end();
        assert!(waiting.now_or_never().is_some());
        assert!(process.before("create a").is_none() && crashes.left() == 0);
    }
}
