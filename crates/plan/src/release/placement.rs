//! Where and when the pods of an add-on may run.
//!
//! An image of a container is on the disks of machines of one distribution, and there is no registry to get it from
//! elsewhere. So a pod may only ever start on a node of the distribution that it comes with, and an old pod may only go when
//! a new one runs, or when its node goes.
//!
//! | kind | what is done to it |
//! |---|---|
//! | `DaemonSet` | *bound*: one for each distribution, with a name, a selector and a node selector of its own, and `OnDelete` |
//! | `Deployment` | one for all: its new pods wait for new nodes, and the old ones run until then (surge 1, unavailable 0) |
//! | `StatefulSet` | one for all, `OnDelete`: a pod moves to a new node when its old node goes, never before |
//! | `Job` | bound by name, for its template cannot be changed; it runs on the nodes of its distribution |
//! | `CronJob` | one for all: its next run is on a node of the new distribution |
//! | `Pod`, `ReplicaSet`, `ReplicationController` | refused: a drained one would not come back, or not from the new template |
//!
//! With one `DaemonSet` for all, `OnDelete` would keep the pods that run, but a pod lost on an old node would come back from the
//! new template, without an image.

use serde_json::{Map, Value, json};
use windlass_api::label;
use windlass_api::name::{AddonName, ObjectName};
use windlass_api::version::KubernetesVersion;

use super::error::{Cause, quoted};

/// The name of a Job is also the value of a label on its pods.
const JOB_NAME_MAX: usize = 63;

const POD_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
const NODE_SELECTOR: [&str; 4] = ["spec", "template", "spec", "nodeSelector"];

/// Labels an object as ours, and binds what runs pods to the nodes of its distribution; or says why that cannot be done, and
/// what could be done with instead.
pub(super) fn make_safe(object: &mut Value, addon: &AddonName, distribution: &KubernetesVersion) -> Result<(), String> {
    let (key, value) = label::ADDON.entry(addon);
    set(object, &["metadata", "labels"], &key, value.into())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    match (api_version.as_str(), kind.as_str()) {
        ("apps/v1", "DaemonSet") => bind_daemon_set(object, distribution),
        ("apps/v1", "Deployment") => hold_deployment(object, distribution),
        ("apps/v1", "StatefulSet") => hold_stateful_set(object, distribution),
        ("batch/v1", "Job") => bind_job(object, distribution),
        ("batch/v1" | "batch/v1beta1", "CronJob") => hold_cron_job(object, distribution),
        ("v1", "Pod" | "ReplicationController") | ("apps/v1", "ReplicaSet") => Err(format!(
            "and a {kind} is not brought to new nodes; accepted are DaemonSet, Deployment, StatefulSet, Job and CronJob"
        )),
        (_, "DaemonSet" | "Deployment" | "StatefulSet" | "ReplicaSet") if matches!(group, "apps" | "extensions") => {
            Err(format!("whose apiVersion is {}; accepted is \"apps/v1\"", quoted(&api_version)))
        }
        (_, "Job" | "CronJob") if group == "batch" => {
            Err(format!("whose apiVersion is {}; accepted is \"batch/v1\"", quoted(&api_version)))
        }
        _ => Ok(()),
    }
}

/// A `DaemonSet` of one distribution only.
fn bind_daemon_set(object: &mut Value, distribution: &KubernetesVersion) -> Result<(), String> {
    bind(object, distribution, None)?;
    let (key, value) = label::DISTRIBUTION_VERSION.entry(distribution);
    set(object, &["spec", "selector", "matchLabels"], &key, value.into())?;
    set(object, &["spec"], "updateStrategy", json!({ "type": "OnDelete" }))
}

/// A Job of one distribution only. Its selector is made by Kubernetes.
fn bind_job(object: &mut Value, distribution: &KubernetesVersion) -> Result<(), String> {
    bind(object, distribution, Some(JOB_NAME_MAX))
}

/// Gives the distribution to name, labels, pods and node selector of an object.
fn bind(object: &mut Value, distribution: &KubernetesVersion, name_max: Option<usize>) -> Result<(), String> {
    let (key, value) = label::DISTRIBUTION_VERSION.entry(distribution);
    let name = format!("{}-{}", object["metadata"]["name"].as_str().unwrap_or_default(), distribution.label());
    if let Err(error) = ObjectName::new(&name) {
        return Err(format!("which cannot have the distribution in its name: {}", Cause::new(&error)));
    }
    if let Some(max) = name_max.filter(|max| name.len() > *max) {
        let spare = max.saturating_sub(distribution.label().to_string().len() + 1);
        return Err(format!("whose name is too long with the distribution behind it; accepted are {spare} characters"));
    }
    object["metadata"]["name"] = name.into();
    for place in [&["metadata", "labels"][..], &POD_LABELS, &NODE_SELECTOR] {
        set(object, place, &key, value.as_str().into())?;
    }
    Ok(())
}

/// A `Deployment` that keeps its old pods until new ones run, on nodes of the distribution.
fn hold_deployment(object: &mut Value, distribution: &KubernetesVersion) -> Result<(), String> {
    select_nodes(object, &NODE_SELECTOR, distribution)?;
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } });
    set(object, &["spec"], "strategy", strategy)
}

/// A `StatefulSet` that keeps each pod for as long as its node is there. It would stop a pod before it starts the next, so a
/// rolling update of it could not wait for new nodes.
fn hold_stateful_set(object: &mut Value, distribution: &KubernetesVersion) -> Result<(), String> {
    select_nodes(object, &NODE_SELECTOR, distribution)?;
    set(object, &["spec"], "updateStrategy", json!({ "type": "OnDelete" }))
}

/// A `CronJob` whose runs are on nodes of the distribution.
fn hold_cron_job(object: &mut Value, distribution: &KubernetesVersion) -> Result<(), String> {
    let place = ["spec", "jobTemplate", "spec", "template", "spec", "nodeSelector"];
    select_nodes(object, &place, distribution)
}

fn select_nodes(object: &mut Value, place: &[&str], distribution: &KubernetesVersion) -> Result<(), String> {
    let (key, value) = label::DISTRIBUTION_VERSION.entry(distribution);
    set(object, place, &key, value.into())
}

/// Sets a field of the object at a path, making what is missing on the way. What is there and is no mapping is not ours to
/// throw away.
fn set(object: &mut Value, path: &[&str], key: &str, value: Value) -> Result<(), String> {
    let mut place = object;
    for (depth, part) in (1..).zip(path) {
        let next = place.as_object_mut().map(|fields| fields.entry(*part).or_insert(Value::Null));
        let Some(next) = next else { return Err(no_mapping(path, depth - 1)) };
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        if !next.is_object() {
            return Err(no_mapping(path, depth));
        }
        place = next;
    }
    place[key] = value;
    Ok(())
}

fn no_mapping(path: &[&str], depth: usize) -> String {
    format!("whose {} is no mapping", path.iter().take(depth).copied().collect::<Vec<_>>().join("."))
}
