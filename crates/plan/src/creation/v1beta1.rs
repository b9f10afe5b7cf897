//! Clusters of a class in Cluster API's former version, told in the one that we write.
//!
//! Fields with another place or another unit are carried over; those whose meaning would have to be guessed are refused by name.

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::manifest::ManifestError;

/// Fields that have a place of their own in v1beta2, and a time in seconds.
const TIMES: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];

/// Fields of a part that mean something else in v1beta2.
const OTHER: [&str; 3] = ["machineHealthCheck", "strategy", "rolloutAfter"];

/// The same cluster in v1beta2.
pub(super) fn upgraded(mut cluster: Value) -> Result<Value, ManifestError> {
    cluster["apiVersion"] = json!("cluster.x-k8s.io/v1beta2");
    let Some(topology) = cluster.pointer_mut("/spec/topology").and_then(Value::as_object_mut) else {
        return Ok(cluster);
    };
    refuse(topology, "spec.topology", &["rolloutAfter"])?;
    let mut class = Map::new();
    for (old, new) in [("class", "name"), ("classNamespace", "namespace")] {
        if let Some(value) = topology.remove(old) {
            class.insert(new.to_owned(), value);
        }
    }
    if !class.is_empty() {
        topology.insert("classRef".to_owned(), Value::Object(class));
    }
    if let Some(part) = topology.get_mut("controlPlane").and_then(Value::as_object_mut) {
        upgrade_part(part, "spec.topology.controlPlane")?;
    }
    let Some(workers) = topology.get_mut("workers").and_then(Value::as_object_mut) else { return Ok(cluster) };
    refuse(workers, "spec.topology.workers", &["machinePools"])?;
    let pools = workers.get_mut("machineDeployments").and_then(Value::as_array_mut);
    for (position, pool) in pools.into_iter().flatten().enumerate() {
        if let Some(pool) = pool.as_object_mut() {
            upgrade_part(pool, &format!("spec.topology.workers.machineDeployments[{position}]"))?;
        }
    }
    Ok(cluster)
}

fn upgrade_part(part: &mut Map<String, Value>, path: &str) -> Result<(), ManifestError> {
    refuse(part, path, &OTHER)?;
    let mut deletion = Map::new();
    for (old, new) in TIMES {
        let Some(value) = part.remove(old) else { continue };
        let time = value.as_str().and_then(|text| text.parse::<SignedDuration>().ok());
        let Some(time) = time.filter(|time| !time.is_negative()) else {
            let accepted = "a time such as 10m".to_owned();
            return Err(ManifestError::Field { field: format!("{path}.{old}"), accepted });
        };
        deletion.insert(new.to_owned(), json!(time.as_secs()));
    }
    if !deletion.is_empty() {
        part.insert("deletion".to_owned(), Value::Object(deletion));
    }
    Ok(())
}

fn refuse(object: &Map<String, Value>, path: &str, fields: &[&str]) -> Result<(), ManifestError> {
    match fields.iter().find(|field| object.contains_key(**field)) {
        Some(field) => Err(ManifestError::Former { field: format!("{path}.{field}") }),
        None => Ok(()),
    }
}
