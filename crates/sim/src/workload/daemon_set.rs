//! The `DaemonSet` controller: one pod on each node that the template fits.
//!
//! Pods are bound as they are created, which is what the controller did itself before the scheduler took over.

use std::collections::BTreeMap;

use serde::Deserialize;
use windlass_apiserver::store::Key;

use super::seen::{DaemonSet, DaemonSetStatus, Node, Pod, PodSpec};
use super::view::View;
use super::write::{DAEMON_SETS, PODS, controlled_by};
use super::{Workload, pod};

const HASH: &str = "controller-revision-hash";

#[derive(Deserialize)]
struct TemplateSpec {
    #[serde(default)]
    spec: PodSpec,
}

/// Brings a set one step closer to what it should be.
pub(super) fn sync(workload: &Workload, view: &View, key: &Key) {
    let Some(set) = view.daemon_sets.get(key).filter(|set| set.metadata.deletion_timestamp.is_none()) else { return };
    let Ok(template) = serde_json::from_str::<TemplateSpec>(set.spec.template.0.get()) else { return };
    let hash = set.spec.template.hash();
    let fits = |node: &Node| template.spec.fits(node);
    let wanted: Vec<&str> = view.nodes.iter().filter(|(_, node)| fits(node)).map(|(name, _)| &**name).collect();
    let mut pods: BTreeMap<&str, Vec<(&Key, &Pod)>> = BTreeMap::new();
    for (key, pod) in view.pods_of(&set.metadata.uid).filter(|(_, pod)| pod.active()) {
        pods.entry(pod.spec.node_name.as_deref().unwrap_or_default()).or_default().push((key, pod));
    }
    let missing: Vec<&str> = wanted.iter().filter(|node| !pods.contains_key(**node)).copied().collect();
    for node in &missing {
        create(workload, key, set, node, &hash);
    }
    let mut status = status(set, &wanted, &pods, &hash);
    // Those are there now: one write of the status less.
    let created = i64::try_from(missing.len()).unwrap_or(i64::MAX);
    status.current_number_scheduled += created;
    status.updated_number_scheduled += created;
    let misplaced = pods.iter().filter(|(node, _)| wanted.binary_search(node).is_err()).flat_map(|(_, pods)| pods);
    // One pod for each node: of several, the first stays.
    let doubled = pods.iter().filter(|(node, _)| wanted.binary_search(node).is_ok()).flat_map(|(_, pods)| &pods[1..]);
    for (key, _) in misplaced.chain(doubled) {
        workload.delete_pod(key);
    }
    for key in outdated(set, &wanted, &pods, &hash) {
        workload.delete_pod(key);
    }
    if status != set.status {
        workload.change(DAEMON_SETS, key, |object| object["status"] = serde_json::json!(status));
    }
}

fn create(workload: &Workload, key: &Key, set: &DaemonSet, node: &str, hash: &str) {
    let now = workload.now();
    let owner = controlled_by("apps/v1", "DaemonSet", &key.name, &set.metadata.uid);
    let mut object = pod::from_template(&set.spec.template, HASH, hash, owner);
    pod::bind(&mut object, node, now);
    workload.create(PODS, &workload.free_pod_name(key, node), object);
}

/// The pods that make way for newer ones now: as many as may be missing, less those that are.
fn outdated<'a>(
    set: &DaemonSet,
    wanted: &[&str],
    pods: &BTreeMap<&str, Vec<(&'a Key, &'a Pod)>>,
    hash: &str,
) -> Vec<&'a Key> {
    if &*set.spec.update_strategy.type_ == "OnDelete" {
        return Vec::new();
    }
    let total = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    let missing_max = &set.spec.update_strategy.rolling_update.max_unavailable;
    let missing_max = missing_max.as_ref().map_or(1, |amount| amount.of_rounded_up(total)).max(1);
    let first = |node: &&str| pods.get(*node).and_then(|pods| pods.first()).copied();
    let ready = wanted.iter().filter_map(first).filter(|(_, pod)| pod.ready()).count();
    let missing = wanted.len().saturating_sub(ready);
    let budget = usize::try_from(missing_max).unwrap_or_default().saturating_sub(missing);
    let old = || {
        wanted.iter().filter_map(first).filter(|(_, pod)| pod.metadata.labels.get(HASH).is_none_or(|h| **h != *hash))
    };
    // One that is not ready is not missed.
    let broken = old().filter(|(_, pod)| !pod.ready());
    broken.chain(old().filter(|(_, pod)| pod.ready()).take(budget)).map(|(key, _)| key).collect()
}

fn status(set: &DaemonSet, wanted: &[&str], pods: &BTreeMap<&str, Vec<(&Key, &Pod)>>, hash: &str) -> DaemonSetStatus {
    let count = |keep: &dyn Fn(&Pod) -> bool| {
        let placed = wanted.iter().filter_map(|node| pods.get(node)?.first());
        i64::try_from(placed.filter(|(_, pod)| keep(pod)).count()).unwrap_or(i64::MAX)
    };
    let desired = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    let ready = count(&Pod::ready);
    DaemonSetStatus {
        current_number_scheduled: count(&|_| true),
        desired_number_scheduled: desired,
        number_available: ready,
        number_misscheduled: i64::try_from(pods.keys().filter(|node| wanted.binary_search(node).is_err()).count())
            .unwrap_or(i64::MAX),
        number_ready: ready,
        number_unavailable: desired - ready,
        observed_generation: set.metadata.generation,
        updated_number_scheduled: count(&|pod| pod.metadata.labels.get(HASH).is_some_and(|found| **found == *hash)),
    }
}
