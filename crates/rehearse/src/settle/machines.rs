//! A `TanzuKubernetesCluster`: it and its update say how far it is.

use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::name::NamespacedName;
use windlass_sim::world::World;

use super::{Look, Waits, cluster, update_of};
use crate::rehearsal::Verdict;

pub(super) fn look(world: &World, name: &NamespacedName) -> Look {
    let seen = Seen::of(world, name);
    Look { end: end(&seen), waits: waits(seen) }
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

/// What a cluster and its update say that they wait for, down to the cause.
fn waits(Seen { cluster, update }: Seen) -> Waits {
    let status = cluster.and_then(|cluster| cluster.status).unwrap_or_default();
    let on_record = update.and_then(|update| update.status).unwrap_or_default();
    Waits { short: status.waiting_for, on: status.waits.into_iter().chain(on_record.waiting_for).collect() }
}
