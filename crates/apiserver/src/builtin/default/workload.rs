//! Workloads that keep running.

use serde_json::Value;

use super::{conditions, pod, resources, spec_of, storage};
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_zero, text, zero};

/// How many old revisions are kept.
const REVISIONS: i64 = 10;
/// How long a deployment may make no progress.
const PROGRESS_SECONDS: i64 = 600;
/// Where a `DaemonSet` counts the changes of its template.
pub(in crate::builtin) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Deployment.
pub(in crate::builtin) fn deployment(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill(spec, "replicas", 1);
    rolling_update(spec, "strategy", &"25%".into(), &"25%".into());
    fill(spec, "revisionHistoryLimit", REVISIONS);
    fill(spec, "progressDeadlineSeconds", PROGRESS_SECONDS);
    pod::template(spec);
    if let Some(status) = status_of(object) {
        conditions(status, &["lastUpdateTime", "lastTransitionTime"]);
    }
}

/// `ReplicaSet`.
pub(in crate::builtin) fn replica_set(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill(spec, "replicas", 1);
    pod::template(spec);
    if let Some(status) = status_of(object) {
        fill(status, "replicas", 0);
        conditions(status, &["lastTransitionTime"]);
    }
}

/// `ReplicationController`, the ancestor of `ReplicaSet`: it takes its selector and its labels from its pods.
pub(in crate::builtin) fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        if let Some(spec) = spec_of(object) {
            fill(spec, "selector", labels.clone());
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            fill(metadata, "labels", labels);
        }
    }
    replica_set(object);
}

/// `DaemonSet`.
pub(in crate::builtin) fn daemon_set(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    rolling_update(spec, "updateStrategy", &1.into(), &0.into());
    fill(spec, "revisionHistoryLimit", REVISIONS);
    pod::template(spec);
    if let Some(status) = status_of(object) {
        for count in ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"] {
            fill(status, count, 0);
        }
        conditions(status, &["lastTransitionTime"]);
    }
    let metadata = object.as_object_mut().and_then(|fields| child_or_new(fields, "metadata"));
    if let Some(annotations) = metadata.and_then(|metadata| child_or_new(metadata, "annotations")) {
        fill(annotations, TEMPLATE_GENERATION, "0");
    }
}

/// `StatefulSet`.
pub(in crate::builtin) fn stateful_set(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill_zero(spec, "podManagementPolicy", "OrderedReady");
    fill(spec, "serviceName", "");
    if let Some(strategy) = child_or_new(spec, "updateStrategy") {
        if zero(strategy, "type") {
            strategy.insert("type".into(), "RollingUpdate".into());
            child_or_new(strategy, "rollingUpdate");
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = child(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(retention) = child_or_new(spec, "persistentVolumeClaimRetentionPolicy") {
        fill_zero(retention, "whenDeleted", "Retain");
        fill_zero(retention, "whenScaled", "Retain");
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", REVISIONS);
    pod::template(spec);
    each(spec, "volumeClaimTemplates", claim_template);
    if let Some(status) = status_of(object) {
        fill(status, "replicas", 0);
        fill(status, "availableReplicas", 0);
        conditions(status, &["lastTransitionTime"]);
    }
}

/// A claim inside a `StatefulSet` is a whole object, status and all.
fn claim_template(claim: &mut Fields) {
    fill_zero(claim, "kind", "PersistentVolumeClaim");
    fill_zero(claim, "apiVersion", "v1");
    child_or_new(claim, "metadata");
    if let Some(spec) = child_or_new(claim, "spec") {
        storage::claim_spec(spec);
    }
    if let Some(status) = child_or_new(claim, "status") {
        fill_zero(status, "phase", "Pending");
        resources::amounts(status, "capacity");
    }
}

/// `ControllerRevision`.
pub(in crate::builtin) fn controller_revision(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fill(fields, "revision", 0);
    }
}

/// A strategy that replaces pods a few at a time, unless another was chosen.
fn rolling_update(spec: &mut Fields, name: &str, unavailable: &Value, surge: &Value) {
    let Some(strategy) = child_or_new(spec, name) else { return };
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = child_or_new(strategy, "rollingUpdate")
    {
        fill(rolling, "maxUnavailable", unavailable.clone());
        fill(rolling, "maxSurge", surge.clone());
    }
}

fn status_of(object: &mut Value) -> Option<&mut Fields> {
    object.get_mut("status").and_then(Value::as_object_mut)
}
