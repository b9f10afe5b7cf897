//! The controller of `ReplicaSet`s: as many pods as a set is told to have.

use std::cmp::Reverse;

use serde_json::json;
use windlass_apiserver::store::Key;

use super::seen::{Pod, ReplicaSet, ReplicaSetStatus};
use super::view::View;
use super::write::{PODS, REPLICA_SETS, controlled_by};
use super::{Workload, pod};

/// A set, as it is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// How many pods it is told to have.
    pub(super) told: i64,
    /// How many it has.
    pub(super) present: i64,
    /// How many of them answer.
    pub(super) available: i64,
}

pub(super) fn count(view: &View, set: &ReplicaSet) -> Count {
    let active = || view.pods_of(&set.metadata.uid).filter(|(_, pod)| pod.active());
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Count {
        told: set.spec.replicas,
        present: number(active().count()),
        available: number(active().filter(|(_, pod)| pod.ready()).count()),
    }
}

/// Brings a set to as many pods as it is told to have. Pods that nobody owns are not adopted.
pub(super) fn sync(workload: &Workload, view: &mut View, key: &Key) {
    let Some(set) = view.replica_sets.get(key).filter(|set| !set.metadata.deleting()) else { return };
    let counted = count(view, set);
    for _ in counted.present..counted.told {
        create_pod(workload, key, set);
    }
    let mut ended = Vec::new();
    if counted.present > counted.told {
        let mut pods: Vec<(&Key, &Pod)> = view.pods_of(&set.metadata.uid).filter(|(_, pod)| pod.active()).collect();
        // Those that are least missed come first: without a node, not ready, the youngest.
        let rank = |pod: &Pod| (pod.spec.node_name.is_some(), pod.ready(), Reverse(pod.metadata.created_at()));
        pods.sort_by_key(|(key, pod)| (rank(pod), *key));
        let too_many = usize::try_from(counted.present - counted.told).unwrap_or_default();
        for (key, pod) in pods.into_iter().take(too_many) {
            if pod.spec.node_name.is_some() { workload.delete_pod(key) } else { ended.push(key.clone()) }
        }
    }
    let status = ReplicaSetStatus {
        available_replicas: counted.available,
        fully_labeled_replicas: counted.present,
        observed_generation: set.metadata.generation,
        ready_replicas: counted.available,
        replicas: counted.present,
    };
    if status != set.status {
        workload.change(REPLICA_SETS, key, |object| object["status"] = json!(status));
    }
    view.ended.extend(ended);
}

/// The template has all labels that the pods need, also the hash where the set belongs to a `Deployment`.
fn create_pod(workload: &Workload, key: &Key, set: &ReplicaSet) {
    let owner = controlled_by("apps/v1", "ReplicaSet", &key.name, &set.metadata.uid);
    workload.create(PODS, &workload.free_pod_name(key, ""), pod::from_template(&set.spec.template, owner));
}
