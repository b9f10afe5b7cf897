//! Objects of a package, put into a cluster as kapp does it: labelled as the App's, recorded in a `ConfigMap`, those that all
//! others need first, and those that are no longer in the package removed.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::kind::packaging::App;
use windlass_apiserver::kind::Kind;
use windlass_apiserver::store::{Entry, Key};
use windlass_runtime::chance::Seed;

use super::target::Target;
use super::{EVERYWHERE, read};

/// Whose an object is.
const APP_LABEL: &str = "kapp.k14s.io/app";
/// Which `ConfigMaps` are records of kapp.
const IS_APP: &str = "kapp.k14s.io/is-app";
/// What an object was when it was applied last.
const ORIGINAL: &str = "kapp.k14s.io/original-diff-md5";
/// In whose name objects are written.
const FIELD_MANAGER: &str = "kapp-controller";

/// An App, as its objects are told apart in a cluster.
pub(super) struct Deployment<'a> {
    target: &'a Target,
    name: &'a str,
    /// The value of the label.
    mark: String,
}

/// An object of a package and what the cluster knows about its kind.
pub(super) struct Object {
    pub kind: Arc<Kind>,
    pub key: Key,
    pub body: Value,
}

/// How soon an object is applied. Definitions and namespaces come first, as nothing can be of a kind or in a namespace that is
/// not there; pods come last, as they need everything else.
fn turn(object: &Value) -> u8 {
    match object["kind"].as_str().unwrap_or_default() {
        "CustomResourceDefinition" | "Namespace" => 0,
        "Deployment" | "DaemonSet" | "StatefulSet" | "Job" | "Pod" | "PackageInstall" => 2,
        _ => 1,
    }
}

impl<'a> Deployment<'a> {
    pub(super) fn new(target: &'a Target, app: &'a App, seed: Seed) -> Self {
        let name = app.metadata.name.as_deref().unwrap_or_default();
        // kapp takes the time, in nanoseconds; what matters is that it stays the same for as long as the record is there.
        let drawn = || seed.child("kapp").stream(app.metadata.uid.as_deref().unwrap_or_default()).u64().to_string();
        let mut deployment = Self { target, name, mark: String::new() };
        let recorded = deployment.record().and_then(|record| record["labelValue"].as_str().map(str::to_owned));
        deployment.mark = recorded.unwrap_or_else(drawn);
        deployment
    }

    /// Puts objects into the cluster and removes what is not among them; why not, as kapp would say it.
    pub(super) async fn apply(&self, bodies: &[Value]) -> Result<(), String> {
        self.write_record(bodies).await?;
        let mut sorted: Vec<&Value> = bodies.iter().collect();
        sorted.sort_by_key(|body| turn(body));
        for body in sorted {
            // Each anew: the one before may have been the definition of its kind.
            let object = self.object(body)?;
            if let Some(owner) = self.other_owner(&object) {
                return Err(format!(
                    "kapp: Error: Ownership errors:\n- Resource '{}' is already associated with a different app '{owner}'",
                    title(&object)
                ));
            }
            if !self.is_current(&object) {
                self.put(&object).await?;
            }
        }
        for left_over in self.left_over(bodies)? {
            self.delete(&left_over).await?;
        }
        Ok(())
    }

    /// Whether applying would change something.
    pub(super) fn differs(&self, bodies: &[Value]) -> Result<bool, String> {
        for body in bodies {
            if !self.is_current(&self.object(body)?) {
                return Ok(true);
            }
        }
        Ok(self.left_over(bodies)?.iter().any(|object| object.body["metadata"]["deletionTimestamp"].is_null()))
    }

    /// All objects in the cluster that are the App's.
    pub(super) fn owned(&self) -> Vec<Object> {
        let record = self.record().unwrap_or_default();
        let kinds = record["usedGKs"].as_array().into_iter().flatten();
        let registry = self.target.server.registry();
        let stored = kinds.filter_map(|used| {
            let named = |kind: &&Arc<Kind>| used["Group"] == *kind.group && used["Kind"] == *kind.kind;
            registry.resources().find(named).cloned()
        });
        let mut owned = Vec::new();
        for kind in stored {
            let ours = |entry: &Entry| entry.label(APP_LABEL) == Some(&self.mark);
            for entry in self.target.server.store().list(&kind.resource, EVERYWHERE, ours).entries {
                let body = read(&entry).unwrap_or_default();
                owned.push(Object { kind: kind.clone(), key: entry.key.clone(), body });
            }
        }
        owned
    }

    /// Deletes an object, and with it what it owns.
    pub(super) async fn delete(&self, object: &Object) -> Result<(), String> {
        match self.api(object).delete(&object.key.name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => Ok(()),
            deleted => deleted.map(drop).map_err(|error| said("delete", object, &error)),
        }
    }

    /// Deletes the record: nothing is left.
    pub(super) async fn delete_record(&self) -> Result<(), String> {
        match self.records().delete(&self.record_name(), &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => Ok(()),
            deleted => deleted.map(drop).map_err(|error| format!("kapp: Error: Deleting app record: {error}")),
        }
    }

    /// What kapp has written down about the App.
    fn record(&self) -> Option<Value> {
        let key = Key::new(&self.target.namespace, &self.record_name());
        let found: Value = read(&*self.target.server.store().get("configmaps", &key)?)?;
        serde_json::from_str(found["data"]["spec"].as_str()?).ok()
    }

    fn record_name(&self) -> String {
        format!("{}.app", self.name)
    }

    fn records(&self) -> Api<k8s_openapi::api::core::v1::ConfigMap> {
        Api::namespaced(self.target.client.clone(), &self.target.namespace)
    }

    /// Writes down which kinds the App has, before there is any object of them.
    async fn write_record(&self, bodies: &[Value]) -> Result<(), String> {
        let before = self.record();
        let known = before.iter().flat_map(|record| record["usedGKs"].as_array().into_iter().flatten());
        let pair = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut kinds: BTreeSet<(String, String)> =
            known.map(|known| (text(&known["Group"]), text(&known["Kind"]))).collect();
        let count = kinds.len();
        for body in bodies {
            let (group, _) = group_version(body);
            kinds.insert(pair(group, body["kind"].as_str().unwrap_or_default()));
        }
        if before.is_some() && kinds.len() == count {
            return Ok(());
        }
        let used: Vec<Value> = kinds.iter().map(|(group, kind)| json!({"Group": group, "Kind": kind})).collect();
        let spec = json!({"labelKey": APP_LABEL, "labelValue": self.mark, "usedGKs": used});
        let record = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": self.record_name(), "namespace": self.target.namespace, "labels": {IS_APP: ""}},
            "data": {"spec": spec.to_string()},
        });
        let written = self.records().patch(&self.record_name(), &written_by(), &Patch::Apply(&record)).await;
        written.map(drop).map_err(|error| format!("kapp: Error: Creating app: {}", says(&error)))
    }

    /// The object in the cluster's words.
    fn object(&self, body: &Value) -> Result<Object, String> {
        let (group, version) = group_version(body);
        let kind = body["kind"].as_str().unwrap_or_default();
        let found = self.target.server.registry().find_kind(group, version, kind).cloned();
        let found = found.ok_or_else(|| {
            let api_version = body["apiVersion"].as_str().unwrap_or_default();
            format!(
                "kapp: Error: Expected to find kind '{api_version}/{kind}', but did not:\n\
                 - Kubernetes API server did not have matching apiVersion + kind\n\
                 - No matching CRD was found in given configuration"
            )
        })?;
        let name = body["metadata"]["name"].as_str().ok_or_else(|| format!("kapp: Error: a {kind} has no name"))?;
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or(&self.target.namespace);
        let namespace = if found.namespaced { namespace } else { "" };
        let mut body = body.clone();
        without_nulls(&mut body);
        let digest = Seed(0).stream(&body.to_string()).uuid();
        if found.namespaced {
            body["metadata"]["namespace"] = namespace.into();
        }
        body["metadata"]["labels"][APP_LABEL] = self.mark.clone().into();
        body["metadata"]["annotations"][ORIGINAL] = digest.into();
        Ok(Object { kind: found, key: Key::new(namespace, name), body })
    }

    fn entry(&self, object: &Object) -> Option<Arc<Entry>> {
        self.target.server.store().get(&object.kind.resource, &object.key)
    }

    /// Whether the object is in the cluster as it should be.
    fn is_current(&self, object: &Object) -> bool {
        let live: Option<Value> = self.entry(object).and_then(|entry| read(&entry));
        live.is_some_and(|live| {
            // The version of a kind is how it is asked for, and its status is somebody else's.
            let wanted = object.body.as_object().into_iter().flatten();
            let mut wanted = wanted.filter(|(part, _)| !["apiVersion", "kind", "status"].contains(&part.as_str()));
            wanted.all(|(part, wanted)| live.get(part).map_or(is_empty(wanted), |live| contains(live, wanted)))
        })
    }

    /// Which other App says that the object is its own.
    fn other_owner(&self, object: &Object) -> Option<String> {
        let entry = self.entry(object)?;
        entry.label(APP_LABEL).filter(|owner| *owner != self.mark).map(str::to_owned)
    }

    /// What is the App's and not in its package.
    fn left_over(&self, bodies: &[Value]) -> Result<Vec<Object>, String> {
        let wanted = bodies.iter().map(|body| {
            let object = self.object(body)?;
            Ok((object.kind.resource.clone(), object.key))
        });
        let wanted: BTreeSet<_> = wanted.collect::<Result<_, String>>()?;
        let owned = self.owned().into_iter();
        Ok(owned.filter(|object| !wanted.contains(&(object.kind.resource.clone(), object.key.clone()))).collect())
    }

    async fn put(&self, object: &Object) -> Result<(), String> {
        let patch = Patch::Apply(&object.body);
        let written = self.api(object).patch(&object.key.name, &written_by(), &patch).await;
        written.map(drop).map_err(|error| said("apply", object, &error))
    }

    fn api(&self, object: &Object) -> Api<DynamicObject> {
        let Kind { group, version, api_version, kind, plural, namespaced, .. } = &*object.kind;
        let resource = ApiResource {
            group: group.clone(),
            version: version.clone(),
            api_version: api_version.clone(),
            kind: kind.clone(),
            plural: plural.clone(),
        };
        let client = self.target.client.clone();
        if *namespaced {
            Api::namespaced_with(client, &object.key.namespace, &resource)
        } else {
            Api::all_with(client, &resource)
        }
    }
}

fn written_by() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

fn group_version(body: &Value) -> (&str, &str) {
    let api_version = body["apiVersion"].as_str().unwrap_or_default();
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The object as kapp calls it.
pub(super) fn title(object: &Object) -> String {
    let (kind, Key { namespace, name }) = (object.kind.kind.to_ascii_lowercase(), &object.key);
    let scope = if namespace.is_empty() { "cluster".to_owned() } else { format!("namespace: {namespace}") };
    format!("{kind}/{name} ({}) {scope}", object.kind.api_version)
}

fn said(verb: &str, object: &Object, error: &kube::Error) -> String {
    format!("kapp: Error: Applying {verb} {}: {}", title(object), says(error))
}

fn says(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("API server says: {} (reason: {})", status.message, status.reason),
        other => super::view::chain(other),
    }
}

/// Whether all that is in `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).map_or(is_empty(value), |found| contains(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

/// What an API server may as well leave out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null() || *value == "" || *value == false,
    }
}

/// A field that is nothing is one that is not there.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
