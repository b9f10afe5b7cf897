//! The controller of `ClusterClass`es: looks whether a class can be used, and has its templates go with it.

use std::sync::Arc;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::{ClusterClass, ClusterClassStatus, TemplateReference, Topology};
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use super::{Refusal, blueprint, references};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, deleting, path};
use crate::management::ownership::{owned_by, with_owner};
use crate::management::{pause, write};

/// The class of a Cluster.
pub(super) fn of(turn: &Turn, cluster: &Cluster, topology: &Topology) -> Result<Arc<ClusterClass>, Refusal> {
    let reference = &topology.class_ref;
    let namespace = reference.namespace.clone().or_else(|| cluster.metadata.namespace.clone());
    let title = format!("{}/{}", namespace.as_deref().unwrap_or_default(), reference.name);
    let found = turn.caches.cluster_classes.get(&Key { namespace, name: reference.name.clone() });
    found.ok_or_else(|| Refusal(format!("failed to get ClusterClass {title}: not found")))
}

/// Looks at a class.
pub(in crate::management) async fn reconcile(turn: &Turn, class: &ClusterClass) -> Result<Outcome, Error> {
    if let Some(outcome) = pause::held(turn, class, None).await? {
        return Ok(outcome);
    }
    if deleting(&class.metadata) {
        return Ok(Outcome::done());
    }
    let mut missing = Vec::new();
    for reference in references(&class.spec) {
        if !adopt(turn, class, reference).await? {
            missing.push(format!("{} {}", reference.kind, reference.name));
        }
    }
    let mut status = ClusterClassStatus {
        // A class that refers to what is not there has not been reconciled.
        observed_generation: if missing.is_empty() {
            class.metadata.generation
        } else {
            class.status.as_ref().and_then(|status| status.observed_generation)
        },
        variables: class
            .spec
            .variables
            .iter()
            .map(|variable| {
                json!({"name": variable.name, "definitions": [{
                    "from": "inline", "required": variable.required.unwrap_or_default(), "schema": variable.schema,
                }]})
            })
            .collect(),
        conditions: class.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
    };
    let up_to_date = if missing.is_empty() {
        Fact::yes("RefVersionsUpToDate", "RefVersionsUpToDate")
    } else {
        Fact::no("RefVersionsUpToDate", "InternalError", format!("not found: {}", missing.join(", ")))
    };
    for fact in [Fact::yes("VariablesReady", "VariablesReady"), up_to_date] {
        conditions::set(&mut status.conditions, fact, class.metadata.generation, &turn.now());
    }
    if class.status.as_ref() != Some(&status) {
        write::status(turn, class, &status).await?;
    }
    Ok(Outcome::done())
}

/// Has a template go with its class. `false` if there is none.
async fn adopt(turn: &Turn, class: &ClusterClass, reference: &TemplateReference) -> Result<bool, Error> {
    let Some(cache) = blueprint::cache(&turn.caches, &reference.kind) else { return Ok(false) };
    let key = Key { namespace: class.metadata.namespace.clone(), name: reference.name.clone() };
    let Some(template) = cache.get(&key) else { return Ok(false) };
    let Some(owners) = with_owner(&template.metadata, owned_by(class)) else { return Ok(true) };
    let (group, version) = reference.api_version.rsplit_once('/').unwrap_or(("", &reference.api_version));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &reference.kind));
    let namespace = template.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(turn.client.clone(), namespace, &kind);
    let revision = &template.metadata.resource_version;
    let change = json!({"metadata": {"ownerReferences": owners, "resourceVersion": revision}});
    let written = api.patch(&reference.name, &PatchParams::default(), &Patch::Merge(&change)).await;
    let written = written.map_err(|source| Error::Api {
        verb: "change",
        object: format!("{} {}", reference.kind, path(&template.metadata)),
        source: Box::new(source),
    })?;
    turn.wrote(cache, &written);
    Ok(true)
}
