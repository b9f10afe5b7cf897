//! Workloads: labels by which a job knows its pods, and the count of a `DaemonSet`'s templates.

use serde_json::Value;

use crate::builtin::default::workload::TEMPLATE_GENERATION;
use crate::builtin::fill::{Fields, child_or_new, fill, zero};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// `Job`. Unless its user takes care of the selector, the job's uid tells its pods from all others.
pub(in crate::builtin) fn job(object: &mut Value, old: Option<&Value>) {
    let (name, uid) = (object["metadata"]["name"].clone(), object["metadata"]["uid"].clone());
    let Some(fields) = object.as_object_mut() else { return };
    let Some(spec) = child_or_new(fields, "spec") else { return };
    if old.is_none() && spec.get("manualSelector").and_then(Value::as_bool) != Some(true) {
        if let Some(labels) = template_labels(spec) {
            fill_label(labels, "job-name", &name);
            fill_label(labels, "batch.kubernetes.io/job-name", &name);
            fill_label(labels, "controller-uid", &uid);
            fill_label(labels, CONTROLLER_UID, &uid);
        }
        let selector = child_or_new(spec, "selector").and_then(|selector| child_or_new(selector, "matchLabels"));
        if let Some(labels) = selector {
            fill_label(labels, CONTROLLER_UID, &uid);
        }
    }
    // A job without labels has those of its pods.
    let labels = template_labels(spec).cloned().unwrap_or_default();
    if let Some(metadata) = child_or_new(fields, "metadata")
        && zero(metadata, "labels")
        && !labels.is_empty()
    {
        metadata.insert("labels".into(), labels.into());
    }
}

fn template_labels(spec: &mut Fields) -> Option<&mut Fields> {
    let template = child_or_new(spec, "template")?;
    child_or_new(child_or_new(template, "metadata")?, "labels")
}

fn fill_label(labels: &mut Fields, name: &str, value: &Value) {
    fill(labels, name, value.clone());
}

/// `DaemonSet`. An annotation counts the changes of the template.
pub(in crate::builtin) fn daemon_set(object: &mut Value, old: Option<&Value>) {
    let generation = |object: &Value| -> i64 {
        let count = object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    };
    let count = match old {
        None => generation(object).max(1),
        Some(old) => {
            let changed = old["spec"]["template"] != object["spec"]["template"];
            generation(old).saturating_add(i64::from(changed))
        }
    };
    let metadata = object.as_object_mut().and_then(|fields| child_or_new(fields, "metadata"));
    if let Some(annotations) = metadata.and_then(|metadata| child_or_new(metadata, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
    }
}
