//! A store that goes on where another one ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::entry::ByKey;
use super::log::{Change, Log, Retention};
use super::{Backend, Entry, Key, Observer, Resource, State, Store};

/// The objects of one resource. A clone shares them.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeSet<ByKey>);

impl Objects {
    /// Puts an object in the place of the one with its key, which is returned.
    pub fn put(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        self.0.replace(ByKey(entry)).map(|ByKey(entry)| entry)
    }

    /// Takes the object of that key.
    pub fn take(&mut self, key: &Key) -> Option<Arc<Entry>> {
        self.0.take(key).map(|ByKey(entry)| entry)
    }

    /// The objects, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.iter().map(|ByKey(entry)| entry)
    }
}

/// What a store was when it ended.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// The revision of its latest change.
    pub revision: u64,
    /// Changes are known from this revision on; a watch or a page from before it is answered with "expired".
    pub horizon: u64,
    /// How many identities its server had drawn, at least.
    pub draws: u64,
    /// When its latest change was made.
    pub at: Timestamp,
    /// Its objects, by resource.
    pub tables: BTreeMap<Resource, Objects>,
    /// Its changes after the horizon, in order.
    pub changes: Vec<(Resource, Arc<Change>)>,
}

impl Recovered {
    /// All objects there are, by resource and key.
    pub fn objects(&self) -> impl Iterator<Item = (&Resource, &Arc<Entry>)> {
        self.tables.iter().flat_map(|(resource, table)| table.entries().map(move |entry| (resource, entry)))
    }
}

impl Store {
    /// A store that goes on where another one ended: at its revision, with its objects and its history. The observer is told
    /// of nothing that was before.
    pub fn recovered(
        retention: Retention,
        backend: Option<Arc<dyn Backend>>,
        observer: Option<Arc<dyn Observer>>,
        recovered: Recovered,
    ) -> Self {
        let Recovered { revision, horizon, tables, changes, .. } = recovered;
        let mut state = State { revision, retention, horizon, ..State::default() };
        for (resource, table) in tables {
            for ByKey(entry) in &table.0 {
                for owner in &entry.owners {
                    let dependents = state.dependents.entry(owner.uid.clone()).or_default();
                    dependents.insert((resource.clone(), entry.key.clone()));
                }
            }
            let log = Log::starting_after(horizon);
            state.tables.insert(resource, super::Table { objects: table.0, log, ..super::Table::default() });
        }
        for (resource, change) in changes {
            state.table(&resource).log.push(change, retention);
        }
        Self::with_state(state, backend, observer)
    }
}
