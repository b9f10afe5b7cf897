//! `scale`: how many replicas an object wants, without knowing its kind.

use http::{Method, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::age;
use crate::body::{Body, warn};
use crate::field::FieldError;
use crate::kind::{Kind, Scale};
use crate::negotiate::{self, MetaVersion, PatchType, Reading, Want};
use crate::patch::{json::JsonPatch, merge};
use crate::present::partial;
use crate::query::{IncludeObject, Query, WriteOptions};
use crate::selector::LabelSelector;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::verb::Call;
use crate::verb::call::{Shown, encoded};
use crate::verb::update::Proposal;

impl ApiServer {
    /// Reads or writes the scale of an object.
    pub(crate) async fn scale(&self, call: &Call, method: &Method) -> Result<Response<Body>, ApiError> {
        let Some(paths) = &call.kind.scale else { return Err(ApiError::no_such_path()) };
        let entry = self.store().get(&call.kind.resource, &call.key()).ok_or_else(|| call.not_found())?;
        let current = Self::load(&call.kind, &entry);
        let patch = match *method {
            Method::GET => {
                let wanted = paths.spec.iter().fold(&current, |value, field| &value[field.as_str()]);
                if call.kind.is_custom() && wanted.is_null() {
                    let path = paths.spec.join(".");
                    return Err(ApiError::internal(&format!("the spec replicas field \".{path}\" does not exist")));
                }
                return self.show_scale(call, &show(&call.kind, paths, &current));
            }
            Method::PUT => {
                ScalePatch::Replace(crate::verb::body::value(call.header(header::CONTENT_TYPE), &call.body)?)
            }
            Method::PATCH => match negotiate::patch_type(call.header(header::CONTENT_TYPE), call.endpoint())? {
                PatchType::Json => {
                    ScalePatch::Json(JsonPatch::parse(&call.body, crate::query::FieldValidation::Ignore)?)
                }
                PatchType::Merge | PatchType::Strategic | PatchType::Apply => {
                    ScalePatch::Merge(merge::read(&call.body, crate::query::FieldValidation::Ignore)?)
                }
            },
            _ => return Err(ApiError::method_not_allowed()),
        };
        let options = WriteOptions::update(&Query::parse(&call.query))?;
        let manager = call.manager(options.field_manager.as_deref());
        let intent = call.intent(&manager, options.dry_run);
        let written = self.replace(call, &intent, &mut Scaled { kind: &call.kind, paths, patch }, Vec::new()).await?;
        let object = match &written.shown {
            Shown::Stored(entry) => Self::load(&call.kind, entry),
            Shown::Imagined(object) => object.clone(),
        };
        let mut response = self.show_scale(call, &show(&call.kind, paths, &object))?;
        warn(&mut response, &written.warnings);
        Ok(response)
    }

    /// A scale as the client wants it.
    fn show_scale(&self, call: &Call, scale: &Value) -> Result<Response<Body>, ApiError> {
        let accepted = call.accepted(Reading::Object)?;
        let document = match accepted.want {
            Want::Table(version) => {
                let include = IncludeObject::parse(&Query::parse(&call.query))?;
                table(scale, version, include, self.now())
            }
            Want::PartialObject(version) => partial(&mut scale.clone(), version),
            Want::Plain | Want::AggregatedDiscovery | Want::PartialObjectList(_) => scale.clone(),
        };
        Ok(encoded(StatusCode::OK, accepted, serde_json::to_vec(&document).unwrap_or_default()))
    }
}

enum ScalePatch {
    Replace(Value),
    Json(JsonPatch),
    Merge(Value),
}

/// An object with another number of replicas.
struct Scaled<'a> {
    kind: &'a Kind,
    paths: &'a Scale,
    patch: ScalePatch,
}

impl Proposal for Scaled<'_> {
    fn propose(&mut self, current: &Value, _: &mut Vec<String>) -> Result<Value, ApiError> {
        let mut scale = show(self.kind, self.paths, current);
        match &self.patch {
            ScalePatch::Replace(wanted) => scale = wanted.clone(),
            ScalePatch::Json(patch) => patch.apply(&mut scale)?,
            ScalePatch::Merge(patch) => merge::merge(&mut scale, patch.clone()),
        }
        let name = current["metadata"]["name"].as_str().unwrap_or_default();
        let replicas = &scale["spec"]["replicas"];
        let wanted = if replicas.is_null() { Some(0) } else { replicas.as_i64() };
        let Some(wanted) = wanted.filter(|wanted| *wanted >= 0) else {
            return Err(if self.kind.is_custom() {
                let path = format!(".{}", self.paths.spec.join("."));
                let error = FieldError::invalid(path, replicas.clone(), "should be a non-negative integer");
                ApiError::invalid(&self.kind.kind, &self.kind.group, name, &[error])
            } else {
                let error =
                    FieldError::invalid("spec.replicas", replicas.clone(), "must be greater than or equal to 0");
                ApiError::invalid("Scale", "autoscaling", name, &[error])
            });
        };
        let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() && current["metadata"]["resourceVersion"] != version {
            return Err(ApiError::stale(&self.kind.plural, &self.kind.group, name));
        }
        let mut object = current.clone();
        put(&mut object, &self.paths.spec, wanted.into());
        Ok(object)
    }

    fn owned(&self) -> bool {
        false
    }
}

/// The scale of an object.
pub(crate) fn show(kind: &Kind, paths: &Scale, object: &Value) -> Value {
    let at = |path: &[String]| path.iter().fold(object, |value, field| &value[field.as_str()]).clone();
    let number = |value: Value| value.as_i64().unwrap_or_default();
    let metadata = &object["metadata"];
    let mut shown = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {}, "status": {"replicas": number(at(&paths.status))},
    });
    if kind.namespaced {
        shown["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    let wanted = number(at(&paths.spec));
    if wanted != 0 {
        shown["spec"]["replicas"] = wanted.into();
    }
    let selector = match &paths.selector {
        Some(path) => at(path).as_str().map(str::to_owned),
        None => own_selector(kind, &object["spec"]["selector"]).map(|selector| selector.to_string()),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        shown["status"]["selector"] = selector.into();
    }
    shown
}

/// Gives an object as many replicas as its scale says, which leaves out that it is none.
pub(crate) fn settle(paths: &Scale, scale: &Value, object: &mut Value) {
    put(object, &paths.spec, scale["spec"]["replicas"].as_i64().unwrap_or_default().into());
}

/// A scale as a table of one row.
fn table(scale: &Value, version: MetaVersion, include: IncludeObject, now: Timestamp) -> Value {
    let column =
        |name, type_, format| json!({"name": name, "type": type_, "format": format, "description": "", "priority": 0});
    let metadata = &scale["metadata"];
    let cells = [
        metadata["name"].clone(),
        scale["spec"]["replicas"].as_i64().unwrap_or_default().into(),
        scale["status"]["replicas"].clone(),
        age::since(metadata["creationTimestamp"].as_str(), now).into(),
    ];
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial(&mut scale.clone(), version),
        IncludeObject::Object => scale.clone(),
    };
    json!({
        "kind": "Table", "apiVersion": version.api_version(),
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "columnDefinitions": [
            column("Name", "string", "name"), column("Desired", "integer", ""),
            column("Available", "integer", ""), column("Age", "string", ""),
        ],
        "rows": [{"cells": cells, "object": object}],
    })
}

/// Sets a field, making the objects on the way to it.
fn put(object: &mut Value, path: &[String], value: Value) {
    let mut at = object;
    for field in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[field.as_str()];
    }
    *at = value;
}

/// The selector of a built-in kind: an object, or the plain labels that the oldest of them has.
fn own_selector(kind: &Kind, selector: &Value) -> Option<LabelSelector> {
    let plain = json!({"matchLabels": selector});
    let selector = if kind.kind == "ReplicationController" { &plain } else { selector };
    LabelSelector::from_object(Some(selector)).ok()
}
