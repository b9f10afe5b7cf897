//! A crash after a chosen write (fault F01): the write is committed, and its sender never hears of it.
//!
//! The writes of the controllers and of the upgrader are counted together, in the order in which they are answered. Removing a
//! member of etcd is one of them. Reads, dry runs and refusals are not.

use std::future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::traffic::Actor;

/// One write of Windlass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Which one, from 1.
    pub number: u64,
    /// Who wrote.
    pub actor: Actor,
    /// What: `patch machinedeployments default/my-tkc-workers-default`.
    pub what: String,
}

/// Counts writes, and lets one of them be the last of its sender. A handle: clones count together.
#[derive(Debug, Clone, Default)]
pub struct Crashes(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    after: Option<u64>,
    writes: Vec<Write>,
}

impl Crashes {
    /// Nobody crashes; writes are only counted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whoever makes the write of this number crashes right after it.
    pub fn after(number: u64) -> Self {
        Self(Arc::new(Mutex::new(State { after: Some(number), writes: Vec::new() })))
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
    pub fn process(&self, actor: Actor) -> Process {
        Process { actor, crashes: self.clone(), died: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&self) -> u64 {
        self.writes.last().map_or(0, |write| write.number)
    }
}

/// A process that may crash: the controllers together, or the program in one pod. A handle: clones are the same process.
#[derive(Debug, Clone)]
pub struct Process {
    actor: Actor,
    crashes: Crashes,
    died: Arc<Notify>,
}

impl Process {
    /// Who it is.
    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// Takes note of a write of the process that was committed. If it is the one to crash after, this never returns: the
    /// process is to be dropped.
    pub async fn wrote(&self, what: String) {
        let crashes = {
            let mut state = self.crashes.lock();
            let number = state.count() + 1;
            state.writes.push(Write { number, actor: self.actor, what });
            state.after == Some(number)
        };
        if crashes {
            self.died.notify_one();
            future::pending::<()>().await;
        }
    }

    /// Resolves when the process has crashed.
    pub async fn died(&self) {
        self.died.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn writes_of_all_processes_are_counted_together_and_only_the_chosen_one_is_the_last_of_its_sender() {
        let crashes = Crashes::after(2);
        let (controllers, pod) = (crashes.process(Actor::Controllers), crashes.process(Actor::Upgrader));
        assert!(controllers.wrote("create a".into()).now_or_never().is_some());
        assert!(pod.wrote("create b".into()).now_or_never().is_none());
        assert!(controllers.wrote("create c".into()).now_or_never().is_some());
        assert!(pod.died().now_or_never().is_some());
        assert!(controllers.died().now_or_never().is_none());
        let numbers: Vec<(u64, Actor)> = crashes.writes().iter().map(|write| (write.number, write.actor)).collect();
        assert_eq!(numbers, [(1, Actor::Controllers), (2, Actor::Upgrader), (3, Actor::Controllers)]);
    }
}
