//! Waits until a cluster is as it was asked to be and nothing moves any more, or until that will never be.
//!
//! The World is read past its APIs: whoever watches must not be part of the traffic.

use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Resource;
use tokio::time::Instant;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState, WaitingFor};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::name::NamespacedName;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::{self, Key, Range};
use windlass_runtime::trimmed::Trimmed;
use windlass_sim::world::World;

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
pub(crate) async fn settle(world: &World, cluster: &NamespacedName, bounds: Bounds) -> Settled {
    let (clusters, updates) = (resource::<TanzuKubernetesCluster>(), resource::<ClusterUpdate>());
    let store = world.management().store();
    let mut ended: Option<(Verdict, Timestamp)> = None;
    let mut waited = Vec::new();
    loop {
        // Subscribed before it is read, so that no change falls between the two.
        let changes = [&clusters, &updates].map(|resource| store.subscribe(resource, store.revision()));
        let (now, writes) = (world.settings().clock.now(), world.recorder().writes());
        let seen = Seen::of(world, cluster);
        ended = match (end(&seen), ended) {
            (Some(verdict), Some((same, at))) if verdict == same => Some((same, at)),
            (Some(verdict), _) => Some((verdict, now)),
            (None, _) => None,
        };
        note_waits(seen, now, &mut waited);
        let until = match &ended {
            None => bounds.latest.min(standstill(world, bounds)),
            // Whoever gave up does nothing more, and need not be quiet.
            Some((Verdict::Failed { .. }, _)) => bounds.earliest,
            Some(_) => bounds.latest.min(bounds.earliest.max(Instant::now() + QUIET)),
        };
        if let [Ok(of_clusters), Ok(of_updates)] = changes {
            let mut changes = stream::select(of_clusters, of_updates);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => {}
                _ = changes.next() => {}
            }
        }
        let is_quiet = || world.recorder().writes() == writes;
        if let Some((verdict, at)) = &ended
            && Instant::now() >= until
            && (matches!(verdict, Verdict::Failed { .. }) || is_quiet())
        {
            return Settled { verdict: verdict.clone(), at: *at, waited };
        }
        if Instant::now() >= bounds.latest || (ended.is_none() && Instant::now() >= standstill(world, bounds)) {
            return Settled { verdict: stuck(world, cluster), at: world.settings().clock.now(), waited };
        }
    }
}

/// When it is to be said that nothing will happen any more.
fn standstill(world: &World, bounds: Bounds) -> Instant {
    let now = world.settings().clock.now();
    let last = world.recorder().last_event_at().unwrap_or(now);
    let ago = Duration::try_from(last.duration_until(now)).unwrap_or_default();
    let left = STANDSTILL.saturating_sub(ago);
    (Instant::now() + left).max(bounds.earliest + STANDSTILL)
}

/// A cluster, and the update that is running or ran last, as they are at a moment.
struct Seen {
    cluster: Option<TanzuKubernetesCluster>,
    update: Option<ClusterUpdate>,
}

impl Seen {
    fn of(world: &World, name: &NamespacedName) -> Self {
        let cluster = cluster(world, name);
        let update = cluster.as_ref().and_then(|cluster| update_of(world, name, cluster));
        Self { cluster, update }
    }
}

/// How it ended, if it has: a cluster is as it was asked to be when it says so of the latest wish, and nothing is on record
/// that is still to be done.
fn end(Seen { cluster, update }: &Seen) -> Option<Verdict> {
    let Some(cluster) = cluster else { return Some(Verdict::Gone) };
    let none = TanzuKubernetesClusterStatus::default();
    let state = update.as_ref().map(|update| update.status.as_ref().and_then(|status| status.state));
    let is_running = matches!(state, Some(None | Some(UpdateState::Running)));
    let distribution = cluster.spec.distribution.full_version.clone().unwrap_or_default();
    let status = cluster.status.as_ref().unwrap_or(&none);
    let is_seen = status.observed_generation == cluster.metadata.generation;
    match status.phase? {
        Phase::Running if is_seen && !is_running && status.waiting_for.is_none() => {
            let has = status.version.clone().filter(|has| *has != distribution);
            Some(match has.filter(|_| state == Some(Some(UpdateState::Aborted))) {
                Some(has) => Verdict::GivenUp { distribution: has },
                None => Verdict::Reached { distribution },
            })
        }
        Phase::UpdateFailed | Phase::Failed => {
            let failure = update.as_ref().and_then(|update| update.status.as_ref()?.failure.clone());
            let why = failure.or_else(|| status.waiting_for.clone()).unwrap_or_else(|| "no reason is given".to_owned());
            Some(Verdict::Failed { why })
        }
        Phase::Creating | Phase::Running | Phase::Unhealthy | Phase::Updating | Phase::Deleting => None,
    }
}

/// Takes note of what a cluster and its update say that they wait for, down to the cause, where it is new.
fn note_waits(Seen { cluster, update }: Seen, now: Timestamp, waited: &mut Vec<Waited>) {
    let status = cluster.and_then(|cluster| cluster.status).unwrap_or_default();
    let on_record = update.and_then(|update| update.status).unwrap_or_default();
    let on: Vec<WaitingFor> = status.waits.into_iter().chain(on_record.waiting_for).collect();
    let reasons = on.iter().flat_map(|wait| [&wait.message].into_iter().chain(&wait.because)).cloned();
    let mut why: Vec<String> = Vec::new();
    for reason in status.waiting_for.into_iter().chain(reasons) {
        if !why.contains(&reason) {
            why.push(reason);
        }
    }
    if waited.last().map_or(&[][..], |last: &Waited| &last.why) != why {
        waited.push(Waited { at: now, why, on });
    }
}

fn stuck(world: &World, name: &NamespacedName) -> Verdict {
    let waiting_for = cluster(world, name).and_then(|cluster| cluster.status?.waiting_for);
    Verdict::Stuck { waiting_for: waiting_for.unwrap_or_else(|| "it does not say what it waits for".to_owned()) }
}

/// The cluster as it is now.
pub fn cluster(world: &World, name: &NamespacedName) -> Option<TanzuKubernetesCluster> {
    read(world, name.namespace.as_str(), name.name.as_str())
}

/// The update of a cluster that is running, or ran last.
pub fn update(world: &World, name: &NamespacedName) -> Option<ClusterUpdate> {
    update_of(world, name, &cluster(world, name)?)
}

fn update_of(world: &World, name: &NamespacedName, cluster: &TanzuKubernetesCluster) -> Option<ClusterUpdate> {
    read(world, name.namespace.as_str(), cluster.status.as_ref()?.update.as_ref()?)
}

fn read<K>(world: &World, namespace: &str, name: &str) -> Option<K>
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
    let range = Range { namespace: Some(namespace), after: None, limit: 0 };
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
