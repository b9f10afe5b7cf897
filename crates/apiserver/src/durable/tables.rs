//! What is durable so far: the objects of all places after the last durable frame. Checkpoints are written of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::record::{Item, Place};
use crate::store::{Change, ChangeKind, Entry, Objects, Recovered, Resource};

/// All places.
pub(super) type Places = BTreeMap<Place, Kept>;

/// One place. A clone shares the entries.
#[derive(Clone, Default)]
pub(super) struct Kept {
    pub(super) revision: u64,
    pub(super) draws: u64,
    pub(super) at: Timestamp,
    pub(super) tables: BTreeMap<Resource, Objects>,
}

impl Kept {
    /// Puts an object where it belongs; the one that was there.
    pub(super) fn put(&mut self, resource: &Resource, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        match self.tables.get_mut(resource) {
            Some(table) => table.put(entry),
            None => self.tables.entry(resource.clone()).or_default().put(entry),
        }
    }

    fn take(&mut self, resource: &Resource, entry: &Entry) -> Option<Arc<Entry>> {
        self.tables.get_mut(resource)?.take(&entry.key)
    }

    /// Makes a change; the object that was there before.
    pub(super) fn change(
        &mut self,
        resource: &Resource,
        kind: ChangeKind,
        object: &Arc<Entry>,
        (at, draws): (Timestamp, u64),
    ) -> Option<Arc<Entry>> {
        self.revision = object.revision;
        self.draws = self.draws.max(draws);
        self.at = at;
        match kind {
            ChangeKind::Deleted => self.take(resource, object),
            ChangeKind::Added | ChangeKind::Modified => self.put(resource, object.clone()),
        }
    }

    /// As a store begins with it, with these changes before, of which `horizon` is the revision that they begin after.
    pub(super) fn recovered(&self, horizon: u64, changes: Vec<(Resource, Arc<Change>)>) -> Recovered {
        let tables = self.tables.iter().map(|(resource, table)| (resource.clone(), table.clone()));
        Recovered {
            revision: self.revision,
            horizon,
            draws: self.draws,
            at: self.at,
            tables: tables.collect(),
            changes,
        }
    }
}

/// Makes the changes of items.
pub(super) fn apply(places: &mut Places, items: &[Item]) {
    for item in items {
        match item {
            Item::Forget(place) => drop(places.remove(place)),
            Item::Change { place, resource, change, draws } => {
                let kept = match places.get_mut(place) {
                    Some(kept) => kept,
                    None => places.entry(place.clone()).or_default(),
                };
                kept.change(resource, change.kind, &change.object, (change.at, *draws));
            }
        }
    }
}
