//! Namespaces, service accounts and priority classes.

use serde_json::{Value, json};

use crate::builtin::default::cluster::label_with_name;
use crate::builtin::fill::{child_or_new, each, fill};

/// The finalizer that keeps a namespace until it is empty.
const KUBERNETES: &str = "kubernetes";

/// `Namespace`. The finalizers in its spec are not for users; only the `finalize` subresource changes them.
pub(in crate::builtin) fn namespace(object: &mut Value, old: Option<&Value>) {
    label_with_name(object);
    let Some(fields) = object.as_object_mut() else { return };
    if old.is_none() {
        fields.insert("status".into(), json!({ "phase": "Active" }));
    }
    let Some(spec) = child_or_new(fields, "spec") else { return };
    match old {
        None => {
            fill(spec, "finalizers", json!([]));
            if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers")
                && !finalizers.iter().any(|finalizer| finalizer == KUBERNETES)
            {
                finalizers.push(KUBERNETES.into());
            }
        }
        Some(old) => match old["spec"].get("finalizers") {
            Some(kept) => drop(spec.insert("finalizers".into(), kept.clone())),
            None => drop(spec.remove("finalizers")),
        },
    }
}

/// `ServiceAccount`. Of a secret only the name counts.
pub(in crate::builtin) fn service_account(object: &mut Value, _: Option<&Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    each(fields, "secrets", |secret| secret.retain(|name, _| name == "name"));
}

/// `PriorityClass`. It has a generation that never moves.
pub(in crate::builtin) fn priority_class(object: &mut Value, old: Option<&Value>) {
    let generation = old.map_or(Value::from(1), |old| old["metadata"]["generation"].clone());
    let metadata = object.as_object_mut().and_then(|fields| child_or_new(fields, "metadata"));
    if let Some(metadata) = metadata
        && !generation.is_null()
    {
        metadata.insert("generation".into(), generation);
    }
}

/// `Node`. Where its kubelet gets settings from is no longer for the API to say.
pub(in crate::builtin) fn node(object: &mut Value, old: Option<&Value>) {
    let had = old.is_some_and(|old| !old["spec"]["configSource"].is_null());
    if !had && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("configSource");
    }
}
