//! Volumes that outlive pods.

use serde_json::{Value, json};

use crate::builtin::fill::{Fields, text, unset};

/// `PersistentVolume`.
pub(in crate::builtin) fn persistent_volume(object: &mut Value, old: Option<&Value>) {
    let created = object["metadata"]["creationTimestamp"].clone();
    let Some(fields) = object.as_object_mut() else { return };
    if old.is_none() {
        let mut status = json!({ "phase": "Pending" });
        if !created.is_null() {
            status["lastPhaseTransitionTime"] = created;
        }
        fields.insert("status".into(), status);
    }
}

/// `PersistentVolumeClaim`. What it is filled from has an old and a new field, which say the same.
pub(in crate::builtin) fn claim(object: &mut Value, _: Option<&Value>) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if unset(spec, "dataSourceRef") {
        copy_reference(spec, "dataSource", "dataSourceRef");
    } else if unset(spec, "dataSource")
        && spec.get("dataSourceRef").and_then(Value::as_object).is_some_and(|it| text(it, "namespace").is_empty())
    {
        copy_reference(spec, "dataSourceRef", "dataSource");
    }
}

fn copy_reference(spec: &mut Fields, from: &str, to: &str) {
    let Some(Value::Object(mut reference)) = spec.get(from).cloned() else { return };
    reference.remove("namespace");
    spec.insert(to.to_owned(), reference.into());
}
