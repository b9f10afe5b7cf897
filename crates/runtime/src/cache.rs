//! What a watch has seen, by key.
//!
//! Fed by one watch, read by reconcilers, in one order always. A cache may be behind the server, never ahead of it, and
//! [`Cache::revision`] says how far it has come.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::key::Key;

/// The objects of one watch. A handle: clones see the same objects.
pub struct Cache<K> {
    objects: Arc<RwLock<Objects<K>>>,
    /// Apart from the objects, because a queue reads it that does not know their kind.
    seen: Arc<AtomicU64>,
}

struct Objects<K> {
    readable: BTreeMap<Key, Arc<K>>,
    unreadable: BTreeMap<Key, String>,
    /// Which group of its namespace an object is in, where that is asked for.
    group: Option<Group<K>>,
    /// What is readable, by namespace and group.
    groups: BTreeMap<(Option<String>, String), BTreeMap<Key, Arc<K>>>,
}

/// The group that an object is in, if it is in any.
pub type Group<K> = fn(&K) -> Option<&str>;

impl<K> Objects<K> {
    fn new(group: Option<Group<K>>) -> Self {
        Self { readable: BTreeMap::new(), unreadable: BTreeMap::new(), group, groups: BTreeMap::new() }
    }

    fn insert(&mut self, key: Key, object: Arc<K>) -> Option<Arc<K>> {
        let before = self.remove(&key);
        if let Some(group) = self.group_of(&key, &object) {
            self.groups.entry(group).or_default().insert(key.clone(), Arc::clone(&object));
        }
        self.readable.insert(key, object);
        before
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let before = self.readable.remove(key)?;
        if let Some(group) = self.group_of(key, &before)
            && let Some(members) = self.groups.get_mut(&group)
        {
            members.remove(key);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
        Some(before)
    }

    fn group_of(&self, key: &Key, object: &K) -> Option<(Option<String>, String)> {
        Some((key.namespace.clone(), self.group?(object)?.to_owned()))
    }
}

/// A full list, as it replaces what the cache held.
pub(crate) struct Listed<K> {
    pub readable: BTreeMap<Key, Arc<K>>,
    pub unreadable: BTreeMap<Key, String>,
    pub revision: u64,
}

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self { readable: BTreeMap::new(), unreadable: BTreeMap::new(), revision: 0 }
    }
}

impl<K> Cache<K> {
    pub(crate) fn new() -> Self {
        Self { objects: Arc::new(RwLock::new(Objects::new(None))), seen: Arc::default() }
    }

    pub(crate) fn grouped_by(group: Group<K>) -> Self {
        Self { objects: Arc::new(RwLock::new(Objects::new(Some(group)))), seen: Arc::default() }
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().readable.get(key).cloned()
    }

    /// All objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().readable.values().cloned().collect()
    }

    /// The objects of one namespace, ordered by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = Key::namespaced(namespace, "");
        let objects = self.read();
        let from = objects.readable.range(first..);
        from.take_while(|(key, _)| key.namespace.as_deref() == Some(namespace))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The objects of one group in a namespace, ordered by name: none, unless the watch
    /// [groups](crate::watch::Watch::grouped_by) them.
    pub fn list_group(&self, namespace: &str, group: &str) -> Vec<Arc<K>> {
        let objects = self.read();
        let members = objects.groups.get(&(Some(namespace.to_owned()), group.to_owned()));
        members.into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Objects that could not be read as this kind, and why. What the cache has of them, if anything, is what they were
    /// when they could last be read.
    pub fn unreadable(&self) -> BTreeMap<Key, String> {
        self.read().unreadable.clone()
    }

    /// The highest resource version among what has been seen. Watches deliver in the order of resource versions, so
    /// every earlier change has been seen too.
    pub fn revision(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    pub(crate) fn seen(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.seen)
    }

    /// The object is now this. Returns what it was.
    pub(crate) fn apply(&self, key: Key, object: Arc<K>, revision: u64) -> Option<Arc<K>> {
        let mut objects = self.write();
        objects.unreadable.remove(&key);
        let before = objects.insert(key, object);
        self.seen.fetch_max(revision, Ordering::AcqRel);
        before
    }

    /// The object is gone. Returns what it was.
    pub(crate) fn delete(&self, key: &Key, revision: u64) -> Option<Arc<K>> {
        let mut objects = self.write();
        objects.unreadable.remove(key);
        let before = objects.remove(key);
        self.seen.fetch_max(revision, Ordering::AcqRel);
        before
    }

    /// The object has become something that cannot be read. What it was stays: to forget it would look like a deletion.
    pub(crate) fn spoil(&self, key: Key, why: String, revision: u64) -> Option<Arc<K>> {
        let mut objects = self.write();
        let before = objects.readable.get(&key).cloned();
        objects.unreadable.insert(key, why);
        self.seen.fetch_max(revision, Ordering::AcqRel);
        before
    }

    /// Everything is now as listed. Returns what it was. The revision may go back: a list can be older than what was
    /// seen before it, and whoever waits for a write must then wait again.
    pub(crate) fn replace(&self, mut listed: Listed<K>) -> BTreeMap<Key, Arc<K>> {
        let mut objects = self.write();
        for key in listed.unreadable.keys() {
            if let Some(last) = objects.readable.get(key) {
                listed.readable.insert(key.clone(), Arc::clone(last));
            }
        }
        objects.unreadable = listed.unreadable;
        let before = std::mem::take(&mut objects.readable);
        objects.groups.clear();
        for (key, object) in listed.readable {
            objects.insert(key, object);
        }
        self.seen.store(listed.revision, Ordering::Release);
        before
    }

    // A writer that panicked cannot have left a map half changed, so a poisoned lock is as good as any.
    fn read(&self) -> RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<K>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects), seen: Arc::clone(&self.seen) }
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.read().readable.len();
        f.debug_struct("Cache").field("objects", &objects).field("revision", &self.revision()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        Key::namespaced(namespace, name)
    }

    fn filled() -> Cache<u32> {
        let cache = Cache::new();
        for (n, (namespace, name)) in (1..).zip([("b", "x"), ("a", "y"), ("a", "x"), ("c", "x")]) {
            cache.apply(key(namespace, name), Arc::new(n), n.into());
        }
        cache
    }

    fn numbers(objects: Vec<Arc<u32>>) -> Vec<u32> {
        objects.into_iter().map(|object| *object).collect()
    }

    #[test]
    fn objects_are_listed_by_namespace_and_name() {
        let cache = filled();
        assert_eq!(numbers(cache.list()), [3, 2, 1, 4]);
        assert_eq!(numbers(cache.list_in("a")), [3, 2]);
        assert!(cache.list_in("0").is_empty() && cache.list_in("d").is_empty());
        assert_eq!(cache.get(&key("c", "x")).as_deref(), Some(&4));
    }

    #[test]
    fn objects_of_a_group_are_found_without_the_others() {
        let cache = Cache::grouped_by(|number: &u32| if number.is_multiple_of(2) { Some("even") } else { None });
        for (n, name) in (1..).zip(["d", "c", "b", "a"]) {
            cache.apply(key("a", name), Arc::new(n), n.into());
        }
        assert_eq!(numbers(cache.list_group("a", "even")), [4, 2]);
        assert!(cache.list_group("b", "even").is_empty() && cache.list_group("a", "odd").is_empty());
        cache.apply(key("a", "c"), Arc::new(3), 5);
        cache.apply(key("a", "d"), Arc::new(6), 6);
        assert_eq!(numbers(cache.list_group("a", "even")), [4, 6]);
        cache.delete(&key("a", "a"), 7);
        assert_eq!(numbers(cache.list_group("a", "even")), [6]);
        let readable = [(key("a", "x"), Arc::new(8)), (key("b", "x"), Arc::new(10))].into();
        cache.replace(Listed { readable, unreadable: BTreeMap::new(), revision: 8 });
        assert_eq!(numbers(cache.list_group("a", "even")), [8]);
        assert_eq!(numbers(cache.list_group("b", "even")), [10]);
        assert!(filled().list_group("a", "even").is_empty(), "nobody said what groups there are");
    }

    #[test]
    fn the_revision_follows_changes_deletions_and_lists_also_backwards() {
        let cache = filled();
        assert_eq!(cache.revision(), 4);
        cache.delete(&key("a", "x"), 9);
        assert_eq!(cache.revision(), 9);
        let listed =
            Listed { readable: [(key("a", "y"), Arc::new(2))].into(), unreadable: BTreeMap::new(), revision: 2 };
        assert_eq!(cache.replace(listed).len(), 3);
        assert_eq!(cache.revision(), 2);
        assert_eq!(numbers(cache.list()), [2]);
    }

    #[test]
    fn an_object_that_cannot_be_read_stays_as_it_was_and_is_named() {
        let cache = filled();
        let spoiled = key("a", "x");
        cache.spoil(spoiled.clone(), "no".into(), 10);
        assert_eq!(cache.get(&spoiled).as_deref(), Some(&3));
        let unreadable = BTreeMap::from([(spoiled.clone(), "still no".to_owned())]);
        cache.replace(Listed { readable: BTreeMap::new(), unreadable, revision: 11 });
        assert_eq!(numbers(cache.list()), [3]);
        assert_eq!(cache.unreadable()[&spoiled], "still no");
        cache.apply(spoiled.clone(), Arc::new(5), 12);
        assert!(cache.unreadable().is_empty());
        cache.spoil(spoiled.clone(), "no".into(), 13);
        cache.delete(&spoiled, 14);
        assert!(cache.unreadable().is_empty() && cache.get(&spoiled).is_none());
    }
}
