//! The parts of a machine, its configuration and its infrastructure: made for a set or for a control plane, from templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::core::TypeMeta;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::ContractReference;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use super::context::{Error, Turn};

/// Whose part it is, until its machine looks after it.
pub(super) struct Whose {
    pub namespace: Option<String>,
    /// The labels of the machine and of its parts.
    pub labels: BTreeMap<String, String>,
    pub owner: OwnerReference,
}

/// The template that an object refers to, in its own namespace. A reference to another kind leads nowhere.
pub(super) fn template(turn: &Turn, meta: &ObjectMeta, reference: &ContractReference) -> Option<Arc<DynamicObject>> {
    let (cache, _) = templates(turn, reference)?;
    cache.get(&Key { namespace: meta.namespace.clone(), name: reference.name.clone() })
}

/// The kind of the templates that a reference is to, and what was seen of them.
pub(super) fn templates<'t>(
    turn: &'t Turn,
    reference: &ContractReference,
) -> Option<(&'t Cache<DynamicObject>, ApiResource)> {
    let caches = &turn.caches;
    if reference.is_of::<KubeadmConfigTemplate>() {
        return Some((&caches.bootstrap_templates, ApiResource::erase::<KubeadmConfigTemplate>(&())));
    }
    if reference.is_of::<WCPMachineTemplate>() {
        return Some((&caches.infrastructure_templates, ApiResource::erase::<WCPMachineTemplate>(&())));
    }
    let origin = caches.others.templates_of(reference)?;
    Some((&origin.cache, origin.resource.clone()))
}

/// Clones a part from its template, and says how to refer to it.
pub(super) async fn cloned(
    turn: &Turn,
    whose: Whose,
    (reference, template): (&ContractReference, &DynamicObject),
    name: &str,
) -> Result<ContractReference, Error> {
    let version = template.types.as_ref().and_then(|types| types.api_version.rsplit_once('/'));
    let version = version.map_or("v1", |(_, version)| version);
    let kind = reference.kind.trim_end_matches("Template");
    let kinds = ApiResource::from_gvk(&GroupVersionKind::gvk(&reference.api_group, version, kind));

    let given = &template.data["spec"]["template"];
    let texts = |of: &str| serde_json::from_value::<BTreeMap<String, String>>(given["metadata"][of].clone());
    let mut annotations = texts("annotations").unwrap_or_default();
    annotations.insert(annotation::CLONED_FROM_NAME.name.to_owned(), reference.name.clone());
    let group_kind = format!("{}.{}", reference.kind, reference.api_group);
    annotations.insert(annotation::CLONED_FROM_GROUP_KIND.name.to_owned(), group_kind);
    let labels = texts("labels").unwrap_or_default().into_iter().chain(whose.labels).collect();
    let mut clone = of(Whose { labels, ..whose }, &kinds, name, &given["spec"]);
    clone.metadata.annotations = Some(annotations);
    create(turn, &kinds, &clone).await?;
    Ok(ContractReference { api_group: reference.api_group.clone(), kind: kind.to_owned(), name: name.to_owned() })
}

/// A part that says this.
pub(super) fn of(whose: Whose, kinds: &ApiResource, name: &str, spec: &Value) -> DynamicObject {
    DynamicObject {
        types: Some(TypeMeta { api_version: kinds.api_version.clone(), kind: kinds.kind.clone() }),
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: whose.namespace,
            labels: Some(whose.labels),
            owner_references: Some(vec![whose.owner]),
            ..ObjectMeta::default()
        },
        data: json!({"spec": spec}),
    }
}

/// Makes a part. `None` if it was made by a try that did not come as far as the machine.
pub(super) async fn create(
    turn: &Turn,
    kinds: &ApiResource,
    part: &DynamicObject,
) -> Result<Option<DynamicObject>, Error> {
    let namespace = part.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(turn.client.clone(), namespace, kinds);
    match api.create(&PostParams::default(), part).await {
        Ok(made) => Ok(Some(made)),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(None),
        Err(source) => {
            let object = format!("{} {namespace}/{}", kinds.kind, part.metadata.name.as_deref().unwrap_or_default());
            Err(Error::Api { verb: "create", object, source: Box::new(source) })
        }
    }
}
