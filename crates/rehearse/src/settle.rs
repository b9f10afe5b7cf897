//! Waits until a cluster is as it was asked to be and nothing moves any more, or until that will never be.
//!
//! The World is read past its APIs: whoever watches must not be part of the traffic.

mod label;
mod machines;
mod topology;

use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Resource;
use tokio::time::Instant;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, WaitingFor};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::{self, Key, Range};
use windlass_runtime::trimmed::Trimmed;
use windlass_sim::world::World;

use crate::drive::Drive;
use crate::rehearsal::{Verdict, Waited};

/// How long nothing may be written until a change counts as over. Longer than anything takes that a World does by itself.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// How long nothing may happen until a change counts as stuck: twice as long as anybody waits before they give up.
const STANDSTILL: Duration = Duration::from_secs(2 * 60 * 60);

/// Between which times an end is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Before, something is still to happen that may change it.
    pub(crate) earliest: Instant,
    /// Whatever has not ended by then is stuck.
    pub(crate) latest: Instant,
}

/// How it ended.
pub(crate) struct Settled {
    pub(crate) verdict: Verdict,
    /// When.
    pub(crate) at: Timestamp,
    /// What it waited for on the way.
    pub(crate) waited: Vec<Waited>,
}

/// Waits for the end, and says when it came.
pub(crate) async fn settle(world: &World, cluster: &NamespacedName, drive: Drive, bounds: Bounds) -> Settled {
    let watched = match drive {
        Drive::Machines => [resource::<TanzuKubernetesCluster>(), resource::<ClusterUpdate>()],
        Drive::Topology(_) => [resource::<Cluster>(), resource::<ClusterBootstrap>()],
        Drive::Label => [resource::<Cluster>(), resource::<ClusterUpdate>()],
    };
    let store = world.management().store();
    let mut ended: Option<(Verdict, Timestamp)> = None;
    let mut waited = Vec::new();
    loop {
        // Subscribed before it is read, so that no change falls between the two.
        let changes = watched.each_ref().map(|resource| store.subscribe(resource, store.revision()));
        let (now, writes) = (world.settings().clock.now(), world.recorder().writes());
        let Look { end, waits } = look(world, cluster, drive);
        ended = match (end, ended) {
            (Some(verdict), Some((same, at))) if verdict == same => Some((same, at)),
            (Some(verdict), _) => Some((verdict, now)),
            (None, _) => None,
        };
        note(waits, now, &mut waited);
        let until = match &ended {
            None => bounds.latest.min(standstill(world, bounds)),
            // Whoever gave up does nothing more, and need not be quiet.
            Some((Verdict::Failed { .. }, _)) => bounds.earliest,
            Some(_) => bounds.latest.min(bounds.earliest.max(Instant::now() + QUIET)),
        };
        if let [Ok(of_clusters), Ok(of_others)] = changes {
            let mut changes = stream::select(of_clusters, of_others);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => {}
                _ = changes.next() => {}
            }
        }
        let is_quiet = || match drive {
            Drive::Machines | Drive::Label => world.recorder().writes() == writes,
            // Packages are looked at again every ten minutes, each at its time, and that is written down.
            Drive::Topology(_) => since_last_event(world) >= QUIET,
        };
        if let Some((verdict, at)) = &ended
            && Instant::now() >= until
            && (matches!(verdict, Verdict::Failed { .. }) || is_quiet())
        {
            return Settled { verdict: verdict.clone(), at: *at, waited };
        }
        if Instant::now() >= bounds.latest || (ended.is_none() && Instant::now() >= standstill(world, bounds)) {
            let verdict = stuck(look(world, cluster, drive).waits);
            return Settled { verdict, at: world.settings().clock.now(), waited };
        }
    }
}

/// When it is to be said that nothing will happen any more.
fn standstill(world: &World, bounds: Bounds) -> Instant {
    let left = STANDSTILL.saturating_sub(since_last_event(world));
    (Instant::now() + left).max(bounds.earliest + STANDSTILL)
}

/// For how long nothing has happened.
fn since_last_event(world: &World) -> Duration {
    let now = world.settings().clock.now();
    let last = world.recorder().last_event_at().unwrap_or(now);
    Duration::try_from(last.duration_until(now)).unwrap_or_default()
}

/// What a cluster says of itself at a moment.
struct Look {
    /// How it ended, if it has.
    end: Option<Verdict>,
    waits: Waits,
}

/// What a cluster says that it waits for.
#[derive(Default)]
struct Waits {
    /// In one sentence.
    short: Option<String>,
    /// Down to the cause.
    on: Vec<WaitingFor>,
}

fn look(world: &World, cluster: &NamespacedName, drive: Drive) -> Look {
    match drive {
        Drive::Machines => machines::look(world, cluster),
        Drive::Topology(_) => topology::look(world, cluster),
        Drive::Label => label::look(world, cluster),
    }
}

/// Takes note of what a cluster says that it waits for, where it is new.
fn note(Waits { short, on }: Waits, now: Timestamp, waited: &mut Vec<Waited>) {
    let reasons = on.iter().flat_map(|wait| [&wait.message].into_iter().chain(&wait.because)).cloned();
    let mut why: Vec<String> = Vec::new();
    for reason in short.into_iter().chain(reasons) {
        if !why.contains(&reason) {
            why.push(reason);
        }
    }
    if waited.last().map_or(&[][..], |last: &Waited| &last.why) != why {
        waited.push(Waited { at: now, why, on });
    }
}

fn stuck(waits: Waits) -> Verdict {
    Verdict::Stuck { waiting_for: waits.short.unwrap_or_else(|| "it does not say what it waits for".to_owned()) }
}

/// The cluster as it is now.
pub fn cluster(world: &World, name: &NamespacedName) -> Option<TanzuKubernetesCluster> {
    read(world, name.namespace.as_str(), name.name.as_str())
}

/// The update of a cluster that is running, or ran last.
pub fn update(world: &World, name: &NamespacedName) -> Option<ClusterUpdate> {
    update_of(world, name, &cluster(world, name)?)
}

/// The latest update of a classic cluster.
pub(crate) fn update_by_label(world: &World, name: &NamespacedName) -> Option<ClusterUpdate> {
    let updates = all::<ClusterUpdate>(world, name.namespace.as_str()).into_iter();
    updates.filter(|update| update.spec.cluster == name.name.as_str()).max_by_key(|update| update.spec.ordinal)
}

fn update_of(world: &World, name: &NamespacedName, cluster: &TanzuKubernetesCluster) -> Option<ClusterUpdate> {
    read(world, name.namespace.as_str(), cluster.status.as_ref()?.update.as_ref()?)
}

/// An object of the management cluster.
pub(crate) fn read<K>(world: &World, namespace: &str, name: &str) -> Option<K>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
{
    let entry = world.management().store().get(&resource::<K>(), &Key::new(namespace, name))?;
    object(&entry)
}

/// All objects of a kind in a namespace of the management cluster. One that cannot be read is not told of.
pub(crate) fn all<K>(world: &World, namespace: &str) -> Vec<K>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
{
    of_range(world, Range { namespace: Some(namespace), after: None, limit: 0 })
}

/// All objects of a kind in the management cluster, in any namespace or none.
pub(crate) fn everywhere<K>(world: &World) -> Vec<K>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
{
    of_range(world, Range { namespace: None, after: None, limit: 0 })
}

fn of_range<K>(world: &World, range: Range<'_>) -> Vec<K>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
{
    let listed = world.management().store().list(&resource::<K>(), range, |_| true);
    listed.entries.iter().filter_map(|entry| object(entry)).collect()
}

/// A stored object. Types that are derived do not ask for `apiVersion` and `kind`, which are not stored.
fn object<K: serde::de::DeserializeOwned>(entry: &store::Entry) -> Option<K> {
    serde_json::from_slice(&entry.json).ok().map(|Trimmed(object)| object)
}

fn resource<K: Resource<DynamicType = ()>>() -> store::Resource {
    store_name(&K::plural(&()), &K::group(&()))
}
