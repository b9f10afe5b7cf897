//! The controllers of `Deployment`s and of their `ReplicaSet`s: pods are replaced by newer ones a few at a time.

use std::cmp::Reverse;

use serde_json::{Value, json};
use windlass_apiserver::store::Key;

use super::seen::{Amount, Deployment, DeploymentStatus, Pod, ReplicaSet, ReplicaSetStatus};
use super::view::View;
use super::write::{DEPLOYMENTS, PODS, REPLICA_SETS, controlled_by, set_condition};
use super::{Workload, pod};

const HASH: &str = "pod-template-hash";

/// A set, as a rollout counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// How many pods it is told to have.
    told: i64,
    /// How many it has.
    present: i64,
    /// How many of them answer.
    available: i64,
}

/// How far a rollout may go from the number that is wished for.
#[derive(Debug, Clone, Copy)]
struct Limits {
    wish: i64,
    surge: i64,
    missing: i64,
}

/// Brings a `Deployment` one step closer to what it should be.
pub(super) fn sync(workload: &Workload, view: &View, key: &Key) {
    let Some(deployment) = view.deployments.get(key) else { return };
    if deployment.metadata.deletion_timestamp.is_some() {
        return;
    }
    let hash = deployment.spec.template.hash();
    let name = format!("{}-{hash}", key.name);
    let mut old: Vec<(&Key, &ReplicaSet, Count)> = Vec::new();
    let mut new = None;
    for (key, set) in view.sets_of(&deployment.metadata.uid) {
        let counted = (key, set, count(view, set));
        if *key.name == *name { new = Some(counted) } else { old.push(counted) }
    }
    // The oldest make way first.
    old.sort_by_key(|(key, set, _)| (set.metadata.created_at(), *key));
    let counts: Vec<Count> = old.iter().map(|(_, _, count)| *count).collect();
    let new_count = new.map(|(_, _, count)| count);
    let (new_told, old_told) = next(deployment, new_count.unwrap_or_default(), &counts);
    match new {
        None => create_set(workload, key, deployment, &hash, new_told),
        Some((set, _, count)) => scale(workload, set, count.told, new_told),
    }
    for ((set, _, count), told) in old.iter().zip(old_told) {
        scale(workload, set, count.told, told);
    }
    write_status(workload, key, deployment, new_count.unwrap_or_default(), &counts);
}

fn count(view: &View, set: &ReplicaSet) -> Count {
    let active = || view.pods_of(&set.metadata.uid).filter(|(_, pod)| pod.active());
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Count {
        told: set.spec.replicas,
        present: number(active().count()),
        available: number(active().filter(|(_, pod)| pod.ready()).count()),
    }
}

/// How many pods each set is to be told to have.
fn next(deployment: &Deployment, new: Count, old: &[Count]) -> (i64, Vec<i64>) {
    let wish = deployment.spec.replicas;
    let strategy = &deployment.spec.strategy;
    if &*strategy.type_ == "Recreate" {
        let gone = old.iter().all(|set| set.present == 0);
        return (if gone { wish } else { new.told }, vec![0; old.len()]);
    }
    let rolling = &strategy.rolling_update;
    let quarter = Amount::Share("25%".into());
    let surge = rolling.max_surge.as_ref().unwrap_or(&quarter).of_rounded_up(wish);
    let missing = rolling.max_unavailable.as_ref().unwrap_or(&quarter).of_rounded_down(wish);
    // Without room in either direction nothing could ever move.
    let missing = if surge == 0 && missing == 0 { 1 } else { missing };
    roll(Limits { wish, surge, missing }, new, old)
}

/// First the new set grows, as far as there may be more pods than wished for; then the old ones shrink, as far as enough pods
/// answer without them. Those that do not answer go first.
fn roll(limits: Limits, new: Count, old: &[Count]) -> (i64, Vec<i64>) {
    let Limits { wish, surge, missing } = limits;
    let mut told: Vec<i64> = old.iter().map(|set| set.told).collect();
    let total = new.told + told.iter().sum::<i64>();
    let room = (wish + surge - total).max(0);
    let grown = if new.told >= wish { wish } else { (new.told + room).min(wish) };
    if grown != new.told {
        return (grown, told);
    }
    let available_min = wish - missing;
    let mut broken = (total - available_min - (new.told - new.available)).max(0);
    let can_shrink = broken > 0;
    for (told, set) in told.iter_mut().zip(old) {
        let goes = (*told - set.available).clamp(0, broken);
        *told -= goes;
        broken -= goes;
    }
    let available = new.available + old.iter().map(|set| set.available).sum::<i64>();
    let mut spare = if can_shrink { (available - available_min).max(0) } else { 0 };
    for told in &mut told {
        let goes = spare.min(*told);
        *told -= goes;
        spare -= goes;
    }
    (grown, told)
}

fn create_set(workload: &Workload, key: &Key, deployment: &Deployment, hash: &str, replicas: i64) {
    // Both are parts of an object in the store, which is JSON.
    let mut selector: Value = serde_json::from_str(deployment.spec.selector.get()).unwrap_or_default();
    let mut template: Value = serde_json::from_str(deployment.spec.template.0.get()).unwrap_or_default();
    selector["matchLabels"][HASH] = hash.into();
    template["metadata"]["labels"][HASH] = hash.into();
    let set = json!({
        "metadata": {
            "labels": template["metadata"]["labels"],
            "ownerReferences": controlled_by("apps/v1", "Deployment", &key.name, &deployment.metadata.uid),
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    workload.create(REPLICA_SETS, &Key::new(&key.namespace, &format!("{}-{hash}", key.name)), set);
}

fn scale(workload: &Workload, set: &Key, from: i64, to: i64) {
    if from == to {
        return;
    }
    workload.change(REPLICA_SETS, set, |object| {
        object["spec"]["replicas"] = to.into();
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        object["metadata"]["generation"] = (generation + 1).into();
    });
}

fn write_status(workload: &Workload, key: &Key, deployment: &Deployment, new: Count, old: &[Count]) {
    let sum = |part: fn(&Count) -> i64| part(&new) + old.iter().map(part).sum::<i64>();
    let available = sum(|set| set.available);
    let status = DeploymentStatus {
        available_replicas: available,
        observed_generation: deployment.metadata.generation,
        ready_replicas: available,
        replicas: sum(|set| set.present),
        unavailable_replicas: (sum(|set| set.told) - available).max(0),
        updated_replicas: new.present,
    };
    if status == deployment.status {
        return;
    }
    let wish = deployment.spec.replicas;
    let enough = available >= wish;
    let complete = new.available >= wish && status.replicas == new.present;
    let now = workload.now();
    workload.change(DEPLOYMENTS, key, |object| {
        let conditions = object["status"]["conditions"].take();
        object["status"] = json!(status);
        object["status"]["conditions"] = if conditions.is_array() { conditions } else { json!([]) };
        let (is, reason, message) = if enough {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        set_condition(object, "Available", is, reason, message, now);
        let reason = if complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
        set_condition(object, "Progressing", "True", reason, "pods are replaced a few at a time", now);
    });
}

/// Brings a `ReplicaSet` to as many pods as it is told to have.
pub(super) fn sync_set(workload: &Workload, view: &mut View, key: &Key) {
    let Some(set) = view.replica_sets.get(key).filter(|set| set.metadata.deletion_timestamp.is_none()) else { return };
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

fn create_pod(workload: &Workload, key: &Key, set: &ReplicaSet) {
    let owner = controlled_by("apps/v1", "ReplicaSet", &key.name, &set.metadata.uid);
    let hash = set.metadata.labels.get(HASH).map(|hash| &**hash).unwrap_or_default();
    let object = pod::from_template(&set.spec.template, HASH, hash, owner);
    workload.create(PODS, &workload.free_pod_name(key, ""), object);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(told, available)` of the new set and of the old ones, before and after one step.
    fn check(limits: (i64, i64, i64), new: (i64, i64), old: &[(i64, i64)], expected: (i64, &[i64])) {
        let count = |(told, available): (i64, i64)| Count { told, present: told, available };
        let (wish, surge, missing) = limits;
        let old_counts: Vec<Count> = old.iter().copied().map(count).collect();
        let (told, old_told) = roll(Limits { wish, surge, missing }, count(new), &old_counts);
        assert_eq!((told, old_told.as_slice()), expected, "{limits:?} {new:?} {old:?}");
    }

    #[test]
    fn a_surge_grows_first_and_shrinks_only_what_is_not_missed() {
        let surge_one = (2, 1, 0);
        check(surge_one, (0, 0), &[(2, 2)], (1, &[2]));
        check(surge_one, (1, 0), &[(2, 2)], (1, &[2]));
        check(surge_one, (1, 1), &[(2, 2)], (1, &[1]));
        check(surge_one, (1, 1), &[(1, 1)], (2, &[1]));
        check(surge_one, (2, 2), &[(1, 1)], (2, &[0]));
        check(surge_one, (2, 2), &[(0, 0)], (2, &[0]));
    }

    #[test]
    fn what_does_not_answer_goes_first() {
        check((2, 1, 0), (1, 1), &[(1, 0), (1, 1)], (1, &[0, 1]));
        check((3, 0, 1), (0, 0), &[(3, 3)], (0, &[2]));
        check((3, 1, 1), (4, 0), &[], (3, &[]));
    }
}
