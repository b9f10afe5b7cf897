//! What follows from a write: garbage collection, the end of namespaces, and kinds that come and go with their definitions.
//!
//! On a large installation controllers do this some time later. Here it is settled before the next request is answered: the same
//! objects go, in an order that is the same on every run. Work is queued with the server, not with the request, so that a client
//! that hangs up cannot leave it half done.

mod definitions;
mod garbage;
mod namespaces;

pub(crate) use definitions::mark_definition;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::kind::Kind;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Key, Range, Resource};

/// Something that may follow from a write.
#[derive(Debug, Clone)]
enum Task {
    /// An object is gone: who depended on it, who waited for it?
    Gone {
        /// The uid that is no more.
        uid: Box<str>,
        /// Whom it named as owners.
        owners: Vec<Value>,
        /// What it was.
        resource: Resource,
        /// Where it was.
        key: Key,
    },
    /// An object is to go once something else is done.
    Deleting(Resource, Key),
    /// An object names owners: are they there?
    Owned(Resource, Key),
    /// A definition of a kind was written.
    Defined(Key),
}

/// The work that is left.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Work>);

#[derive(Default)]
struct Work {
    waiting: VecDeque<Task>,
    /// What is being done, by number: it counts as left until it is done.
    in_hand: BTreeMap<u64, Task>,
    next: u64,
}

impl Queue {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Task) {
        self.work().waiting.push_back(task);
    }

    fn take(&self) -> Option<InHand<'_>> {
        let mut work = self.work();
        let task = work.waiting.pop_front()?;
        let number = work.next;
        work.next += 1;
        work.in_hand.insert(number, task.clone());
        Some(InHand { queue: self, number, task })
    }

    fn is_empty(&self) -> bool {
        self.work().waiting.is_empty()
    }

    /// A queue of its own with all that is left here, and what is in hand here.
    pub(crate) fn fork(&self) -> Self {
        let work = self.work();
        let waiting = work.in_hand.values().chain(&work.waiting).cloned().collect();
        Self(Mutex::new(Work { waiting, ..Work::default() }))
    }
}

/// A task that is worked on. If the work is dropped half-way, the task goes back to the queue.
struct InHand<'a> {
    queue: &'a Queue,
    number: u64,
    task: Task,
}

impl InHand<'_> {
    fn done(self) {
        self.queue.work().in_hand.remove(&self.number);
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let mut work = self.queue.work();
        if let Some(task) = work.in_hand.remove(&self.number) {
            work.waiting.push_front(task);
        }
    }
}

pub(crate) const CUSTOM_RESOURCE_DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

impl ApiServer {
    /// Notes what may follow from a committed write. Most writes have no consequences and cost nothing here: owners are looked
    /// up when they are named, and when one of them goes.
    pub(crate) fn note_write(&self, kind: &Kind, before: Option<&Entry>, entry: &Entry) {
        let reference = || (kind.resource.clone(), entry.key.clone());
        self.admission().configure(&kind.resource, self.store());
        if &*kind.resource == CUSTOM_RESOURCE_DEFINITIONS {
            self.queue().push(Task::Defined(entry.key.clone()));
        }
        if entry.deleting {
            let (resource, key) = reference();
            self.queue().push(Task::Deleting(resource, key));
        }
        let known = before.is_some_and(|before| before.owners == entry.owners && before.deleting == entry.deleting);
        if !entry.owners.is_empty() && !known {
            let (resource, key) = reference();
            self.queue().push(Task::Owned(resource, key));
        }
    }

    /// Notes that an object is gone.
    pub(crate) fn note_removal(&self, kind: &Kind, entry: &Entry, owners: Vec<Value>) {
        let (resource, key) = (kind.resource.clone(), entry.key.clone());
        self.admission().configure(&resource, self.store());
        self.queue().push(Task::Gone { uid: entry.uid.clone(), owners, resource, key });
    }

    /// Notes all that may still have to follow from what is there: whoever ended cannot say what was left to do. An object whose
    /// owner went is found as one that names an owner, and what waited for it as one that is to go.
    pub(crate) fn note_all(&self) {
        let everywhere = Range { namespace: None, after: None, limit: 0 };
        for resource in self.store().resources() {
            let Some(kind) = self.registry().stored(&resource).cloned() else { continue };
            let concerns = |entry: &Entry| entry.deleting || !entry.owners.is_empty();
            for entry in self.store().list(&resource, everywhere, concerns).entries {
                self.note_write(&kind, None, &entry);
            }
        }
    }

    /// Works until nothing follows any more.
    pub(crate) async fn settle(&self) {
        if self.queue().is_empty() {
            return;
        }
        while let Some(in_hand) = self.queue().take() {
            // A refusal (somebody wrote in between, or a webhook objects) leaves the object as it is; whatever changes it next
            // brings it here again.
            if let Err(refusal) = self.follow(&in_hand.task).await {
                tracing::debug!(task = ?in_hand.task, %refusal, "a consequence of a write was refused");
            }
            in_hand.done();
        }
    }

    async fn follow(&self, task: &Task) -> Result<(), ApiError> {
        if let Task::Gone { resource, key, .. } = task
            && &**resource == CUSTOM_RESOURCE_DEFINITIONS
        {
            self.undefine(key);
        }
        let controllers = self.options().controllers;
        match task {
            Task::Gone { resource, .. } if !controllers => self.definition_may_go(resource).await,
            Task::Deleting(resource, key) if !controllers => self.delete_instances(resource, key).await,
            Task::Owned(..) if !controllers => Ok(()),
            Task::Gone { uid, owners, resource, key } => {
                self.after_removal(uid, owners, key).await?;
                self.namespace_may_be_empty(key).await?;
                self.definition_may_go(resource).await
            }
            Task::Deleting(resource, key) => {
                self.delete_dependents_first(resource, key).await?;
                self.empty_namespace(resource, key).await?;
                self.delete_instances(resource, key).await
            }
            Task::Owned(resource, key) => self.check_owners(resource, key).await,
            Task::Defined(key) => self.define(key).await,
        }
    }
}
