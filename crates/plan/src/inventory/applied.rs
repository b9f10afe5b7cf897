//! The record of what Windlass has applied to a workload cluster: a `ConfigMap` in that cluster.
//!
//! What is on it and no part of the release any more is removed; what is not on it never is, whoever it looks like. An object
//! is put on record before it is applied, and taken off when it is gone, so that whatever is interrupted is found again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::name::{AddonName, Uid};

use crate::step::Revision;

/// The namespace of the record.
pub const NAMESPACE: &str = "kube-system";
/// Its name.
pub const NAME: &str = "windlass-addons";
/// The key of its data with the objects, as JSON.
pub const KEY: &str = "objects";

/// The record, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedAddons {
    /// Which state of it was seen.
    pub revision: Revision,
    /// What is on it. One that cannot be read has nothing on it: what is not known to be ours is not removed.
    pub objects: BTreeSet<AppliedObject>,
}

/// An object that was applied, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedObject {
    /// The add-on that it is of.
    pub addon: AddonName,
    /// The version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// What tells it from a later object of that name; `None` until it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
}

impl AppliedObject {
    /// An object of an add-on, which nobody has seen yet.
    pub fn of(addon: &AddonName, object: &Value) -> Self {
        let text = |of: Option<&Value>, field: &str| of?.get(field)?.as_str().map(str::to_owned);
        let (object, metadata) = (Some(object), object.get("metadata"));
        Self {
            addon: addon.clone(),
            api_version: text(object, "apiVersion").unwrap_or_default(),
            kind: text(object, "kind").unwrap_or_default(),
            namespace: text(metadata, "namespace"),
            name: text(metadata, "name").unwrap_or_default(),
            uid: None,
        }
    }

    /// Whether it has the kind, namespace and name of an object. Versions of a kind are views of the same objects.
    pub fn is(&self, object: &Value) -> bool {
        let metadata = object.get("metadata");
        let text = |field: &str| metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str);
        text("name") == Some(self.name.as_str())
            && object.get("kind").and_then(Value::as_str) == Some(self.kind.as_str())
            && text("namespace") == self.namespace.as_deref()
    }
}

/// What is on a record, from the text under its key.
pub fn read(text: &str) -> serde_json::Result<BTreeSet<AppliedObject>> {
    serde_json::from_str(text)
}

/// The record with these objects on it: one on a line.
pub fn render(objects: &BTreeSet<AppliedObject>) -> Value {
    let lines: Vec<String> = objects.iter().map(|object| json!(object).to_string()).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {KEY: format!("[\n{}\n]\n", lines.join(",\n"))},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let addon = AddonName::new("pvcsi").unwrap();
        let role =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}});
        let settings =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "kube-system"}});
        let mut seen = AppliedObject::of(&addon, &settings);
        seen.uid = Some(Uid::new("uid").unwrap());
        let objects = BTreeSet::from([AppliedObject::of(&addon, &role), seen]);
        let written = render(&objects);
        let text = written["data"][KEY].as_str().unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert_eq!(read(text).unwrap(), objects);
        assert_eq!(read(render(&BTreeSet::new())["data"][KEY].as_str().unwrap()).unwrap(), BTreeSet::new());
    }

    #[test]
    fn an_object_is_told_by_kind_namespace_and_name() {
        let addon = AddonName::new("pvcsi").unwrap();
        let object = |version: &str, namespace: Value, name: &str| {
            json!({"apiVersion": version, "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": namespace}})
        };
        let entry = AppliedObject::of(&addon, &object("policy/v1beta1", json!("a"), "b"));
        assert!(entry.is(&object("policy/v1", json!("a"), "b")));
        assert!(!entry.is(&object("policy/v1", json!("c"), "b")));
        assert!(!entry.is(&object("policy/v1", Value::Null, "b")));
        assert!(!entry.is(&object("policy/v1", json!("a"), "c")));
    }
}
