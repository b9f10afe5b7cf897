//! Where objects live: bytes in memory, one revision counter, and one log of changes for each resource.
//!
//! A store knows keys, revisions and changes; it knows no verbs, no schemas and no clock. What the verbs decide is committed
//! here, and everything that watches (clients, simulators, invariants) reads the same shared log.

#![allow(
    clippy::mutable_key_type,
    reason = "entries are ordered by their keys, and only whether a tree is kept changes"
)]

mod entry;
mod field;
mod log;
mod recovered;
mod subscription;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use jiff::Timestamp;
use serde_json::Value;

pub use entry::{Entry, Key, Owner};
pub use log::{Change, ChangeKind, Expired, Retention};
pub use recovered::{Objects, Recovered};
pub use subscription::Subscription;

use entry::ByKey;
use log::Log;

/// A resource's name in the store: `deployments.apps`, or `pods` in the core group. All versions of a resource share it.
pub type Resource = Arc<str>;

/// Where acknowledged writes go to survive the process. The store itself is memory only.
pub trait Backend: Send + Sync {
    /// Takes a change. Called in revision order under the store's lock: it may only enqueue, never wait.
    fn append(&self, resource: &Resource, change: &Arc<Change>);

    /// Resolves when every change up to `revision` would survive a crash.
    fn durable(&self, revision: u64) -> futures::future::BoxFuture<'static, std::io::Result<()>>;

    /// Why a write that came now could not be made durable, if that is known beforehand: then it is refused, and nothing is
    /// written, not even in memory.
    fn refuses(&self) -> Option<std::io::Error> {
        None
    }

    /// Who waits until a write is durable.
    fn waits(&self) -> Waits {
        Waits::EachWrite
    }

    /// Told once where the server counts the identities that it has drawn: a server that goes on later must not draw them again.
    fn counts(&self, _draws: &Arc<AtomicU64>) {}
}

/// Who waits until a write is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Each write, before anything follows from it.
    EachWrite,
    /// Whoever lets an answer out of the process. Until then everything may follow from a write that would be lost in a crash,
    /// since what followed would be lost with it.
    TheDoor,
}

/// Gives each of several stores a backend of its own, so that what is kept of all of them together is a prefix of what happened.
pub trait Keeper: Send + Sync {
    /// The backend of the store of this name.
    fn backend(&self, place: &str) -> Arc<dyn Backend>;

    /// The store of this name is gone, with all that was in it.
    fn forget(&self, place: &str);
}

/// Sees every change in the order in which it is committed, before anybody can react to it: for invariants and timelines.
pub trait Observer: Send + Sync {
    /// Takes note of a change. Called under the store's lock: it may neither wait nor use the store.
    fn committed(&self, resource: &Resource, change: &Arc<Change>);
}

/// What a write expects to find; anything else is somebody else's newer write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No object of that name.
    Absent,
    /// The object at exactly this revision.
    Revision(u64),
}

/// The write found something other than it expected; nothing was written.
#[derive(Debug)]
pub struct Mismatch {
    /// What is there now.
    pub current: Option<Arc<Entry>>,
}

/// One page of a list: entries in key order at one revision.
#[derive(Debug)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Arc<Entry>>,
    /// The revision at which the list was true.
    pub revision: u64,
    /// The key after which the next page starts, when there is more.
    pub next: Option<Key>,
    /// How many entries follow, when that is known (it is not once entries are filtered).
    pub remaining: Option<u64>,
}

/// Which part of a resource to list.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    /// The namespace; `None` for all of them, and for resources without namespaces.
    pub namespace: Option<&'a str>,
    /// Start after this key.
    pub after: Option<&'a Key>,
    /// At most this many entries; 0 for all.
    pub limit: usize,
}

/// The objects of one API server. Cheap to clone: clones share the objects.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    backend: Option<Arc<dyn Backend>>,
    observer: Option<Arc<dyn Observer>>,
}

/// How many of the latest states are kept as trees beside their bytes. A tree is several times as large, and each API server of
/// a fleet has so many of them.
const YOUNG: usize = 128;

#[derive(Default)]
struct State {
    revision: u64,
    tables: BTreeMap<Resource, Table>,
    /// For each owner's uid, the objects that name it. Only objects with owners take part.
    dependents: BTreeMap<Box<str>, BTreeSet<(Resource, Key)>>,
    retention: Retention,
    /// History up to this revision is unknown, also for resources that have no table yet.
    horizon: u64,
    wakers_of_all: BTreeMap<u64, Waker>,
    next_subscription: u64,
    /// The latest states, the oldest first.
    young: VecDeque<Weak<Entry>>,
}

#[derive(Default)]
struct Table {
    objects: BTreeSet<ByKey>,
    log: Log,
    wakers: BTreeMap<u64, Waker>,
    /// How often everybody who watched was sent home.
    closings: u64,
}

impl Store {
    /// An empty store in memory.
    pub fn new(retention: Retention) -> Self {
        Self::with_seams(retention, None, None)
    }

    /// An empty store whose changes also go to a backend, and are seen by an observer.
    pub fn with_seams(
        retention: Retention,
        backend: Option<Arc<dyn Backend>>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self::with_state(State { retention, ..State::default() }, backend, observer)
    }

    fn with_state(state: State, backend: Option<Arc<dyn Backend>>, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(state), backend, observer }) }
    }

    /// A change is whole before backend and observer are told of it, so a poisoned lock still guards a whole state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A store of its own with the same objects at the same revision. Entries are shared, so this costs a pointer for each
    /// object. History and watchers stay behind: a watch on the fork starts from a list.
    #[must_use]
    pub fn fork(&self, observer: Option<Arc<dyn Observer>>) -> Self {
        let state = self.state();
        let tables = state.tables.iter().map(|(resource, table)| {
            let log = Log::starting_after(state.revision);
            (resource.clone(), Table { objects: table.objects.clone(), log, ..Table::default() })
        });
        let forked = State {
            revision: state.revision,
            tables: tables.collect(),
            dependents: state.dependents.clone(),
            retention: state.retention,
            horizon: state.revision,
            ..State::default()
        };
        drop(state);
        Self::with_state(forked, None, observer)
    }

    /// The revision of the latest change.
    pub fn revision(&self) -> u64 {
        self.state().revision
    }

    /// The object of that name.
    pub fn get(&self, resource: &str, key: &Key) -> Option<Arc<Entry>> {
        self.state().tables.get(resource)?.get(key)
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: &str) -> usize {
        self.state().tables.get(resource).map_or(0, |table| table.objects.len())
    }

    /// A page of the objects as they are now, in key order, of those that `keep` accepts.
    pub fn list(&self, resource: &str, range: Range<'_>, keep: impl FnMut(&Entry) -> bool) -> Page {
        let state = self.state();
        let revision = state.revision;
        let Some(table) = state.tables.get(resource) else {
            return Page { entries: Vec::new(), revision, next: None, remaining: Some(0) };
        };
        let entries: Vec<_> = entries_from(&table.objects, range).cloned().collect();
        drop(state);
        page(entries, revision, range.limit, keep)
    }

    /// A page of the objects as they were at an earlier revision, for a client that reads a list in pieces.
    pub fn list_at(
        &self,
        resource: &str,
        range: Range<'_>,
        revision: u64,
        keep: impl FnMut(&Entry) -> bool,
    ) -> Result<Page, Expired> {
        let state = self.state();
        let Some(table) = state.tables.get(resource) else {
            if revision < state.horizon {
                return Err(Expired { oldest: state.horizon });
            }
            return Ok(Page { entries: Vec::new(), revision, next: None, remaining: Some(0) });
        };
        let mut then: BTreeMap<Key, Option<Arc<Entry>>> = BTreeMap::new();
        // The earliest change after `revision` knows what was there before it.
        for change in table.log.after(revision)? {
            then.entry(change.object.key.clone()).or_insert_with(|| change.previous.clone());
        }
        let untouched = entries_from(&table.objects, range).filter(|entry| !then.contains_key(&entry.key));
        let mut objects: BTreeSet<ByKey> = untouched.cloned().map(ByKey).collect();
        drop(state);
        objects.extend(then.into_values().flatten().map(ByKey));
        let entries = entries_from(&objects, range).cloned().collect();
        Ok(page(entries, revision, range.limit, keep))
    }

    /// Creates or replaces an object. The revision is written into its `metadata.resourceVersion`.
    pub fn put(
        &self,
        resource: &Resource,
        key: &Key,
        expect: Expect,
        object: Value,
        now: Timestamp,
    ) -> Result<Arc<Entry>, Mismatch> {
        let mut state = self.state();
        let previous = state.expect(resource, key, expect)?;
        let revision = state.revision + 1;
        let entry = Arc::new(Entry::new(key.clone(), revision, object));
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        let change = Arc::new(Change { kind, revision, at: now, object: entry.clone(), previous });
        let wakers = state.commit(resource, &change);
        self.publish(state, resource, &change, wakers);
        Ok(entry)
    }

    /// Removes an object; `last` is what watchers are told it was, at the new revision.
    pub fn remove(
        &self,
        resource: &Resource,
        key: &Key,
        revision: u64,
        last: Value,
        now: Timestamp,
    ) -> Result<Arc<Entry>, Mismatch> {
        let mut state = self.state();
        let previous = state.expect(resource, key, Expect::Revision(revision))?;
        let revision = state.revision + 1;
        let entry = Arc::new(Entry::new(key.clone(), revision, last));
        let change = Arc::new(Change { kind: ChangeKind::Deleted, revision, at: now, object: entry.clone(), previous });
        let wakers = state.commit(resource, &change);
        self.publish(state, resource, &change, wakers);
        Ok(entry)
    }

    /// Puts an object as another server has it: its `metadata.resourceVersion` is the one that it has there. For a store that
    /// follows kinds of another server; what reads them from here may write them there.
    pub fn follow(&self, resource: &Resource, key: &Key, object: &Value, now: Timestamp) -> Arc<Entry> {
        let mut state = self.state();
        let previous = state.tables.get(resource).and_then(|table| table.get(key));
        let revision = state.revision + 1;
        let entry = Arc::new(Entry::of_another(key.clone(), revision, object));
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        let change = Arc::new(Change { kind, revision, at: now, object: entry.clone(), previous });
        let wakers = state.commit(resource, &change);
        self.publish(state, resource, &change, wakers);
        entry
    }

    fn publish(&self, state: MutexGuard<'_, State>, resource: &Resource, change: &Arc<Change>, wakers: Vec<Waker>) {
        if let Some(backend) = &self.shared.backend {
            backend.append(resource, change);
        }
        if let Some(observer) = &self.shared.observer {
            observer.committed(resource, change);
        }
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }

    /// Resolves when every change up to `revision` would survive a crash; at once for a store in memory.
    pub async fn durable(&self, revision: u64) -> std::io::Result<()> {
        match &self.shared.backend {
            Some(backend) => backend.durable(revision).await,
            None => Ok(()),
        }
    }

    /// Why a write that came now could not be made durable, if that is known beforehand.
    pub fn refuses(&self) -> Option<std::io::Error> {
        self.shared.backend.as_ref()?.refuses()
    }

    /// Whether anything of it would survive the process.
    pub fn is_kept(&self) -> bool {
        self.shared.backend.is_some()
    }

    /// Who waits until a write is durable. In memory nobody has to wait for anything.
    pub fn waits(&self) -> Waits {
        self.shared.backend.as_ref().map_or(Waits::TheDoor, |backend| backend.waits())
    }

    /// The objects that name this uid as an owner.
    pub fn dependents(&self, owner_uid: &str) -> Vec<(Resource, Key)> {
        self.state().dependents.get(owner_uid).map(|set| set.iter().cloned().collect()).unwrap_or_default()
    }

    /// The resources that have objects, in name order.
    pub fn resources(&self) -> Vec<Resource> {
        let state = self.state();
        state
            .tables
            .iter()
            .filter(|(_, table)| !table.objects.is_empty())
            .map(|(resource, _)| resource.clone())
            .collect()
    }

    /// Every change of a resource after `revision`, as it happens.
    pub fn subscribe(&self, resource: &Resource, revision: u64) -> Result<Subscription, Expired> {
        let mut state = self.state();
        let table = state.table(resource);
        drop(table.log.after(revision)?);
        let closings = table.closings;
        Ok(Subscription::new(self.clone(), Some(resource.clone()), revision, closings, state.next_id()))
    }

    /// Every change of every resource from now on, in revision order: for simulators and for invariants.
    pub fn subscribe_all(&self) -> Subscription {
        let mut state = self.state();
        let revision = state.revision;
        Subscription::new(self.clone(), None, revision, 0, state.next_id())
    }

    /// Ends all subscriptions to a resource, once they have seen what there is to see: its kind is no longer served.
    pub fn close(&self, resource: &Resource) {
        let mut state = self.state();
        let table = state.table(resource);
        table.closings += 1;
        let wakers = std::mem::take(&mut table.wakers);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Forgets history up to and including `revision`: a watch or a page from before it is answered with "expired".
    pub fn compact(&self, revision: u64) {
        let mut state = self.state();
        state.horizon = state.horizon.max(revision);
        for table in state.tables.values_mut() {
            table.log.compact(revision);
        }
    }
}

impl Table {
    fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.objects.get(key).map(|found| found.0.clone())
    }
}

impl State {
    fn table(&mut self, resource: &Resource) -> &mut Table {
        let horizon = self.horizon;
        let fresh = || Table { log: Log::starting_after(horizon), ..Table::default() };
        self.tables.entry(resource.clone()).or_insert_with(fresh)
    }

    fn next_id(&mut self) -> u64 {
        self.next_subscription += 1;
        self.next_subscription
    }

    fn expect(&self, resource: &Resource, key: &Key, expect: Expect) -> Result<Option<Arc<Entry>>, Mismatch> {
        let current = self.tables.get(resource).and_then(|table| table.get(key));
        let met = match (&current, expect) {
            (None, Expect::Absent) => true,
            (Some(entry), Expect::Revision(revision)) => entry.revision == revision,
            (None, Expect::Revision(_)) | (Some(_), Expect::Absent) => false,
        };
        if met { Ok(current) } else { Err(Mismatch { current }) }
    }

    /// Makes the change true; returns whom to tell.
    fn commit(&mut self, resource: &Resource, change: &Arc<Change>) -> Vec<Waker> {
        self.revision = change.revision;
        self.young.push_back(Arc::downgrade(&change.object));
        if self.young.len() > YOUNG
            && let Some(entry) = self.young.pop_front().and_then(|entry| entry.upgrade())
        {
            entry.age();
        }
        let reference = || (resource.clone(), change.object.key.clone());
        if let Some(previous) = &change.previous {
            for owner in &previous.owners {
                if let Some(set) = self.dependents.get_mut(&owner.uid) {
                    set.remove(&reference());
                    if set.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
        let retention = self.retention;
        if change.kind != ChangeKind::Deleted {
            for owner in &change.object.owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(reference());
            }
        }
        let table = self.table(resource);
        match change.kind {
            ChangeKind::Deleted => table.objects.take(&change.object.key),
            ChangeKind::Added | ChangeKind::Modified => table.objects.replace(ByKey(change.object.clone())),
        };
        table.log.push(change.clone(), retention);
        let mut wakers: Vec<Waker> = std::mem::take(&mut table.wakers).into_values().collect();
        wakers.extend(std::mem::take(&mut self.wakers_of_all).into_values());
        wakers
    }
}

/// The entries of a namespace (or of all) after a key, in order.
fn entries_from<'a>(objects: &'a BTreeSet<ByKey>, range: Range<'a>) -> impl Iterator<Item = &'a Arc<Entry>> {
    let start = match (range.after, range.namespace) {
        (Some(key), _) => Bound::Excluded(key.clone()),
        (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
        (None, None) => Bound::Unbounded,
    };
    objects
        .range::<Key, _>((start, Bound::Unbounded))
        .map(|ByKey(entry)| entry)
        .take_while(move |entry| range.namespace.is_none_or(|namespace| &*entry.key.namespace == namespace))
}

fn page(entries: Vec<Arc<Entry>>, revision: u64, limit: usize, mut keep: impl FnMut(&Entry) -> bool) -> Page {
    let total = entries.len();
    let mut kept = Vec::with_capacity(if limit == 0 { total } else { limit.min(total) });
    let mut seen = 0;
    for entry in entries {
        seen += 1;
        if !keep(&entry) {
            continue;
        }
        kept.push(entry);
        if limit > 0 && kept.len() == limit && seen < total {
            let next = kept.last().map(|entry| entry.key.clone());
            return Page { entries: kept, revision, next, remaining: Some((total - seen) as u64) };
        }
    }
    Page { entries: kept, revision, next: None, remaining: None }
}

#[cfg(test)]
mod tests;
