//! The YAML of an add-on, as objects that can be applied.

use std::collections::BTreeSet;

use serde_json::Value;

/// Manifests that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no YAML.
    #[error("they are no YAML")]
    Yaml(#[source] Box<serde_saphyr::Error>),
    /// A document is no object of Kubernetes.
    #[error("document {number} has no {field}")]
    NoObject {
        /// Which document, from 1 on.
        number: usize,
        /// What it lacks.
        field: &'static str,
    },
    /// A Secret would be in plans, reviews and logs.
    #[error("document {number} is a Secret with data, and annotations are read by many")]
    Secret {
        /// Which document, from 1 on.
        number: usize,
    },
    /// Two documents are the same object.
    #[error("document {number} is {object} once more")]
    Twice {
        /// Which document, from 1 on.
        number: usize,
        /// The object, as `Kind/name`.
        object: String,
    },
}

/// The built-in kinds that are always in a namespace; `kubectl` puts them into `default` where they name none.
const NAMESPACED: [&str; 12] = [
    "ConfigMap",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

/// The objects of a text with YAML documents. Documents without content are passed over.
pub(super) fn objects(text: &str) -> Result<Vec<Value>, ManifestError> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|source| ManifestError::Yaml(Box::new(source)))?;
    let mut seen = BTreeSet::new();
    let mut objects = Vec::new();
    for (number, mut object) in (1..).zip(documents) {
        if object.is_null() {
            continue;
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let field = |pointer: &str, field| text(pointer).ok_or(ManifestError::NoObject { number, field });
        let api_version = field("/apiVersion", "apiVersion")?.to_owned();
        let kind = field("/kind", "kind")?.to_owned();
        let name = field("/metadata/name", "metadata.name")?.to_owned();
        if kind == "Secret" && api_version == "v1" && (object.get("data").or(object.get("stringData"))).is_some() {
            return Err(ManifestError::Secret { number });
        }
        if NAMESPACED.contains(&kind.as_str()) && text("/metadata/namespace").is_none() {
            object["metadata"]["namespace"] = Value::from("default");
        }
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        if !seen.insert((api_version, kind.clone(), namespace, name.clone())) {
            return Err(ManifestError::Twice { number, object: format!("{kind}/{name}") });
        }
        objects.push(object);
    }
    Ok(objects)
}
