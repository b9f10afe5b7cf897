//! A machine of a set, with its parts cloned from templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::core::TypeMeta;
use serde_json::{Value, json};
use windlass_api::kind::ContractReference;
use windlass_api::kind::bootstrap::KubeadmConfigTemplate;
use windlass_api::kind::cluster_api::{Machine, MachineSet};
use windlass_api::{annotation, label};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use crate::management::context::{Error, Turn};
use crate::management::machine::FINALIZER;
use crate::management::ownership::{controlled_by, owned_by};
use crate::management::write;

/// Makes a machine: its configuration, its infrastructure, then itself, as Cluster API does. `false` if a template is missing.
pub(super) async fn machine(turn: &Turn, set: &MachineSet, name: &str) -> Result<bool, Error> {
    let mut spec = set.spec.template.spec.clone();
    if let Some(template) = &spec.bootstrap.config_ref {
        let Some(part) = part(turn, set, template, name).await? else { return Ok(false) };
        spec.bootstrap.config_ref = Some(part);
    }
    let Some(part) = part(turn, set, &spec.infrastructure_ref, name).await? else { return Ok(false) };
    spec.infrastructure_ref = part;

    let metadata = set.spec.template.metadata.clone().unwrap_or_default();
    let machine = Machine {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels(set)),
            annotations: (!metadata.annotations.is_empty()).then_some(metadata.annotations),
            owner_references: Some(vec![controlled_by(set)]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    };
    write::create(turn, &machine).await?;
    Ok(true)
}

/// The labels of a machine and of its parts.
fn labels(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.clone().unwrap_or_default();
    let own = [
        (label::CLUSTER_NAME.name, set.spec.cluster_name.clone()),
        (label::SET_NAME.name, set.metadata.name.clone().unwrap_or_default()),
    ];
    template.labels.into_iter().chain(own.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// Clones a part from its template, and says how to refer to it. `None` if there is no template.
async fn part(
    turn: &Turn,
    set: &MachineSet,
    reference: &ContractReference,
    name: &str,
) -> Result<Option<ContractReference>, Error> {
    let Some(template) = template(turn, &set.metadata, reference) else { return Ok(None) };
    let kind = reference.kind.trim_end_matches("Template");
    let version = template.types.as_ref().and_then(|types| types.api_version.rsplit_once('/'));
    let version = version.map_or("v1", |(_, version)| version);
    let kinds = ApiResource::from_gvk(&GroupVersionKind::gvk(&reference.api_group, version, kind));

    let given = &template.data["spec"]["template"];
    let texts = |of: &str| serde_json::from_value::<BTreeMap<String, String>>(given["metadata"][of].clone());
    let mut annotations = texts("annotations").unwrap_or_default();
    annotations.insert(annotation::CLONED_FROM_NAME.name.to_owned(), reference.name.clone());
    let group_kind = format!("{}.{}", reference.kind, reference.api_group);
    annotations.insert(annotation::CLONED_FROM_GROUP_KIND.name.to_owned(), group_kind);
    let clone = DynamicObject {
        types: Some(TypeMeta { api_version: kinds.api_version.clone(), kind: kinds.kind.clone() }),
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: set.metadata.namespace.clone(),
            labels: Some(texts("labels").unwrap_or_default().into_iter().chain(labels(set)).collect()),
            annotations: Some(annotations),
            owner_references: Some(vec![owned_by(set)]),
            ..ObjectMeta::default()
        },
        data: json!({"spec": spec(given)}),
    };
    create(turn, &kinds, &clone).await?;
    Ok(Some(ContractReference { api_group: reference.api_group.clone(), kind: kind.to_owned(), name: name.to_owned() }))
}

fn spec(template: &Value) -> &Value {
    &template["spec"]
}

/// The template that somebody refers to.
pub(super) fn template(turn: &Turn, meta: &ObjectMeta, reference: &ContractReference) -> Option<Arc<DynamicObject>> {
    let bootstrap = <KubeadmConfigTemplate as kube::Resource>::kind(&());
    let cache: &Cache<DynamicObject> = if reference.kind == bootstrap {
        &turn.caches.bootstrap_templates
    } else {
        &turn.caches.infrastructure_templates
    };
    cache.get(&Key { namespace: meta.namespace.clone(), name: reference.name.clone() })
}

/// Makes a part. One that is there was made by a try that did not come as far as the machine.
async fn create(turn: &Turn, kinds: &ApiResource, clone: &DynamicObject) -> Result<(), Error> {
    let namespace = clone.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(turn.client.clone(), namespace, kinds);
    match api.create(&PostParams::default(), clone).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(source) => {
            let object = format!("{} {namespace}/{}", kinds.kind, clone.metadata.name.as_deref().unwrap_or_default());
            Err(Error::Api { verb: "create", object, source: Box::new(source) })
        }
    }
}
