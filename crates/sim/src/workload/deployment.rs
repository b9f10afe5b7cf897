//! The controller of `Deployment`s: pods are replaced by newer ones a few at a time, from one `ReplicaSet` to the next.

use serde_json::{Value, json};
use windlass_apiserver::store::Key;

use super::Workload;
use super::replica_set::{Count, count};
use super::seen::{Amount, Deployment, DeploymentStatus, ReplicaSet};
use super::view::View;
use super::write::{DEPLOYMENTS, REPLICA_SETS, controlled_by, set_condition};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

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
    if deployment.metadata.deleting() {
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
    let new_count = new.map(|(_, _, count)| count).unwrap_or_default();
    let (new_told, old_told) = if deployment.spec.paused {
        hold(deployment, new_count, &counts)
    } else {
        next(deployment, new_count, &counts)
    };
    let revision = 1 + old.iter().map(|(_, set, _)| set.metadata.annotations.revision()).max().unwrap_or(0);
    match new {
        // A template that is to wait is given no set.
        None if deployment.spec.paused => {}
        None => create_set(workload, key, deployment, &hash, new_told, revision),
        Some((key, set, count)) => {
            scale(workload, key, count.told, new_told);
            renumber(workload, key, set, revision);
        }
    }
    for ((set, _, count), told) in old.iter().zip(old_told) {
        scale(workload, set, count.told, told);
    }
    write_status(workload, key, deployment, new_count, &counts, revision);
}

/// A template that was replaced and comes back is the newest again.
fn renumber(workload: &Workload, key: &Key, set: &ReplicaSet, revision: i64) {
    if set.metadata.annotations.revision() < revision {
        workload.change(REPLICA_SETS, key, |object| {
            object["metadata"]["annotations"][REVISION] = revision.to_string().into();
        });
    }
}

/// While a `Deployment` is paused, nothing is replaced: if all pods are of one set, that set has as many as are wished for.
fn hold(deployment: &Deployment, new: Count, old: &[Count]) -> (i64, Vec<i64>) {
    let mut told: Vec<i64> = old.iter().map(|set| set.told).collect();
    let mut active = told.iter_mut().filter(|told| **told > 0);
    match (new.told > 0, active.next(), active.next()) {
        (false, Some(only), None) => *only = deployment.spec.replicas,
        (true, None, None) => return (deployment.spec.replicas, told),
        _ => {}
    }
    (new.told, told)
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

fn create_set(workload: &Workload, key: &Key, deployment: &Deployment, hash: &str, replicas: i64, revision: i64) {
    // Both are parts of an object in the store, which is JSON.
    let mut selector: Value = serde_json::from_str(deployment.spec.selector.get()).unwrap_or_default();
    let mut template: Value = serde_json::from_str(deployment.spec.template.0.get()).unwrap_or_default();
    selector["matchLabels"][HASH] = hash.into();
    template["metadata"]["labels"][HASH] = hash.into();
    let set = json!({
        "metadata": {
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string()},
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

fn write_status(workload: &Workload, key: &Key, deployment: &Deployment, new: Count, old: &[Count], revision: i64) {
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
        if deployment.spec.paused {
            set_condition(object, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now);
            return;
        }
        object["metadata"]["annotations"][REVISION] = revision.to_string().into();
        let reason = if complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
        set_condition(object, "Progressing", "True", reason, "pods are replaced a few at a time", now);
    });
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
