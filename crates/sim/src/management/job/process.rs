//! The programs that run right now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use tokio::task::AbortHandle;
use windlass_runtime::key::Key;

use crate::management::subject::Subject;
use crate::program::{Container, Exit, Programs};

/// The programs of this process, by the uid of their pod. Not a simulator's state but what it simulates with: whoever goes on
/// with the objects of another process finds none.
pub(in crate::management) struct Processes {
    programs: Arc<dyn Programs>,
    running: Arc<Mutex<BTreeMap<String, Process>>>,
    exits: UnboundedSender<Key>,
}

struct Process {
    job: Key,
    exit: Option<Exit>,
    handle: AbortHandle,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// What a pod's program is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doing {
    /// It runs.
    Runs,
    /// It has ended.
    Ended(Exit),
    /// There is none.
    Nothing,
}

impl Processes {
    /// None yet, and the keys of Jobs whose programs end.
    pub(in crate::management) fn new(programs: Arc<dyn Programs>) -> (Self, UnboundedReceiver<Key>) {
        let (exits, ended) = unbounded();
        (Self { programs, running: Arc::default(), exits }, ended)
    }

    /// Runs the program of a pod.
    pub(super) fn start(&self, job: &Key, uid: &str, container: Container) {
        let program = self.programs.run(container);
        let (running, exits) = (Arc::clone(&self.running), self.exits.clone());
        let (own, woken) = (uid.to_owned(), Subject::Job.key(job.namespace.as_deref(), &job.name));
        let task = tokio::spawn(async move {
            let exit = program.await;
            if let Some(process) = lock(&running).get_mut(&own) {
                process.exit = Some(exit);
            }
            // Nobody listens any more when everything stops.
            drop(exits.unbounded_send(woken));
        });
        let process = Process { job: job.clone(), exit: None, handle: task.abort_handle() };
        lock(&self.running).insert(uid.to_owned(), process);
    }

    /// What the program of a pod is doing.
    pub(super) fn doing(&self, uid: &str) -> Doing {
        match lock(&self.running).get(uid) {
            None => Doing::Nothing,
            Some(Process { exit: None, .. }) => Doing::Runs,
            Some(Process { exit: Some(exit), .. }) => Doing::Ended(exit.clone()),
        }
    }

    /// Kills the programs of a Job except those of these pods.
    pub(super) fn keep(&self, job: &Key, uids: &[&str]) {
        lock(&self.running).retain(|uid, process| process.job != *job || uids.contains(&uid.as_str()));
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        lock(&self.running).clear();
    }
}

/// The table is whole after every statement, so a poisoned lock is as good as any.
fn lock(running: &Mutex<BTreeMap<String, Process>>) -> std::sync::MutexGuard<'_, BTreeMap<String, Process>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
