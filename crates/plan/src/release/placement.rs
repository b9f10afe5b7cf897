//! Where and when the pods of an add-on may run.
//!
//! An image of a container is on the disks of machines of one distribution, and there is no registry to get it from
//! elsewhere. So a pod may only ever start on a node of the distribution that it comes with, and an old pod may only go when
//! a new one runs.
//!
//! A `DaemonSet` is *bound* to its distribution: there is one for each, with a name, a selector and a node selector of its
//! own. With one for all, `OnDelete` would keep the pods that run, but a pod lost on an old node would come back from the new
//! template. A `Deployment` stays one object: its new pods wait for new nodes, and the old ones run until then.

use serde_json::{Map, Value, json};
use windlass_api::label;
use windlass_api::name::AddonName;
use windlass_api::version::KubernetesVersion;

/// Labels an object as ours, and binds what runs pods to the nodes of its distribution.
pub(super) fn make_safe(object: &mut Value, addon: &AddonName, distribution: &KubernetesVersion) {
    let (key, value) = label::ADDON.entry(addon);
    set(object, &["metadata", "labels"], &key, value.into());
    match (object["apiVersion"].as_str(), object["kind"].as_str()) {
        (Some("apps/v1"), Some("DaemonSet")) => bind(object, distribution),
        (Some("apps/v1"), Some("Deployment")) => hold(object, distribution),
        _ => {}
    }
}

/// A `DaemonSet` of one distribution only.
fn bind(object: &mut Value, distribution: &KubernetesVersion) {
    let (key, value) = label::DISTRIBUTION_VERSION.entry(distribution);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    object["metadata"]["name"] = format!("{name}-{}", distribution.label()).into();
    for place in [
        &["metadata", "labels"][..],
        &["spec", "selector", "matchLabels"],
        &["spec", "template", "metadata", "labels"],
        &["spec", "template", "spec", "nodeSelector"],
    ] {
        set(object, place, &key, value.as_str().into());
    }
    set(object, &["spec"], "updateStrategy", json!({ "type": "OnDelete" }));
}

/// A `Deployment` that keeps its old pods until new ones run, on nodes of the distribution.
fn hold(object: &mut Value, distribution: &KubernetesVersion) {
    let (key, value) = label::DISTRIBUTION_VERSION.entry(distribution);
    set(object, &["spec", "template", "spec", "nodeSelector"], &key, value.into());
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } });
    set(object, &["spec"], "strategy", strategy);
}

/// Sets a field of the object at a path, making what is missing on the way.
fn set(object: &mut Value, path: &[&str], key: &str, value: Value) {
    let mut place = object;
    for part in path {
        if !place[*part].is_object() {
            place[*part] = Value::Object(Map::new());
        }
        place = &mut place[*part];
    }
    place[key] = value;
}
