//! The `DaemonSet` controller: one pod on each node that the template fits.
//!
//! Pods are bound as they are created, which is what the controller did itself before the scheduler took over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_apiserver::store::Key;

use super::seen::{DaemonSet, DaemonSetStatus, Node, Pod, PodSpec, Taint, Toleration};
use super::view::View;
use super::write::{DAEMON_SETS, PODS, controlled_by};
use super::{Workload, pod};

const HASH: &str = "controller-revision-hash";

/// What the controller lets its pods put up with, whatever their template says.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", Taint::NO_EXECUTE),
    ("node.kubernetes.io/unreachable", Taint::NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", Taint::NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", Taint::NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", Taint::NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", Taint::NO_SCHEDULE),
];

#[derive(Deserialize)]
struct TemplateSpec {
    #[serde(default)]
    spec: PodSpec,
}

/// Brings a set one step closer to what it should be.
pub(super) fn sync(workload: &Workload, view: &View, key: &Key) {
    let Some(set) = view.daemon_sets.get(key).filter(|set| !set.metadata.deleting()) else { return };
    let Ok(mut template) = serde_json::from_str::<TemplateSpec>(set.spec.template.0.get()) else { return };
    template.spec.tolerations.extend(TOLERATED.map(|(key, effect)| Toleration::of(key, effect)));
    let hash = set.spec.template.hash();
    let names = |is_so: &dyn Fn(&Node) -> bool| -> Vec<&str> {
        view.nodes.iter().filter(|(_, node)| is_so(node)).map(|(name, _)| &**name).collect()
    };
    let wanted = names(&|node| runs_on(&template.spec, node));
    let left_alone = names(&|node| stays_on(&template.spec, node));
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
    let misplaced = pods.iter().filter(|(node, _)| left_alone.binary_search(node).is_err()).flat_map(|(_, pods)| pods);
    // One pod for each node: of several, the first stays.
    let doubled = pods.iter().filter(|(node, _)| wanted.binary_search(node).is_ok()).flat_map(|(_, pods)| &pods[1..]);
    for (key, _) in misplaced.chain(doubled) {
        workload.delete_pod(key);
    }
    for key in outdated(set, &wanted, &pods, &hash) {
        workload.delete_pod(key);
    }
    if status != set.status {
        workload.change(DAEMON_SETS, key, |object| object["status"] = json!(status));
    }
}

/// Whether there should be a pod on a node.
fn runs_on(pod: &PodSpec, node: &Node) -> bool {
    pod.selects(node) && pod.kept_away_by(node, &[Taint::NO_SCHEDULE, Taint::NO_EXECUTE]).is_none()
}

/// Whether a pod may stay that is on a node: what only keeps others from coming does not drive it away.
fn stays_on(pod: &PodSpec, node: &Node) -> bool {
    pod.selects(node) && pod.kept_away_by(node, &[Taint::NO_EXECUTE]).is_none()
}

fn create(workload: &Workload, key: &Key, set: &DaemonSet, node: &str, hash: &str) {
    let now = workload.now();
    let owner = controlled_by("apps/v1", "DaemonSet", &key.name, &set.metadata.uid);
    let mut object = pod::from_template(&set.spec.template, owner);
    pod::label(&mut object, HASH, hash);
    tolerate(&mut object);
    pod::bind(&mut object, node, now);
    workload.create(PODS, &workload.free_pod_name(key, node), object);
}

fn tolerate(pod: &mut Value) {
    if !pod["spec"]["tolerations"].is_array() {
        pod["spec"]["tolerations"] = json!([]);
    }
    let Value::Array(tolerations) = &mut pod["spec"]["tolerations"] else { return };
    for (key, effect) in TOLERATED {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
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
