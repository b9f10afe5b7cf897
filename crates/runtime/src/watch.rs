//! One kind, watched into a cache.
//!
//! kube's `watcher` lists, watches, and resumes. This adds what it leaves to its users: a cache in order, which owners a
//! change concerns, back-off with jitter from our seed, and a guard so that one malformed object stops nobody else.

mod lean;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use crate::backoff::Backoff;
use crate::cache::{Cache, Group, Listed};
use crate::chance::Chance;
use crate::key::Key;
use crate::trimmed::Trimmed;
use lean::Source;

/// What can be watched: any Kubernetes kind, typed or dynamic.
pub trait Object:
    Resource<DynamicType: Clone + Send + Sync + 'static> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType: Clone + Send + Sync + 'static> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// What a watch saw of one object: what it was, if it was there before, and what it is, if it still is.
#[derive(Debug)]
pub struct Change<'a, K> {
    /// Before.
    pub before: Option<&'a K>,
    /// Now.
    pub after: Option<&'a K>,
}

/// A watch that is about to be given to a [`Runner`](crate::runner::Runner), which then feeds its cache. Managed fields
/// are left out: they are up to half of an object, and no reconciler decides by them.
pub struct Watch<K: Resource> {
    client: Client,
    pub(crate) kind: K::DynamicType,
    namespace: Option<String>,
    config: watcher::Config,
    cache: Cache<K>,
}

impl<K: Object> Watch<K> {
    /// Every object of the kind.
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Self::all_with(client, K::DynamicType::default())
    }

    /// Every object of a kind that is known at run time only.
    pub fn all_with(client: Client, kind: K::DynamicType) -> Self {
        Self { client, kind, namespace: None, config: watcher::Config::default(), cache: Cache::new() }
    }

    /// Only those in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only those that the selectors of this configuration choose. Leave its list semantic as it is: a list that is not
    /// a quorum read may be older than what was seen before it.
    #[must_use]
    pub fn configured(mut self, config: watcher::Config) -> Self {
        self.config = config;
        self
    }

    /// The cache finds the objects of a group without looking at the others. To be said before the cache is asked for.
    #[must_use]
    pub fn grouped_by(mut self, group: Group<K>) -> Self {
        self.cache = Cache::grouped_by(group);
        self
    }

    /// The cache that this watch feeds.
    pub fn cache(&self) -> Cache<K> {
        self.cache.clone()
    }

    pub(crate) fn name(&self) -> String {
        let (plural, group) = (K::plural(&self.kind), K::group(&self.kind));
        if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
    }

    /// The watch as a stream that never ends, of what it saw and which keys that concerns.
    pub(crate) fn observe<M>(self, map: M, backoff: Backoff, jitter: Chance) -> BoxStream<'static, Observed>
    where
        M: Fn(&Change<'_, K>) -> Vec<Key> + Send + 'static,
    {
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client, namespace, &self.kind),
            None => Api::all_with(self.client, &self.kind),
        };
        let events = watcher::watcher(api.clone(), self.config.clone()).boxed();
        let config = self.config;
        let (cache, listing) = (self.cache, Listed::default());
        let observer = Observer { api, config, events, cache, listing, map, backoff, jitter, failures: 0, pause: None };
        stream::unfold(observer, |mut observer| async { Some((observer.next().await, observer)) }).boxed()
    }
}

/// What a watch saw, and the keys that it concerns.
#[derive(Debug)]
pub(crate) struct Observed {
    pub what: Sight,
    pub keys: Vec<Key>,
}

#[derive(Debug)]
pub(crate) enum Sight {
    Listed { objects: usize, revision: u64, unreadable: BTreeMap<Key, String> },
    Applied { key: Key, revision: u64 },
    Deleted { key: Key, revision: u64 },
    Unreadable { key: Key, why: String },
    Failed { error: watcher::Error, retry_in: Duration },
}

struct Observer<K: Object, M> {
    api: Api<Guarded<K>>,
    config: watcher::Config,
    events: BoxStream<'static, watcher::Result<Event<Guarded<K>>>>,
    cache: Cache<K>,
    /// A list that is still arriving. It may go on after an error, so it is emptied only when a new one begins.
    listing: Listed<K>,
    map: M,
    backoff: Backoff,
    jitter: Chance,
    failures: u32,
    pause: Option<Duration>,
}

impl<K: Object, M: Fn(&Change<'_, K>) -> Vec<Key>> Observer<K, M> {
    async fn next(&mut self) -> Observed {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let observed = match self.events.next().await {
                Some(Ok(Event::Init)) => {
                    self.listing = Listed::default();
                    continue;
                }
                Some(Ok(Event::InitApply(object))) => {
                    self.list(object);
                    continue;
                }
                Some(Ok(Event::InitDone)) => self.replace(),
                Some(Ok(Event::Apply(object))) => self.apply(object),
                Some(Ok(Event::Delete(object))) => self.delete(&object),
                Some(Err(error)) => return self.back_off(error),
                // It never ends; if it did, starting over is the way on.
                None => {
                    self.start_over();
                    continue;
                }
            };
            // Not at `Init`, which comes before every try of a list that keeps failing.
            self.failures = 0;
            return observed;
        }
    }

    fn apply(&mut self, Guarded(object): Guarded<K>) -> Observed {
        match object {
            Ok(object) => {
                let (key, revision, object) = (Key::of(&object), revision(object.meta()), Arc::new(object));
                let before = self.cache.apply(key.clone(), Arc::clone(&object), revision);
                let keys = self.concerned(before.as_ref(), Some(&object));
                Observed { what: Sight::Applied { key, revision }, keys }
            }
            Err(unreadable) => {
                let (key, revision) = (unreadable.key(), revision(&unreadable.metadata));
                let before = self.cache.spoil(key.clone(), unreadable.why.clone(), revision);
                let keys = self.concerned(before.as_ref(), None);
                Observed { what: Sight::Unreadable { key, why: unreadable.why }, keys }
            }
        }
    }

    fn delete(&mut self, object: &Guarded<K>) -> Observed {
        let (key, revision) = (Key::of(object), revision(object.meta()));
        let before = self.cache.delete(&key, revision);
        let keys = self.concerned(before.as_ref(), None);
        Observed { what: Sight::Deleted { key, revision }, keys }
    }

    fn list(&mut self, object: Guarded<K>) {
        self.listing.revision = self.listing.revision.max(revision(object.meta()));
        match object.0 {
            Ok(object) => drop(self.listing.readable.insert(Key::of(&object), Arc::new(object))),
            Err(unreadable) => drop(self.listing.unreadable.insert(unreadable.key(), unreadable.why)),
        }
    }

    /// Only what differs from before concerns anyone, and so does what is gone: its deletion may have been missed.
    fn replace(&mut self) -> Observed {
        let listed = std::mem::take(&mut self.listing);
        let (revision, unreadable) = (listed.revision, listed.unreadable.clone());
        let before = self.cache.replace(listed);
        let now = self.cache.list();
        let mut keys = Vec::new();
        for object in &now {
            let old = before.get(&Key::of(&**object));
            if old.is_none_or(|old| old.meta().resource_version != object.meta().resource_version) {
                keys.extend(self.concerned(old, Some(object)));
            }
        }
        for (_, gone) in before.iter().filter(|(key, _)| self.cache.get(key).is_none()) {
            keys.extend(self.concerned(Some(gone), None));
        }
        Observed { what: Sight::Listed { objects: now.len(), revision, unreadable }, keys }
    }

    fn back_off(&mut self, error: watcher::Error) -> Observed {
        self.failures = self.failures.saturating_add(1);
        let retry_in = self.backoff.delay(self.failures, &mut self.jitter);
        self.pause = Some(retry_in);
        // kube relists after a 410 that comes as an event, but repeats the same request for ever after one that comes
        // as the HTTP status.
        if matches!(&error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410) {
            self.start_over();
        }
        Observed { what: Sight::Failed { error, retry_in }, keys: Vec::new() }
    }

    fn start_over(&mut self) {
        self.events = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
    }

    fn concerned(&self, before: Option<&Arc<K>>, after: Option<&Arc<K>>) -> Vec<Key> {
        (self.map)(&Change { before: before.map(|object| &**object), after: after.map(|object| &**object) })
    }
}

/// Resource versions are decimal numbers that can be compared within a kind (Kubernetes 1.35 promises what was always
/// so). One that is not a number has no place in the order, and nobody waits for it.
pub(crate) fn revision(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// An object that may have turned out not to be readable as its kind. kube has this as `DeserializeGuard`, which copies
/// the whole object once more.
#[derive(Debug, Clone)]
pub(crate) struct Guarded<K>(Result<K, Unreadable>);

#[derive(Debug, Clone)]
struct Unreadable {
    metadata: ObjectMeta,
    why: String,
}

impl Unreadable {
    fn key(&self) -> Key {
        let ObjectMeta { namespace, name, .. } = self.metadata.clone();
        Key { namespace, name: name.unwrap_or_default() }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Source::deserialize(deserializer)? {
            // Nearly all that comes: no tree is made of it.
            Source::Text(text) => match serde_json::from_str(&text) {
                Ok(Trimmed(object)) => Self(Ok(object)),
                Err(_) => Self::from_tree(lean::object(&text)),
            },
            Source::Tree(tree) => Self::from_tree(tree),
        })
    }
}

impl<K: DeserializeOwned> Guarded<K> {
    fn from_tree(tree: Value) -> Self {
        let text = |field: &str| tree["metadata"][field].as_str().map(str::to_owned);
        let (namespace, name, resource_version) = (text("namespace"), text("name"), text("resourceVersion"));
        // By value: whatever is in the tree is moved into the type and not copied.
        Self(serde_json::from_value(tree).map_err(|error| {
            let metadata = ObjectMeta { namespace, name, resource_version, ..ObjectMeta::default() };
            Unreadable { metadata, why: error.to_string() }
        }))
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = DynamicResourceScope;

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|unreadable| &unreadable.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|unreadable| &mut unreadable.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::WatchEvent;

    use super::*;

    /// Reads the object as a watch does, with the frame's fields in either order.
    fn check(object: &str, key: &str, readable: bool) {
        for frame in [r#"{"type":"ADDED","object":OBJECT}"#, r#"{"object":OBJECT,"type":"ADDED"}"#] {
            let event: WatchEvent<Guarded<ConfigMap>> = serde_json::from_str(&frame.replace("OBJECT", object)).unwrap();
            let WatchEvent::Added(guarded) = event else { panic!("{object}") };
            assert_eq!(Key::of(&guarded).to_string(), key, "{object}");
            assert_eq!(guarded.0.is_ok(), readable, "{object}: {:?}", guarded.0);
        }
    }

    #[test]
    fn any_object_can_be_taken_in_and_is_known_by_its_name() {
        check(r#"{"metadata":{"name":"a","namespace":"n"},"data":{"k":"v"}}"#, "n/a", true);
        check(r#"{"metadata":{"name":"a","namespace":"n"},"data":["v"]}"#, "n/a", false);
        check(r#"{"metadata":{"name":"a","labels":7}}"#, "a", false);
        check(r#"{"metadata":{"name":7}}"#, "", false);
        check(r#"{"metadata":"none"}"#, "", false);
        check(r#""none""#, "", false);
        check("null", "", false);
    }

    #[test]
    fn managed_fields_are_left_out() {
        let object = r#"{"metadata":{"name":"a","managedFields":[{"manager":"kubectl"}]}}"#;
        let Guarded::<ConfigMap>(object) = serde_json::from_str(object).unwrap();
        assert_eq!(object.unwrap().metadata.managed_fields, None);
    }

    #[test]
    fn resource_versions_are_compared_as_numbers() {
        let of = |version: Option<&str>| {
            revision(&ObjectMeta { resource_version: version.map(str::to_owned), ..ObjectMeta::default() })
        };
        assert!(of(Some("9")) < of(Some("10")));
        assert_eq!((of(Some("not a number")), of(None)), (0, 0));
    }
}
