//! Which set is what its deployment should become, and what sets take over from their deployment.
//!
//! A change of what machines are made from makes another set. What does not touch the machine itself (labels, annotations, how
//! its removal waits, when it can be relied on) is handed on to the sets that are there, and rolls nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{
    LabelSelector, MachineDeployment, MachineSet, MachineSetSpec, MachineSpec, MachineTemplate,
};
use windlass_api::kind::wcp::TemplateMetadata;
use windlass_api::label;
use windlass_runtime::chance::Seed;
use windlass_runtime::runner::Outcome;

use super::rollout::Strategy;
use super::{difference, limits, marks};
use crate::management::context::{Error, Turn, after, deleting};
use crate::management::machine_set::{self, numbered};
use crate::management::ownership::controlled_by;
use crate::management::{time_outs, write};

/// The annotations of a deployment that its sets do not get.
const NOT_HANDED_ON: [&str; 4] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    annotation::POOL_REVISION.name,
    annotation::POOL_DESIRED_REPLICAS.name,
    annotation::POOL_MAX_REPLICAS.name,
];

/// What a change of makes other machines of: all but what is handed on.
fn rolled_fields(spec: &MachineSpec) -> MachineSpec {
    MachineSpec {
        min_ready_seconds: None,
        deletion: None,
        readiness_gates: Vec::new(),
        taints: Vec::new(),
        ..spec.clone()
    }
}

/// Since when machines are to be replaced for their age alone, if that has come.
fn rollout_after(turn: &Turn, deployment: &MachineDeployment) -> Option<Timestamp> {
    asked_for_after(deployment).filter(|after| *after <= turn.clock.now())
}

/// In whole seconds, as objects say when they were made: what is made in that second is not too old.
fn asked_for_after(deployment: &MachineDeployment) -> Option<Timestamp> {
    let after: Timestamp = deployment.spec.rollout.as_ref()?.after.as_ref()?.parse().ok()?;
    Timestamp::from_second(after.as_second()).ok()
}

/// Whether a set may not be what its deployment should become any more.
pub(in crate::management) fn has_moved_on(deployment: &MachineDeployment, set: &MachineSet) -> bool {
    asked_for_after(deployment).is_some() || !is_alike(deployment, set)
}

fn is_alike(deployment: &MachineDeployment, set: &MachineSet) -> bool {
    rolled_fields(&set.spec.template.spec) == rolled_fields(&deployment.spec.template.spec)
}

/// When the deployment has to be looked at again although nothing changes.
pub(super) fn next_look(turn: &Turn, deployment: &MachineDeployment) -> Outcome {
    let due = asked_for_after(deployment).and_then(|due| turn.remaining(due, std::time::Duration::ZERO));
    due.map_or_else(Outcome::done, |due| after(Some(due)))
}

/// Whether a set is what its deployment should become.
pub(in crate::management) fn is_current(turn: &Turn, deployment: &MachineDeployment, set: &MachineSet) -> bool {
    let made = set.metadata.creation_timestamp.as_ref().map(|at| at.0);
    let too_old = rollout_after(turn, deployment).is_some_and(|after| made.is_some_and(|made| made < after));
    is_alike(deployment, set) && !too_old && !deleting(&set.metadata)
}

/// The set that the deployment should become; of several the oldest.
pub(super) fn new_set<'a>(
    turn: &Turn,
    deployment: &MachineDeployment,
    sets: &'a [Arc<MachineSet>],
) -> Option<&'a Arc<MachineSet>> {
    sets.iter().find(|set| is_current(turn, deployment, set))
}

fn revision_of(set: &MachineSet) -> u64 {
    let annotations = set.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(annotation::POOL_REVISION.name)?.parse().ok()).unwrap_or(0)
}

/// The number of the state that the deployment should be in: one more than that of any other set.
pub(super) fn next(turn: &Turn, deployment: &MachineDeployment, sets: &[Arc<MachineSet>]) -> u64 {
    let new = new_set(turn, deployment, sets);
    if new.is_none() && deployment.spec.paused == Some(true) {
        return sets.iter().map(|set| revision_of(set)).max().unwrap_or(0);
    }
    let name = new.and_then(|set| set.metadata.name.as_ref());
    let others = sets.iter().filter(|set| set.metadata.name.as_ref() != name || name.is_none());
    let highest = others.map(|set| revision_of(set)).max().unwrap_or(0);
    new.map_or(0, |set| revision_of(set)).max(highest + 1)
}

/// Which state of the deployment a new set is from: a hash in decimal, as it ends a name. It is another one for machines that
/// are only replaced for their age.
fn template_hash(turn: &Turn, deployment: &MachineDeployment) -> String {
    // A template has been read, so it can be written.
    let mut text = serde_json::to_string(&rolled_fields(&deployment.spec.template.spec)).unwrap_or_default();
    if let Some(after) = rollout_after(turn, deployment) {
        text.push_str(&after.to_string());
    }
    (Seed(0).child(&text).0 >> 32).to_string()
}

/// Makes the set that the deployment should become.
pub(super) async fn create(
    turn: &Turn,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
    replicas: u32,
) -> Result<(), Error> {
    let (meta, spec) = (&deployment.metadata, &deployment.spec);
    let hash = template_hash(turn, deployment);
    let mut selector = spec.selector.match_labels.clone();
    selector.insert(label::TEMPLATE_HASH.name.to_owned(), hash.clone());
    let mut annotations = annotations(deployment);
    annotations.insert(annotation::POOL_REVISION.name.to_owned(), next(turn, deployment, sets).to_string());
    let metadata = template_metadata(deployment, &hash);
    let set = MachineSet {
        metadata: ObjectMeta {
            name: Some(numbered(meta.name.as_deref().unwrap_or_default(), &hash)?),
            namespace: meta.namespace.clone(),
            labels: Some(metadata.labels.clone()),
            annotations: Some(annotations),
            owner_references: Some(vec![controlled_by(deployment)]),
            finalizers: Some(vec![machine_set::FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: MachineSetSpec {
            cluster_name: spec.cluster_name.clone(),
            replicas: Some(replicas),
            selector: LabelSelector { match_labels: selector },
            template: MachineTemplate { metadata: Some(metadata), spec: spec.template.spec.clone() },
            deletion: spec.deletion.clone(),
        },
        status: None,
    };
    write::create(turn, &set).await.map(drop)
}

/// The annotations that a set has from its deployment.
fn annotations(deployment: &MachineDeployment) -> BTreeMap<String, String> {
    let own = deployment.metadata.annotations.iter().flatten();
    let mut annotations: BTreeMap<String, String> = own
        .filter(|(key, _)| !NOT_HANDED_ON.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let limits = limits(deployment);
    annotations.insert(annotation::POOL_DESIRED_REPLICAS.name.to_owned(), limits.replicas.to_string());
    annotations.insert(annotation::POOL_MAX_REPLICAS.name.to_owned(), limits.most().to_string());
    annotations
}

/// The labels and annotations of the machines of a set.
fn template_metadata(deployment: &MachineDeployment, hash: &str) -> TemplateMetadata {
    let mut metadata = deployment.spec.template.metadata.clone().unwrap_or_default();
    metadata.labels.extend(marks(deployment, hash));
    metadata
}

/// What a set has to be changed by: its size, and what it takes over from its deployment.
pub(super) fn change(
    turn: &Turn,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
    set: &MachineSet,
    size: u32,
) -> Option<Value> {
    let mut wanted = annotations(deployment);
    let mut metadata = Map::new();
    let mut spec = handed_on(deployment, set);
    let current = is_current(turn, deployment, set);
    if !current && limits(deployment).strategy == Strategy::OnDelete {
        // Before the deployment could say how many are left, the set would have made again what somebody deleted.
        wanted.insert(annotation::DISABLE_MACHINE_CREATE.name.to_owned(), "true".to_owned());
    }
    if current {
        wanted.insert(annotation::POOL_REVISION.name.to_owned(), next(turn, deployment, sets).to_string());
        let template = template_change(deployment, set);
        if !template.is_empty() {
            spec.entry("template").or_insert_with(|| json!({}))["metadata"] = Value::Object(template);
        }
    }
    let known = set.metadata.annotations.clone().unwrap_or_default();
    let mut annotations = difference(&known, &wanted, true);
    // Of the annotations that are not wanted any more, these alone decide anything.
    for key in [annotation::SKIP_PREFLIGHT_CHECKS.name, annotation::DISABLE_MACHINE_CREATE.name] {
        if known.contains_key(key) && !wanted.contains_key(key) {
            annotations.insert(key.to_owned(), Value::Null);
        }
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), Value::Object(annotations));
    }
    if set.spec.replicas != Some(size) {
        spec.insert("replicas".into(), json!(size));
    }
    let parts = [("metadata", metadata), ("spec", spec)].into_iter().filter(|(_, fields)| !fields.is_empty());
    let change: Map<String, Value> = parts.map(|(part, fields)| (part.to_owned(), Value::Object(fields))).collect();
    (!change.is_empty()).then_some(Value::Object(change))
}

/// What is handed on to all sets, new and old: how machines go, and when they can be relied on.
fn handed_on(deployment: &MachineDeployment, set: &MachineSet) -> Map<String, Value> {
    let mut spec = Map::new();
    if set.spec.deletion != deployment.spec.deletion {
        spec.insert("deletion".into(), json!(deployment.spec.deletion));
    }
    let (known, wanted) = (&set.spec.template.spec, &deployment.spec.template.spec);
    let mut template = Map::new();
    if let Some(change) = time_outs::change(known.deletion.as_ref(), wanted.deletion.as_ref()) {
        template.insert("deletion".into(), change);
    }
    if known.min_ready_seconds != wanted.min_ready_seconds {
        template.insert("minReadySeconds".into(), json!(wanted.min_ready_seconds));
    }
    if known.readiness_gates != wanted.readiness_gates {
        template.insert("readinessGates".into(), json!(wanted.readiness_gates));
    }
    if known.taints != wanted.taints {
        template.insert("taints".into(), json!(wanted.taints));
    }
    if !template.is_empty() {
        spec.insert("template".into(), json!({ "spec": template }));
    }
    spec
}

/// What the labels and annotations of a set's machines have to be changed by.
fn template_change(deployment: &MachineDeployment, set: &MachineSet) -> Map<String, Value> {
    let known = set.spec.template.metadata.clone().unwrap_or_default();
    let hash = set.metadata.labels.as_ref().and_then(|labels| labels.get(label::TEMPLATE_HASH.name));
    let wanted = template_metadata(deployment, hash.map_or("", String::as_str));
    let parts = [
        ("labels", difference(&known.labels, &wanted.labels, false)),
        ("annotations", difference(&known.annotations, &wanted.annotations, false)),
    ];
    let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
    parts.map(|(part, texts)| (part.to_owned(), Value::Object(texts))).collect()
}
