//! Writes to the cluster's own API, each of which is for the object as it was read.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Error, Kapp};

/// A kind that kapp-controller writes.
pub(super) trait Written:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + Debug
{
}

impl<K> Written for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + Debug
{
}

impl Kapp {
    /// Replaces the status of an object, if it is another one.
    pub(super) async fn put_status<K: Written>(
        &self,
        object: &K,
        before: &impl Serialize,
        now: &impl Serialize,
    ) -> Result<(), Error> {
        let [before, now] = [serde_json::to_value(before), serde_json::to_value(now)].map(Result::unwrap_or_default);
        if before == now {
            return Ok(());
        }
        let patch = json!({"status": replacing(&before, now)});
        let (api, name, patch) = self.prepared(object, patch);
        let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        done(written, "change the status of", object)
    }

    /// Changes parts of an object.
    pub(super) async fn patch<K: Written>(&self, object: &K, patch: Value) -> Result<(), Error> {
        let (api, name, patch) = self.prepared(object, patch);
        done(api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await, "change", object)
    }

    /// Makes an object. One that is there already will be heard of.
    pub(super) async fn create<K: Written>(&self, object: &K) -> Result<(), Error> {
        done(self.api::<K>(object).create(&PostParams::default(), object).await, "create", object)
    }

    /// Deletes this object, and no later one of its name. One that is gone is fine.
    pub(super) async fn delete<K: Written>(&self, object: &K) -> Result<(), Error> {
        let preconditions = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        let name = object.meta().name.clone().unwrap_or_default();
        match self.api::<K>(object).delete(&name, &params).await {
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => Ok(()),
            deleted => done(deleted, "delete", object),
        }
    }

    /// Lets an object go, or keeps it from going.
    pub(super) async fn hold<K: Written>(&self, object: &K, finalizer: &str, hold: bool) -> Result<(), Error> {
        let known = object.meta().finalizers.clone().unwrap_or_default();
        if known.iter().any(|known| known == finalizer) == hold {
            return Ok(());
        }
        let mut finalizers: Vec<String> = known.into_iter().filter(|known| known != finalizer).collect();
        finalizers.extend(hold.then(|| finalizer.to_owned()));
        match self.patch(object, json!({"metadata": {"finalizers": finalizers}})).await {
            Err(error) if !hold && is_gone(&error) => Ok(()),
            changed => changed,
        }
    }

    fn prepared<K: Written>(&self, object: &K, mut patch: Value) -> (Api<K>, String, Value) {
        patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
        (self.api::<K>(object), object.meta().name.clone().unwrap_or_default(), patch)
    }

    fn api<K: Written>(&self, object: &K) -> Api<K> {
        Api::namespaced(self.client.clone(), object.meta().namespace.as_deref().unwrap_or_default())
    }
}

/// Whether this finalizer holds up the object's deletion.
pub(super) fn is_held<K: Written>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|known| known == finalizer)
}

fn is_gone(error: &Error) -> bool {
    matches!(&*error.source, kube::Error::Api(status) if status.reason == "NotFound")
}

fn done<K: Written, T>(written: Result<T, kube::Error>, verb: &'static str, object: &K) -> Result<(), Error> {
    let meta = object.meta();
    let path = [meta.namespace.as_deref(), meta.name.as_deref()].map(Option::unwrap_or_default).join("/");
    let refused = |source| Error { verb, object: format!("{} {path}", K::kind(&())), source: Box::new(source) };
    written.map(drop).map_err(refused)
}

/// A merge patch that leaves nothing of what was there before.
fn replacing(before: &Value, now: Value) -> Value {
    let (Value::Object(before), Value::Object(mut now)) = (before, now.clone()) else { return now };
    for (key, value) in before {
        let replaced = now.remove(key).map_or(Value::Null, |new| replacing(value, new));
        now.insert(key.clone(), replaced);
    }
    Value::Object(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_was_there_before() {
        let (before, now) = (json!({"a": {"b": 1, "c": 2}, "d": 3}), json!({"a": {"b": 4}, "e": [5]}));
        assert_eq!(replacing(&before, now), json!({"a": {"b": 4, "c": null}, "d": null, "e": [5]}));
    }
}
