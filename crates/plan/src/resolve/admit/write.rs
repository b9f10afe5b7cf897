//! What was decided, written into the object as somebody sent it: fields that we do not know stay as they are.

use serde_json::{Map, Value, json};
use windlass_api::{annotation, label};

use super::Admitted;
use crate::resolve::cluster::{Resolved, ResolvedPart, VARIABLE};
use crate::resolve::query::Part;

impl Admitted {
    /// Writes it into a cluster, as it is on the wire.
    pub fn write(&self, object: &mut Value) {
        if let Some(resolved) = &self.resolved {
            object["metadata"]["labels"][label::RELEASE.name] = json!(resolved.release.as_str());
            write_topology(&mut object["spec"]["topology"], resolved);
        }
        if let Some(copy) = &self.copy {
            object["metadata"]["annotations"][annotation::RELEASE_COPY.name] = json!(copy);
        }
        if self.held.paused != (object["spec"]["paused"] == json!(true)) {
            object["spec"]["paused"] = json!(self.held.paused);
        }
        set(object, annotation::HELD_FOR_RELEASE.name, self.held.hold.as_deref());
        set(object, annotation::KEEP_PAUSED.name, self.held.keep.then_some(""));
    }
}

/// Sets an annotation, or takes it away. One that is there with any value is left as it is where none is meant.
fn set(object: &mut Value, key: &str, value: Option<&str>) {
    let annotations = &mut object["metadata"]["annotations"];
    match value {
        Some("") if annotations.get(key).is_some() => {}
        Some(text) => annotations[key] = json!(text),
        None => drop(annotations.as_object_mut().and_then(|annotations| annotations.remove(key))),
    }
}

fn write_topology(topology: &mut Value, resolved: &Resolved) {
    topology["version"] = json!(resolved.kubernetes.as_str());
    let Some(ResolvedPart { data: of_all, .. }) = resolved.parts.get(&Part::ControlPlane) else { return };
    put(&mut topology["variables"], of_all);
    if has_own(&topology["controlPlane"]) {
        put(&mut topology["controlPlane"]["variables"]["overrides"], of_all);
    }
    let pools = topology["workers"]["machineDeployments"].as_array_mut();
    for pool in pools.into_iter().flatten() {
        let name = pool["name"].as_str().and_then(|name| name.parse().ok());
        let Some(part) = name.and_then(|name| resolved.parts.get(&Part::Pool(name))) else { continue };
        // A pool that is told what all are told needs nothing of its own.
        if part.data != *of_all || has_own(pool) {
            put(&mut pool["variables"]["overrides"], &part.data);
        }
    }
    // What was only looked for is not to be there.
    prune(topology, "workers");
    prune(topology, "controlPlane");
}

fn has_own(part: &Value) -> bool {
    let overrides = part.get("variables").and_then(|variables| variables.get("overrides")?.as_array());
    overrides.is_some_and(|overrides| overrides.iter().any(|variable| variable["name"] == VARIABLE))
}

fn put(variables: &mut Value, data: &Map<String, Value>) {
    if !variables.is_array() {
        *variables = json!([]);
    }
    let Some(list) = variables.as_array_mut() else { return };
    match list.iter_mut().find(|variable| variable["name"] == VARIABLE) {
        Some(variable) => variable["value"] = json!(data),
        None => list.push(json!({"name": VARIABLE, "value": data})),
    }
}

fn prune(topology: &mut Value, part: &str) {
    let Some(object) = topology.as_object_mut() else { return };
    let is_empty = |value: &Value| value.is_null() || *value == json!({"machineDeployments": null});
    if object.get(part).is_some_and(is_empty) {
        object.remove(part);
    }
}
