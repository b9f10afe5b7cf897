//! Custom resources in several versions, which a webhook turns into each other.
//!
//! A real server keeps an object in one version and asks the webhook whenever somebody reads it in another. Here it is asked when
//! the object is written: the store keeps what it made for all versions, so that reading and watching ask nobody, and a fork needs
//! no webhook. What was written before the definition had its webhook is converted when it is first asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::carrier::{Carrier, Endpoint, Errand};
use crate::kind::{Kind, Origin, api_version};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Expect, Range};
use crate::value::Fields;

/// Where the store keeps an object in its other versions. No client sees it.
const VERSIONS: &str = "~versions";

/// Kubernetes waits as long.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How the versions of a resource become each other.
#[derive(Debug)]
pub struct Conversion {
    endpoint: Endpoint,
    group: String,
    /// The version that objects are stored in.
    storage: String,
    /// All versions that are served.
    served: Vec<String>,
    /// The version of what was stored before there was a webhook.
    first: String,
    /// Whether all that was stored before has been converted.
    is_complete: AtomicBool,
}

impl Conversion {
    /// Reads a definition; `None` when its versions differ in nothing but their names.
    pub(crate) fn read(definition: &Value) -> Option<Arc<Self>> {
        let spec = definition.at("spec");
        let conversion = spec.at("conversion");
        if conversion.text("strategy") != "Webhook" {
            return None;
        }
        let versions = spec.list("versions");
        let named = |flag: &'static str| {
            versions.iter().filter(move |version| version.flag(flag)).map(|version| version.text("name").to_owned())
        };
        let storage = named("storage").next().unwrap_or_default();
        let first = definition.at("status").texts("storedVersions").next().unwrap_or(&storage).to_owned();
        Some(Arc::new(Self {
            endpoint: Endpoint::read(conversion.at("webhook").at("clientConfig")),
            group: spec.text("group").to_owned(),
            served: named("served").collect(),
            storage,
            first,
            is_complete: AtomicBool::new(false),
        }))
    }

    /// The same object in another version, as the webhook makes it.
    async fn convert(
        &self,
        server: &ApiServer,
        carrier: &Arc<dyn Carrier>,
        object: &Value,
        to: &str,
    ) -> Result<Value, ApiError> {
        let wanted = api_version(&self.group, to);
        if object["apiVersion"] == *wanted {
            return Ok(object.clone());
        }
        let from = format!("{}, Kind={}", object.text("apiVersion"), object.text("kind"));
        let failed = |why: &str| ApiError::unforeseen(format!("conversion webhook for {from} {why}"));
        let uid = server.admission().review_uid();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": [object]},
        });
        let body = Bytes::from(review.to_string());
        let errand = Errand { endpoint: &self.endpoint, body, timeout: TIMEOUT, store: server.store() };
        let answer = carrier.carry(errand).await.map_err(|why| failed(&format!("failed: {why}")))?;
        let mut answer: Value = serde_json::from_slice(&answer).map_err(|why| failed(&format!("failed: {why}")))?;
        let response = answer["response"].take();
        if response["uid"] != uid {
            let got = response.text("uid");
            return Err(failed(&format!("failed: expected response.uid={uid:?}, got {got:?}")));
        }
        let result = response.at("result");
        if result.text("status") != "Success" {
            let said = Some(result.text("message")).filter(|said| !said.is_empty());
            return Err(failed(&format!("failed: {}", said.unwrap_or("no reason was given"))));
        }
        let [converted] = response.list("convertedObjects") else {
            let count = response.list("convertedObjects").len();
            return Err(failed(&format!("returned {count} objects, expected 1")));
        };
        let invalid = |why: String| failed(&format!("returned invalid converted object at index 0: {why}"));
        if converted["apiVersion"] != *wanted {
            let got = converted.text("apiVersion");
            return Err(invalid(format!("invalid groupVersion (expected {wanted}, received {got})")));
        }
        if converted["kind"] != object["kind"] {
            let (kind, got) = (object.text("kind"), converted.text("kind"));
            return Err(invalid(format!("invalid kind (expected {kind}, received {got})")));
        }
        with_metadata_of(object, converted).map_err(invalid)
    }
}

/// A converted object with the metadata of the original, but for labels and annotations, which are the webhook's to change.
fn with_metadata_of(original: &Value, converted: &Value) -> Result<Value, String> {
    let (before, after) = (original.at("metadata"), converted.at("metadata"));
    if !after.is_object() {
        return Err("invalid metadata: missing".to_owned());
    }
    for field in ["name", "namespace", "uid"] {
        if before.text(field) != after.text(field) {
            let (before, after) = (before.text(field), after.text(field));
            return Err(format!("invalid metadata: must have the same {field}: {after} != {before}"));
        }
    }
    let mut converted = converted.clone();
    let mut metadata = before.clone();
    if let Value::Object(fields) = &mut metadata {
        for field in ["labels", "annotations"] {
            match after.get(field) {
                Some(value) => fields.insert(field.to_owned(), value.clone()),
                None => fields.remove(field),
            };
        }
    }
    converted["metadata"] = metadata;
    Ok(converted)
}

/// What is kept of an object in another version: all but what its versions share.
fn kept(converted: &Value) -> Value {
    let mut kept = Map::new();
    for (field, value) in converted.as_object().into_iter().flatten() {
        if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | VERSIONS) {
            kept.insert(field.clone(), value.clone());
        }
    }
    let mut metadata = Map::new();
    for (field, value) in converted.at("metadata").as_object().into_iter().flatten() {
        if matches!(field.as_str(), "labels" | "annotations") {
            metadata.insert(field.clone(), value.clone());
        }
    }
    kept.insert("metadata".to_owned(), metadata.into());
    kept.into()
}

/// Takes out of a stored object what this version shows of it.
pub(crate) fn show(object: &mut Value, version: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    let Some(mut versions) = fields.remove(VERSIONS) else { return };
    if versions["in"] == *version {
        return;
    }
    let Value::Object(mut other) = versions["others"][version].take() else { return };
    let kept = other.remove("metadata").unwrap_or_default();
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for field in ["labels", "annotations"] {
            match kept.get(field) {
                Some(value) => metadata.insert(field.to_owned(), value.clone()),
                None => metadata.remove(field),
            };
        }
    }
    fields.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata"));
    fields.extend(other);
}

impl ApiServer {
    /// How a kind is converted, if that is done by a webhook that can be reached.
    fn conversion<'k>(&self, kind: &'k Kind) -> Option<(&'k Conversion, Arc<dyn Carrier>)> {
        match &kind.origin {
            Origin::Custom(custom) => Some((custom.conversion.as_deref()?, self.admission().carrier()?)),
            Origin::Builtin(_) => None,
        }
    }

    /// An object in another version of its kind.
    pub(crate) async fn in_version(&self, mut object: Value, to: &Kind) -> Result<Value, ApiError> {
        if let Some((conversion, carrier)) = self.conversion(to) {
            return conversion.convert(self, &carrier, &object, &to.version).await;
        }
        object["apiVersion"] = to.api_version.as_str().into();
        Ok(object)
    }

    /// An object as its kind is stored, with what it is in all versions.
    pub(crate) async fn stored_form(&self, kind: &Kind, object: Value) -> Result<Value, ApiError> {
        let Some((conversion, carrier)) = self.conversion(kind) else { return Ok(Self::to_stored(kind, object)) };
        let mut stored = conversion.convert(self, &carrier, &object, &conversion.storage).await?;
        let mut others = Map::new();
        for version in conversion.served.iter().filter(|version| **version != conversion.storage) {
            let converted = conversion.convert(self, &carrier, &object, version).await?;
            others.insert(version.clone(), kept(&converted));
        }
        stored[VERSIONS] = json!({"in": conversion.storage, "others": others});
        Ok(stored)
    }

    /// The last state of an object that goes, in all versions: as it was stored, with its latest metadata. Nobody is asked.
    pub(crate) fn last_form(&self, kind: &Kind, entry: &Entry, mut last: Value) -> Value {
        if self.conversion(kind).is_none() {
            return Self::to_stored(kind, last);
        }
        let mut stored = entry.to_value(&kind.api_version, &kind.kind);
        stored["metadata"] = last["metadata"].take();
        stored
    }

    /// Converts what was stored before its definition had this webhook.
    pub(crate) async fn complete(&self, kind: &Kind) -> Result<(), ApiError> {
        let Some((conversion, _)) = self.conversion(kind) else { return Ok(()) };
        if conversion.is_complete.load(Ordering::Acquire) {
            return Ok(());
        }
        let everywhere = Range { namespace: None, after: None, limit: 0 };
        for entry in self.store().list(&kind.resource, everywhere, |_| true).entries {
            let mut object = entry.to_value("", &kind.kind);
            let versions = object[VERSIONS].take();
            let has = |version: &String| versions["in"] == **version || versions["others"].get(version).is_some();
            if versions["in"] == conversion.storage && conversion.served.iter().all(has) {
                continue;
            }
            let version = versions["in"].as_str().unwrap_or(&conversion.first);
            object["apiVersion"] = api_version(&conversion.group, version).into();
            if let Some(fields) = object.as_object_mut() {
                fields.remove(VERSIONS);
            }
            let stored = self.stored_form(kind, object).await?;
            // Whoever wrote in between has written all versions.
            drop(self.store().put(&kind.resource, &entry.key, Expect::Revision(entry.revision), stored, self.now()));
        }
        conversion.is_complete.store(true, Ordering::Release);
        Ok(())
    }
}
