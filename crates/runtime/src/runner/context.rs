//! What a reconciler is given, and what it answers.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Resource;

use crate::cache::Cache;
use crate::key::Key;
use crate::queue::Write;
use crate::watch::revision;

/// How a reconcile went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// When to look again, if nothing changes before.
    pub requeue_after: Option<Duration>,
}

impl Outcome {
    /// Nothing to do until something changes.
    pub fn done() -> Self {
        Self { requeue_after: None }
    }

    /// Look again after this time.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}

/// The context of one reconcile: the controller's own (to which this dereferences), and the runner's ear.
#[derive(Debug)]
pub struct Ctx<C> {
    context: Arc<C>,
    key: Key,
    caught_up: bool,
    writes: Writes,
}

impl<C> Ctx<C> {
    pub(super) fn new(context: Arc<C>, key: Key, caught_up: bool, writes: Writes) -> Self {
        Self { context, key, caught_up, writes }
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether the caches have seen all that this key has written. If not, they were given time and it ran out: read what
    /// matters from the server.
    pub fn caught_up(&self) -> bool {
        self.caught_up
    }

    /// Tells that the server answered a write with this object, and that `cache` (one that this runner feeds) will see
    /// it. Told at once, not at the end: it counts also if the reconcile fails later.
    pub fn wrote<O: Resource>(&self, cache: &Cache<O>, object: &O) {
        self.writes.push(Write { seen: cache.seen(), version: revision(object.meta()) });
    }
}

impl<C> Deref for Ctx<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.context
    }
}

impl<C> Clone for Ctx<C> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.context), self.key.clone(), self.caught_up, self.writes.clone())
    }
}

/// What one reconcile wrote. Kept outside of its future, which may panic.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes(Arc<Mutex<Vec<Write>>>);

impl Writes {
    fn push(&self, write: Write) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }

    pub(super) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
