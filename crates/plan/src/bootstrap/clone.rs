//! What values are made of, copied for one cluster: Secrets and objects beside the template of a release.

use serde_json::{Value, json};
use windlass_api::kind::release::{BootstrapPackage, BootstrapPackages, ProviderReference, ValuesFrom};
use windlass_api::label;
use windlass_api::name::{NamespacedName, PackageChild, PackageName, PackagePart};

use super::listed::slots;
use super::step::{Object, Write};
use super::{Blocked, SYSTEM_NAMESPACE, Subject};
use crate::step::Revision;

/// The type of Secrets with values.
const SECRET_TYPE: &str = "clusterbootstrap-secret";
/// How fields of values end that refer to another object in the same namespace.
const LOCAL_REFERENCE: &str = "LocalObjRef";

/// An object that values are made of, in whichever namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Its group; none for a Secret.
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// A Secret.
    pub fn secret(name: &str) -> Self {
        Self { api_group: String::new(), kind: "Secret".to_owned(), name: name.to_owned() }
    }

    /// Whether it is a Secret.
    pub fn is_secret(&self) -> bool {
        self.api_group.is_empty() && self.kind == "Secret"
    }

    fn provider(provider: &ProviderReference) -> Self {
        let ProviderReference { api_group, kind, name } = provider.clone();
        Self { api_group, kind, name }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// Something beside a template that a cluster gets a copy of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyOrder {
    /// What is copied.
    pub from: Reference,
    /// The name of the copy.
    pub to: String,
    /// The package that it is for, as its label has it.
    pub package: String,
}

/// What the values of a package are made of.
pub fn reference(values: &ValuesFrom) -> Option<Reference> {
    match (&values.secret_ref, &values.provider_ref) {
        (Some(secret), _) => Some(Reference::secret(secret)),
        (None, Some(provider)) => Some(Reference::provider(provider)),
        (None, None) => None,
    }
}

/// What the values of all packages are made of, with the field that says so.
pub fn references(packages: &BootstrapPackages) -> Vec<(String, Reference)> {
    let of = |(slot, package): (crate::release::PackageSlot, &BootstrapPackage)| {
        let reference = reference(package.values_from.as_ref()?)?;
        let field = if reference.is_secret() { "secretRef" } else { "providerRef" };
        Some((format!("{}.valuesFrom.{field}", slot.field()), reference))
    };
    slots(packages).into_iter().filter_map(of).collect()
}

/// A package of a template as a cluster has it: with values of its own, and the order to copy them.
pub(super) fn adopted(
    cluster: &Subject,
    field: &str,
    package: &BootstrapPackage,
) -> Result<(BootstrapPackage, Option<CopyOrder>), Blocked> {
    let Some(from) = package.values_from.as_ref().and_then(reference) else { return Ok((package.clone(), None)) };
    let wrong = |why: String| Blocked::Unreadable { field: format!("{field}.refName"), why };
    let name: PackageName = package.ref_name.parse().map_err(|error| wrong(format!("{error}")))?;
    let child = PackageChild { cluster: &cluster.name, package: &name.ref_name, part: PackagePart::Values };
    let to = child.name().to_string();
    let values = ValuesFrom {
        inline: None,
        secret_ref: from.is_secret().then(|| to.clone()),
        provider_ref: (!from.is_secret()).then(|| ProviderReference {
            api_group: from.api_group.clone(),
            kind: from.kind.clone(),
            name: to.clone(),
        }),
    };
    let own = BootstrapPackage { ref_name: package.ref_name.clone(), values_from: Some(values) };
    Ok((own, Some(CopyOrder { from, to, package: name.label() })))
}

/// Objects that are named inside of values, by fields that end so. They keep their names.
pub fn local_references(spec: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(spec, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<Reference>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key.ends_with(LOCAL_REFERENCE)
                    && let (Some(kind), Some(name)) = (value["kind"].as_str(), value["name"].as_str())
                {
                    let api_group = value["apiGroup"].as_str().unwrap_or_default().to_owned();
                    found.push(Reference { api_group, kind: kind.to_owned(), name: name.to_owned() });
                }
                collect(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// The write that makes a copy, or makes one that is there the cluster's own; nothing if it is that already.
///
/// What is in a copy that is there is left alone: it may be what somebody prepared for this cluster.
pub fn copy_of(cluster: &Subject, order: &CopyOrder, source: &Value, existing: Option<&Value>) -> Option<Write> {
    let namespace = cluster.namespace.to_string();
    let labels = json!({
        (label::PACKAGE_CLUSTER_NAME.name): cluster.name.as_str(), (label::PACKAGE_NAME.name): order.package,
    });
    let owner = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "name": cluster.name.as_str(), "uid": cluster.revision.uid.as_str(),
    });
    let metadata = json!({"name": order.to, "namespace": namespace, "labels": labels, "ownerReferences": [owner]});
    let api_version = source["apiVersion"].as_str().unwrap_or("v1").to_owned();
    let Some(existing) = existing else {
        if order.from.is_secret() {
            let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": SECRET_TYPE});
            let from = format!("{SYSTEM_NAMESPACE}/{}", order.from.name);
            // A name that was read from an API is one.
            return from.parse::<NamespacedName>().ok().map(|from| Write::CopySecret { from, object });
        }
        let spec = source["spec"].clone();
        let object = json!({"apiVersion": api_version, "kind": order.from.kind, "metadata": metadata, "spec": spec});
        return Some(Write::Create { object });
    };
    let mut patch = json!({});
    let lacks_label = |(key, value): (&String, &Value)| existing["labels"][key] != *value;
    if labels.as_object().is_some_and(|labels| labels.iter().any(lacks_label)) {
        patch["labels"] = labels;
    }
    if let Some(owners) = with_owner(existing, owner) {
        patch["ownerReferences"] = owners;
    }
    let object =
        Object { api_version, kind: order.from.kind.clone(), namespace: Some(namespace), name: order.to.clone() };
    let expect = revision(existing)?;
    (patch != json!({})).then(|| Write::Patch { object, patch: json!({"metadata": patch}), expect })
}

/// The owners of an object with one more; nothing if that is one of them.
pub(super) fn with_owner(metadata: &Value, owner: Value) -> Option<Value> {
    let known = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    let is_known = known.iter().any(|known| known["uid"] == owner["uid"]);
    (!is_known).then(|| known.into_iter().chain([owner]).collect())
}

/// Which state of an object its metadata is of.
pub(crate) fn revision(metadata: &Value) -> Option<Revision> {
    let uid = windlass_api::name::Uid::new(metadata["uid"].as_str()?).ok()?;
    Some(Revision { uid, resource_version: metadata["resourceVersion"].as_str()?.to_owned() })
}
