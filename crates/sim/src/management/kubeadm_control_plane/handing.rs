//! What machines take over from their control plane as they are, without being replaced: labels, annotations, time-outs, gates.

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Machine, ReadinessGate};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::label;

use super::machine::CLEANUP_HOLD;
use super::view::{Replica, View};
use crate::management::context::{Error, Turn};
use crate::management::{time_outs, write};

/// The conditions that must hold before a machine of a control plane is ready, besides those that people ask for.
const GATES: [&str; 5] = [
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
];

/// What must hold before a machine is ready.
pub(super) fn gates(object: &KubeadmControlPlane) -> Vec<ReadinessGate> {
    let own = GATES.map(|type_| ReadinessGate { condition_type: type_.to_owned(), polarity: None });
    let given = object.spec.machine_template.spec.readiness_gates.iter();
    let given = given.filter(|gate| !GATES.contains(&gate.condition_type.as_str()));
    own.into_iter().chain(given.cloned()).collect()
}

/// Hands on what has changed; to those that go, how long they may take. `true` if something had: the machines are then looked at
/// again.
pub(super) async fn on(turn: &Turn, view: &View<'_>) -> Result<bool, Error> {
    let mut changed = false;
    for replica in &view.replicas {
        let change = if replica.leaves() { change_on_the_way_out(view, replica) } else { change(view, replica) };
        if let Some(change) = change {
            write::patch(turn, &*replica.machine, change).await?;
            changed = true;
        }
    }
    Ok(changed)
}

fn change_on_the_way_out(view: &View<'_>, replica: &Replica) -> Option<Value> {
    time_out_change(view, replica).map(|change| json!({"spec": {"deletion": change}}))
}

fn time_out_change(view: &View<'_>, replica: &Replica) -> Option<Value> {
    let wanted = &view.object.spec.machine_template.spec.deletion;
    time_outs::change(replica.machine.spec.deletion.as_ref(), wanted.as_ref())
}

fn change(view: &View<'_>, replica: &Replica) -> Option<Value> {
    let Machine { metadata: meta, spec, .. } = &*replica.machine;
    let template = &view.object.spec.machine_template;
    let given = template.metadata.clone().unwrap_or_default();
    let mut labels = given.labels;
    labels.insert(label::CONTROL_PLANE_NAME.name.to_owned(), view.object.metadata.name.clone().unwrap_or_default());
    let mut annotations = given.annotations;
    // One that was taken over waits for its member of etcd to be removed, too.
    annotations.insert(CLEANUP_HOLD.to_owned(), String::new());
    let mut metadata = Map::new();
    for (part, known, wanted) in [("labels", &meta.labels, labels), ("annotations", &meta.annotations, annotations)] {
        let has = |key: &String, value: &String| known.as_ref().and_then(|all| all.get(key)) == Some(value);
        let missing: Map<String, Value> = wanted
            .iter()
            .filter(|(key, value)| !has(key, value))
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        if !missing.is_empty() {
            metadata.insert(part.to_owned(), Value::Object(missing));
        }
    }
    let mut fields = Map::new();
    let gates = gates(view.object);
    if spec.readiness_gates != gates {
        fields.insert("readinessGates".to_owned(), json!(gates));
    }
    if let Some(change) = time_out_change(view, replica) {
        fields.insert("deletion".to_owned(), change);
    }
    let parts = [("metadata", metadata), ("spec", fields)].into_iter().filter(|(_, fields)| !fields.is_empty());
    let change: Map<String, Value> = parts.map(|(part, fields)| (part.to_owned(), Value::Object(fields))).collect();
    (!change.is_empty()).then_some(Value::Object(change))
}
