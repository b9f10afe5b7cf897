//! Runs one controller: watches in, reconciles out.
//!
//! What can be relied on:
//! - No reconcile begins before every watch has its first full list.
//! - At most one reconcile of a key at a time, at most [`Options::slots`] in all; a change during one gives one more.
//! - A key is not reconciled again before the caches have seen what it [wrote](Ctx::wrote), unless that takes too long.
//! - Errors, panics and reconciles that hang end that reconcile only; the key is tried again, later each time.
//! - Under one thread and a paused clock, the same seed gives the same event log.

use std::any::TypeId;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll, Stream, StreamExt};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::backoff::Backoff;
use crate::cache::Cache;
use crate::chance::Seed;
use crate::clock::Clock;
use crate::key::Key;
use crate::trace::Trace;
use crate::watch::{Change, Object, Watch};

mod context;
mod engine;

pub use crate::queue::Order;
pub use context::{Ctx, Outcome};
use engine::{Engine, Input};

/// How a runner runs.
#[derive(Clone)]
pub struct Options {
    /// What time it is in the event log.
    pub clock: Clock,
    /// Where jitter comes from. Each runner draws from streams with its own name.
    pub seed: Seed,
    /// The order of what is ready.
    pub order: Order,
    /// How many reconciles run at once.
    pub slots: usize,
    /// How soon a failed reconcile is tried again.
    pub backoff: Backoff,
    /// How soon a failed watch is tried again.
    pub watch_backoff: Backoff,
    /// How long a key waits for its own writes to be seen. After that the reconciler is told, and has to read for itself.
    pub patience: Duration,
    /// How long one reconcile may take. What hangs longer is dropped, as a crash would, so that it gives back its slot.
    pub deadline: Duration,
    /// Where the event log goes.
    pub trace: Option<Arc<dyn Trace>>,
    /// Who is told how busy it is.
    pub load: Option<Arc<dyn Load>>,
}

impl Options {
    /// The usual: first come first served, 16 slots, no event log, nobody told.
    pub fn new(clock: Clock, seed: Seed) -> Self {
        Self {
            clock,
            seed,
            order: Order::Fifo,
            slots: 16,
            backoff: Backoff::RECONCILE,
            watch_backoff: Backoff::WATCH,
            patience: Duration::from_secs(10),
            deadline: Duration::from_secs(300),
            trace: None,
            load: None,
        }
    }
}

/// Who is told how busy a runner is, for numbers.
pub trait Load: Send + Sync {
    /// So many keys are ready, and so many are reconciled. Told when it is another.
    fn busy(&self, ready: usize, running: usize);
    /// A key has its turn, which has been due for so long.
    fn waited(&self, time: Duration);
    /// A key will be tried again, because its reconcile failed.
    fn retried(&self);
}

/// What a run came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Reconciles that began.
    pub reconciles: u64,
    /// Those that returned an error.
    pub errors: u64,
    /// Those that panicked.
    pub panics: u64,
    /// Those that hung and were dropped.
    pub overdue: u64,
    /// Those that began although their own writes had not been seen.
    pub stale: u64,
    /// Watches that failed and were resumed.
    pub watch_errors: u64,
    /// Times that an object could not be read.
    pub unreadable: u64,
}

/// The names of the objects of this kind that control the object: one, or none.
fn controllers<'a>(owned: &'a ObjectMeta, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let owners = owned.owner_references.iter().flatten().filter(|owner| owner.controller == Some(true));
    let ours = owners.filter(move |owner| {
        // An owner may be named in any version of its group.
        let owner_group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.kind == kind && owner_group == group
    });
    ours.map(|owner| owner.name.as_str())
}

/// A controller that is being put together. `K` is the kind that its keys name.
pub struct Runner<K: Resource> {
    name: String,
    options: Options,
    kind: K::DynamicType,
    primary: Cache<K>,
    watches: Vec<String>,
    inputs: SelectAll<BoxStream<'static, Input>>,
}

impl<K: Object> Runner<K> {
    /// A controller with this name, for the objects that this watch sees.
    pub fn new(name: &str, primary: Watch<K>, options: Options) -> Self {
        Self::concerning(name, primary, options, |object| vec![Key::of(object)])
    }

    /// The same where a change of one object concerns others, too, or others only: `map` names them.
    pub fn concerning(
        name: &str,
        primary: Watch<K>,
        options: Options,
        map: impl Fn(&K) -> Vec<Key> + Send + 'static,
    ) -> Self {
        let (kind, cache) = (primary.kind.clone(), primary.cache());
        let name = name.to_owned();
        let runner = Self { name, options, kind, primary: cache, watches: Vec::new(), inputs: SelectAll::new() };
        runner.watches(primary, map)
    }

    /// Also looks at an object again when something that it is the controller of changes. Where `K` is dynamic, it is
    /// taken to be in the namespace of what it owns.
    #[must_use]
    pub fn owns<O: Object>(self, watch: Watch<O>) -> Self
    where
        K::Scope: 'static,
    {
        let (kind, group) = (K::kind(&self.kind).into_owned(), K::group(&self.kind).into_owned());
        let cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        self.watches(watch, move |owned| {
            let namespace = owned.meta().namespace.as_deref().filter(|_| !cluster_scoped);
            let names = controllers(owned.meta(), &group, &kind);
            names.map(|name| Key { namespace: namespace.map(str::to_owned), name: name.to_owned() }).collect()
        })
    }

    /// Also looks at the objects that `map` names when something else changes. It is called with what that was before,
    /// too, and with what is gone: both owners of an object that changes hands are concerned.
    #[must_use]
    pub fn watches<O: Object>(self, watch: Watch<O>, map: impl Fn(&O) -> Vec<Key> + Send + 'static) -> Self {
        self.watches_changes(watch, move |change| {
            [change.before, change.after].into_iter().flatten().flat_map(&map).collect()
        })
    }

    /// The same where it depends on what has changed who is concerned.
    #[must_use]
    pub fn watches_changes<O: Object>(
        mut self,
        watch: Watch<O>,
        map: impl Fn(&Change<'_, O>) -> Vec<Key> + Send + 'static,
    ) -> Self {
        let (index, name) = (self.watches.len(), watch.name());
        // Named by what it watches, so that adding another watch does not change the jitter of this one.
        let jitter = self.options.seed.child(&self.name).stream(&format!("watch {name}"));
        let sights = watch.observe(map, self.options.watch_backoff, jitter);
        self.inputs.push(sights.map(move |observed| Input::Observed(index, observed)).boxed());
        self.watches.push(name);
        self
    }

    /// Also looks at the objects that this stream names.
    #[must_use]
    pub fn triggers(mut self, keys: impl Stream<Item = Key> + Send + 'static) -> Self {
        self.inputs.push(keys.map(Input::Triggered).boxed());
        self
    }

    /// Reconciles objects until `stop`, then lets the running reconciles end. What is gone is not reconciled: whoever
    /// must act on a deletion holds it up with a finalizer.
    pub async fn run<C, R, F, E>(self, context: Arc<C>, reconcile: R, stop: impl Future<Output = ()>) -> Summary
    where
        C: Send + Sync + 'static,
        R: Fn(Arc<K>, Ctx<C>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: std::error::Error + 'static,
    {
        let (cache, reconcile) = (self.primary.clone(), Arc::new(reconcile));
        let reconcile_key = move |key: Key, ctx| {
            let (object, reconcile) = (cache.get(&key), Arc::clone(&reconcile));
            async move {
                match object {
                    Some(object) => reconcile(object, ctx).await,
                    None => Ok(Outcome::done()),
                }
            }
        };
        self.run_keys(context, reconcile_key, stop).await
    }

    /// The same for a reconciler that takes keys, also of objects that are gone or never were.
    pub async fn run_keys<C, R, F, E>(self, context: Arc<C>, reconcile: R, stop: impl Future<Output = ()>) -> Summary
    where
        C: Send + Sync + 'static,
        R: Fn(Key, Ctx<C>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: std::error::Error + 'static,
    {
        let engine = Engine::new(self.name, self.options, self.watches, self.inputs);
        engine.run(&context, &Arc::new(reconcile), pin!(stop)).await
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;

    fn check(api_version: &str, kind: &str, controller: Option<bool>, expected: &[&str]) {
        let owner = OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "mine".into(),
            controller,
            ..OwnerReference::default()
        };
        let meta = ObjectMeta { owner_references: Some(vec![owner]), ..ObjectMeta::default() };
        let names: Vec<&str> = controllers(&meta, "cluster.x-k8s.io", "Machine").collect();
        assert_eq!(names, expected, "{api_version} {kind} {controller:?}");
    }

    #[test]
    fn a_controller_is_known_by_group_and_kind_in_any_version() {
        check("cluster.x-k8s.io/v1beta2", "Machine", Some(true), &["mine"]);
        check("cluster.x-k8s.io/v1beta1", "Machine", Some(true), &["mine"]);
        check("cluster.x-k8s.io/v1beta2", "Machine", Some(false), &[]);
        check("cluster.x-k8s.io/v1beta2", "Machine", None, &[]);
        check("cluster.x-k8s.io/v1beta2", "MachineSet", Some(true), &[]);
        check("v1", "Machine", Some(true), &[]);
        check("other.io/v1beta2", "Machine", Some(true), &[]);
    }
}
