//! The end of a namespace: everything in it goes first.

use serde_json::{Value, json};

use crate::kind::Kind;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Key, Range};
use crate::verb::delete::Deletion;

const NAMESPACES: &str = "namespaces";
/// What cannot fail here, and is said not to have failed all the same: type, reason, message.
const NO_FAILURES: [(&str, &str, &str); 3] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
];
const BY: &str = "system:serviceaccount:kube-system:namespace-controller";

impl ApiServer {
    /// Deletes what is in a namespace that is to go.
    pub(super) async fn empty_namespace(&self, resource: &str, key: &Key) -> Result<(), ApiError> {
        if resource != NAMESPACES {
            return Ok(());
        }
        let kinds: Vec<_> = self.registry().resources().filter(|kind| kind.namespaced).cloned().collect();
        for kind in kinds {
            let range = Range { namespace: Some(&key.name), after: None, limit: 0 };
            for entry in self.store().list(&kind.resource, range, |entry| !entry.deleting).entries {
                // One object that resists (a webhook refuses) must not save the others.
                if let Err(refusal) = self.delete_one(&kind, &entry.key, &Deletion::by_system(BY)).await {
                    tracing::debug!(key = %entry.key, %refusal, "an object resists the end of its namespace");
                }
            }
        }
        self.finish_namespace(&key.name).await
    }

    /// After an object is gone: was it the last one that kept its namespace?
    pub(super) async fn namespace_may_be_empty(&self, gone: &Key) -> Result<(), ApiError> {
        if gone.namespace.is_empty() {
            return Ok(());
        }
        match self.store().get(NAMESPACES, &Key::new("", &gone.namespace)) {
            Some(namespace) if namespace.deleting => self.finish_namespace(&gone.namespace).await,
            _ => Ok(()),
        }
    }

    async fn finish_namespace(&self, name: &str) -> Result<(), ApiError> {
        let Some((kind, entry)) = self.stored(NAMESPACES, &Key::new("", name)) else { return Ok(()) };
        let left = self.what_is_left(name);
        if left.is_empty() {
            let finalized = |namespace: &mut Value| {
                if let Some(list) = namespace["spec"]["finalizers"].as_array_mut() {
                    list.retain(|item| item != "kubernetes");
                }
            };
            return self.rewrite(&kind, &entry, finalized).await;
        }
        self.report_what_is_left(&kind, &entry, &left).await
    }

    /// What is still in a namespace: (resource, objects, how many of them wait for which finalizers).
    fn what_is_left(&self, name: &str) -> Vec<(String, Vec<std::sync::Arc<Entry>>)> {
        let registry = self.registry();
        let range = Range { namespace: Some(name), after: None, limit: 0 };
        let resources = registry.resources().filter(|kind| kind.namespaced);
        resources
            .map(|kind| (kind.resource.to_string(), self.store().list(&kind.resource, range, |_| true).entries))
            .filter(|(_, entries)| !entries.is_empty())
            .collect()
    }

    async fn report_what_is_left(
        &self,
        kind: &Kind,
        entry: &Entry,
        left: &[(String, Vec<std::sync::Arc<Entry>>)],
    ) -> Result<(), ApiError> {
        let mut finalizers = std::collections::BTreeMap::<String, usize>::new();
        for entry in left.iter().flat_map(|(_, entries)| entries) {
            let object = entry.look();
            for finalizer in object["metadata"]["finalizers"].as_array().into_iter().flatten() {
                *finalizers.entry(finalizer.as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        let remaining: Vec<String> = left
            .iter()
            .map(|(resource, entries)| format!("{resource}. has {} resource instances", entries.len()))
            .collect();
        let waiting: Vec<String> =
            finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
        let now = crate::time::format(self.now());
        let condition = |type_: &str, status: &str, reason: &str, message: String| json!({"type": type_, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
        let mut conditions: Vec<Value> = NO_FAILURES
            .iter()
            .map(|(type_, reason, message)| condition(type_, "False", reason, (*message).to_owned()))
            .collect();
        let message = format!("Some resources are remaining: {}", remaining.join(", "));
        conditions.push(condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", message));
        if !waiting.is_empty() {
            let message = format!("Some content in the namespace has finalizers remaining: {}", waiting.join(", "));
            conditions.push(condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message));
        }
        self.rewrite(kind, entry, |namespace| {
            let same = |a: &Value, b: &Value| a["type"] == b["type"] && a["message"] == b["message"];
            let known = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if known.len() != conditions.len() || !known.iter().zip(&conditions).all(|(a, b)| same(a, b)) {
                namespace["status"]["conditions"] = Value::Array(conditions.clone());
            }
        })
        .await
    }
}
