//! Kinds that come and go with their CustomResourceDefinitions.

use serde_json::{Value, json};

use super::garbage::{has_finalizer, remove_finalizer};
use super::{CUSTOM_RESOURCE_DEFINITIONS, Task};
use crate::crd;
use crate::kind::{Registry, store_name};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Key, Range};
use crate::verb::delete::Deletion;

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
const BY: &str = "system:apiserver";

impl ApiServer {
    /// Serves a definition's versions, and says so in its status.
    pub(super) async fn define(&self, key: &Key) -> Result<(), ApiError> {
        let Some((kind, entry)) = self.stored(CUSTOM_RESOURCE_DEFINITIONS, key) else { return Ok(()) };
        let object = entry.to_value(&kind.api_version, &kind.kind);
        if !entry.deleting {
            let now = self.now();
            let own =
                (object["spec"]["group"].as_str().unwrap_or_default(), object["spec"]["names"]["plural"].as_str());
            let registry = self.registry();
            let taken = |name: &str| name_taken(&registry, own.0, own.1.unwrap_or_default(), name);
            self.rewrite(&kind, &entry, |definition| crd::accept(definition, &taken, now)).await?;
        }
        let Some((_, entry)) = self.stored(CUSTOM_RESOURCE_DEFINITIONS, key) else { return Ok(()) };
        let object = entry.to_value(&kind.api_version, &kind.kind);
        if established(&object) {
            self.change_registry(|registry| registry.define(&object));
        }
        Ok(())
    }

    /// Serves what the definitions define that are there, as it was served before; and looks at each again.
    pub(crate) fn redefine(&self) {
        let everywhere = Range { namespace: None, after: None, limit: 0 };
        for entry in self.store().list(CUSTOM_RESOURCE_DEFINITIONS, everywhere, |_| true).entries {
            let object = entry.to_value("apiextensions.k8s.io/v1", "CustomResourceDefinition");
            if established(&object) {
                self.change_registry(|registry| registry.define(&object));
            } else {
                self.queue().push(Task::Defined(entry.key.clone()));
            }
        }
    }

    /// Serves no longer what a definition defined.
    pub(super) fn undefine(&self, key: &Key) {
        let Some((plural, group)) = key.name.split_once('.') else { return };
        self.withdraw_kind(group, plural);
    }

    /// Serves a kind that no object defines, as an API server of another version has it built in: the definition that one
    /// would write for it, established.
    pub fn serve_kind(&self, definition: &Value) {
        self.change_registry(|registry| registry.define(definition));
    }

    /// Serves such a kind no longer. Its objects stay in the store, where nobody sees them.
    pub fn withdraw_kind(&self, group: &str, plural: &str) {
        self.change_registry(|registry| registry.remove(group, plural));
        self.store().close(&store_name(plural, group));
    }

    /// Deletes the objects of a definition that is to go.
    pub(super) async fn delete_instances(&self, resource: &str, key: &Key) -> Result<(), ApiError> {
        if resource != CUSTOM_RESOURCE_DEFINITIONS {
            return Ok(());
        }
        let Some((plural, group)) = key.name.split_once('.') else { return Ok(()) };
        let defined = store_name(plural, group);
        if let Some(kind) = self.registry().stored(&defined).cloned() {
            let everywhere = Range { namespace: None, after: None, limit: 0 };
            for entry in self.store().list(&defined, everywhere, |entry| !entry.deleting).entries {
                if let Err(refusal) = self.delete_one(&kind, &entry.key, &Deletion::by_system(BY)).await {
                    tracing::debug!(key = %entry.key, %refusal, "an object resists the end of its kind");
                }
            }
        }
        self.definition_may_go(&defined).await
    }

    /// After an object is gone: was it the last one of a kind whose definition is to go?
    pub(super) async fn definition_may_go(&self, resource: &str) -> Result<(), ApiError> {
        if resource == CUSTOM_RESOURCE_DEFINITIONS {
            return Ok(());
        }
        let Some((kind, entry)) = self.stored(CUSTOM_RESOURCE_DEFINITIONS, &Key::new("", resource)) else {
            return Ok(());
        };
        if !entry.deleting || self.store().count(resource) > 0 {
            return Ok(());
        }
        if !has_finalizer(&entry.look(), CLEANUP) {
            return Ok(());
        }
        self.rewrite(&kind, &entry, |definition| remove_finalizer(definition, CLEANUP)).await
    }
}

/// Whether another resource of the group uses a name.
fn name_taken(registry: &Registry, group: &str, own_plural: &str, name: &str) -> bool {
    registry.resources().filter(|kind| kind.group == group && kind.plural != own_plural).any(|kind| {
        kind.plural == name
            || kind.singular == name
            || kind.kind == name
            || kind.list_kind == name
            || kind.short_names.iter().any(|short| short == name)
    })
}

fn established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.is_some_and(|list| list.iter().any(|c| c["type"] == "Established" && c["status"] == "True"))
}

/// Marks a definition that is to go: it stays until its objects are gone.
pub(crate) fn mark_definition(definition: &mut Value, now: &str) {
    let finalizers = &mut definition["metadata"]["finalizers"];
    if !finalizers.is_array() {
        *finalizers = json!([]);
    }
    if let Some(list) = finalizers.as_array_mut().filter(|list| !list.iter().any(|item| item == CLEANUP)) {
        list.push(CLEANUP.into());
    }
    let condition = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now, "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    match definition["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => definition["status"]["conditions"] = json!([condition]),
    }
}
