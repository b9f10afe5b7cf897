//! Waits until a cluster is as it was asked to be and nothing moves any more, or until that will never be.
//!
//! The World is read past its APIs: whoever watches must not be part of the traffic.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::Resource;
use tokio::time::Instant;
use windlass_api::annotation;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_api::name::NamespacedName;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::Key;
use windlass_sim::world::World;

use crate::rehearsal::Verdict;

/// How long nothing may be written until a change counts as over. Longer than anything takes that a World does by itself.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// Waits for the end, and says when it came.
pub(crate) async fn settle(
    world: &World,
    cluster: &NamespacedName,
    distribution: &str,
    deadline: Instant,
) -> (Verdict, Timestamp) {
    let resource = store_name(&TanzuKubernetesCluster::plural(&()), &TanzuKubernetesCluster::group(&()));
    let store = world.management().store();
    let mut reached_at = None;
    loop {
        // Subscribed before it is read, so that no change falls between the two.
        let changes = store.subscribe(&resource, store.revision());
        let (now, writes) = (world.settings().clock.now(), world.recorder().writes());
        let verdict = end(world, cluster, distribution);
        let reached = match verdict {
            Some(reached @ Verdict::Reached { .. }) => Some((reached, *reached_at.get_or_insert(now))),
            Some(verdict) => return (verdict, now),
            None => None,
        };
        let until = if reached.is_some() { deadline.min(Instant::now() + QUIET) } else { deadline };
        if let Ok(mut changes) = changes {
            tokio::select! {
                biased;
                _ = changes.next() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
        match reached {
            Some(reached) if world.recorder().writes() == writes => return reached,
            Some(_) => {}
            None => reached_at = None,
        }
        if Instant::now() >= deadline {
            return (stuck(world, cluster), world.settings().clock.now());
        }
    }
}

/// How it ended, if it has.
fn end(world: &World, name: &NamespacedName, distribution: &str) -> Option<Verdict> {
    let Some(cluster) = cluster(world, name) else {
        return Some(Verdict::Failed { why: format!("{name} is gone") });
    };
    let generation = cluster.metadata.generation;
    let hop = is_hop(&cluster) && is_updated(world, name, distribution);
    let status = cluster.status.unwrap_or_default();
    let there = hop || status.version.as_deref() == Some(distribution);
    match status.phase? {
        Phase::Running if status.observed_generation == generation && there => {
            Some(Verdict::Reached { distribution: distribution.to_owned() })
        }
        Phase::UpdateFailed | Phase::Failed => {
            let failure = update(world, name).and_then(|update| update.status?.failure);
            let why = failure.or(status.waiting_for).unwrap_or_else(|| "no reason is given".to_owned());
            Some(Verdict::Failed { why })
        }
        Phase::Creating | Phase::Running | Phase::Unhealthy | Phase::Updating | Phase::Deleting => None,
    }
}

/// Whether a cluster is only on its way, so that its workers may wait and the oldest machine says nothing about an update.
fn is_hop(cluster: &TanzuKubernetesCluster) -> bool {
    cluster.metadata.annotations.as_ref().is_some_and(|annotations| annotation::ON_THE_WAY_TO.is_in(annotations))
}

/// Whether the latest update of a cluster led to a release, and is done.
fn is_updated(world: &World, name: &NamespacedName, distribution: &str) -> bool {
    let state = |update: &ClusterUpdate| update.status.as_ref().and_then(|status| status.state);
    update(world, name)
        .is_some_and(|it| it.spec.to.distribution == distribution && state(&it) == Some(UpdateState::Succeeded))
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
    let update = cluster(world, name)?.status?.update?;
    read(world, name.namespace.as_str(), &update)
}

fn read<K>(world: &World, namespace: &str, name: &str) -> Option<K>
where
    K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
{
    let resource = store_name(&K::plural(&()), &K::group(&()));
    let entry = world.management().store().get(&resource, &Key::new(namespace, name))?;
    serde_json::from_value(entry.to_value(&K::api_version(&()), &K::kind(&()))).ok()
}
