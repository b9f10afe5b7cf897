//! The YAML of an add-on, as objects that can be applied.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::name::AddonName;
use windlass_api::version::KubernetesVersion;

use super::error::{Cause, cut_name};
use super::{placement, yaml};

/// Manifests that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no YAML, or more of it than is read.
    #[error("they are no YAML")]
    Yaml(#[source] Cause),
    /// A document is no object of Kubernetes.
    #[error("document {number} has no {field}")]
    NoObject {
        /// Which document, from 1 on.
        number: usize,
        /// What it lacks.
        field: &'static str,
    },
    /// A document is several objects in one, which nobody would look into.
    #[error("document {number} is a {kind}; accepted are its items, each as a document of its own")]
    List {
        /// Which document, from 1 on.
        number: usize,
        /// Its kind.
        kind: String,
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
    /// Its pods could not be kept where their images are.
    #[error("document {number} is {object}, {why}")]
    Unsafe {
        /// Which document, from 1 on.
        number: usize,
        /// The object, as `Kind/name`.
        object: String,
        /// Why not, and what would be right.
        why: String,
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

/// The objects of an add-on, from a text with YAML documents, each bound to the nodes of the distribution where it runs pods.
/// Documents without content are passed over.
pub(super) fn objects(
    text: &str,
    addon: &AddonName,
    distribution: &KubernetesVersion,
) -> Result<Vec<Value>, ManifestError> {
    let documents: Vec<Value> = yaml::documents(text).map_err(ManifestError::Yaml)?;
    let mut seen = BTreeSet::new();
    let mut objects = Vec::new();
    for (number, mut object) in (1..).zip(documents) {
        if object.is_null() {
            continue;
        }
        let identity = identify(&mut object, number)?;
        let shown = cut_name(&format!("{}/{}", identity.kind, identity.name));
        if !seen.insert(identity) {
            return Err(ManifestError::Twice { number, object: shown });
        }
        placement::make_safe(&mut object, addon, distribution).map_err(|why| ManifestError::Unsafe {
            number,
            object: shown,
            why,
        })?;
        objects.push(object);
    }
    Ok(objects)
}

/// What tells an object of an add-on from the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

fn identify(object: &mut Value, number: usize) -> Result<Identity, ManifestError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let field = |pointer: &str, field| text(pointer).ok_or(ManifestError::NoObject { number, field });
    let api_version = field("/apiVersion", "apiVersion")?.to_owned();
    let kind = field("/kind", "kind")?.to_owned();
    if kind.ends_with("List") && object.get("items").is_some() {
        return Err(ManifestError::List { number, kind: cut_name(&kind) });
    }
    let name = field("/metadata/name", "metadata.name")?.to_owned();
    if kind == "Secret" && api_version == "v1" && object.get("data").or(object.get("stringData")).is_some() {
        return Err(ManifestError::Secret { number });
    }
    if NAMESPACED.contains(&kind.as_str()) && text("/metadata/namespace").is_none() {
        object["metadata"]["namespace"] = Value::from("default");
    }
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    Ok(Identity { api_version, kind, namespace, name })
}
