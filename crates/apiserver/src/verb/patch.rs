//! Patch: an object is changed by a description of the change, or by server-side apply.

use http::{Response, StatusCode, header};
use serde_json::{Map, Value};

use super::Call;
use super::update::Proposal;
use super::write::{Intent, Unfit, Written};
use crate::admission::Operation;
use crate::apply;
use crate::body::{Body, warn};
use crate::decode;
use crate::negotiate::{self, PatchType};
use crate::patch::{json::JsonPatch, merge, strategic};
use crate::query::{FieldValidation, Query, WriteOptions};
use crate::server::ApiServer;
use crate::status::ApiError;

/// A change, read from the body.
enum Change {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

/// A change of whatever is there.
struct Patched<'a> {
    call: &'a Call,
    change: Change,
    validation: FieldValidation,
}

impl Patched<'_> {
    /// The object with the change made, and what was odd about the change.
    fn patched(&self, current: &Value) -> Result<(Value, Vec<String>), ApiError> {
        let mut object = current.clone();
        let mut oddities = Vec::new();
        match &self.change {
            Change::Json(patch) => {
                patch.apply(&mut object)?;
                oddities.extend(patch.complaints.iter().cloned());
            }
            Change::Merge(patch) => merge::merge(&mut object, patch.clone()),
            Change::Strategic(patch) => strategic::apply(&mut object, patch, &self.call.kind.schema)?,
        }
        if object.is_object() && object["metadata"].is_null() {
            // Its name is missed later, after what else is wrong.
            object["metadata"] = Value::Object(Map::new());
        }
        if !object.is_object() || !object["metadata"].is_object() {
            return Err(Unfit::Undecodable("the patched document is not an object".into()).in_patch(&object));
        }
        Ok((object, oddities))
    }
}

impl Proposal for Patched<'_> {
    fn propose(&mut self, current: &Value, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let (mut object, oddities) = self.patched(current)?;
        let shaped = ApiServer::shape(&self.call.kind, &mut object, self.validation, oddities, warnings);
        if let Err(unfit) = shaped {
            return Err(match &self.change {
                Change::Strategic(patch) => unfit.in_strategic_patch(patch),
                // The refusal shows what was patched as it was before it was given its shape: rare enough to make it again.
                Change::Json(_) | Change::Merge(_) => unfit.in_patch(&self.patched(current)?.0),
            });
        }
        keep_identity(self.call, &mut object, current)?;
        Ok(object)
    }

    fn owned(&self) -> bool {
        false
    }
}

/// A patch cannot make another object of an object.
fn keep_identity(call: &Call, object: &mut Value, current: &Value) -> Result<(), ApiError> {
    let kind = &call.kind;
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (name, was) = (text(object, "name"), text(current, "name"));
    if name != was {
        return Err(call.misnamed(&name));
    }
    if text(object, "namespace") != text(current, "namespace") {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let own = |field: &str| object[field].as_str().unwrap_or_default();
    if !kind.is_custom()
        && let Some(why) = super::create::misfit(kind, own("apiVersion"), own("kind"))
    {
        return Err(Unfit::Undecodable(why).in_patch(object));
    }
    object["apiVersion"] = kind.api_version.as_str().into();
    object["kind"] = kind.kind.as_str().into();
    Ok(())
}

/// A configuration that its owner wants to see in the object.
struct Applied<'a> {
    server: &'a ApiServer,
    call: &'a Call,
    intent: &'a Intent<'a>,
    configuration: Value,
    force: bool,
}

impl Applied<'_> {
    fn merge(&self, current: Option<&Value>, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let kind = self.intent.kind;
        let ownership = self.server.ownership(self.intent);
        let mut object =
            apply::apply(&ownership, current, self.configuration.clone(), self.force).map_err(ApiError::from)?;
        if current.is_none() && !kind.is_custom() {
            super::create::drop_status(kind, &mut object);
        }
        check_place(self.call, &object)?;
        ApiServer::fit(kind, &mut object, FieldValidation::Ignore, Vec::new(), warnings)
            .map_err(|unfit| unfit.in_configuration(kind, &self.configuration))?;
        ApiServer::fill_applied(kind, &mut object);
        Ok(object)
    }
}

impl Proposal for Applied<'_> {
    fn propose(&mut self, current: &Value, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let mut object = self.merge(Some(current), warnings)?;
        // A configuration may name the version that it was made for.
        let sent = &self.configuration["metadata"]["resourceVersion"];
        let version = if sent.is_null() { &current["metadata"]["resourceVersion"] } else { sent };
        object["metadata"]["resourceVersion"] = version.clone();
        Ok(object)
    }

    fn owned(&self) -> bool {
        true
    }
}

impl ApiServer {
    /// Changes an object.
    pub(crate) async fn patch(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let type_ = negotiate::patch_type(call.header(header::CONTENT_TYPE), call.endpoint())?;
        let options = WriteOptions::patch(&Query::parse(&call.query), type_)?;
        let manager = call.manager(options.field_manager.as_deref());
        let intent = call.intent(&manager, options.dry_run);
        let validation = options.field_validation;
        let change = match type_ {
            PatchType::Apply => return self.apply(call, &intent, &options).await,
            PatchType::Json => Change::Json(JsonPatch::parse(&call.body, validation)?),
            PatchType::Merge => Change::Merge(merge::read(&call.body, validation)?),
            PatchType::Strategic => Change::Strategic(strategic::read(&call.body)?),
        };
        let mut patched = Patched { call, change, validation };
        let written = self.replace(call, &intent, &mut patched, Vec::new()).await?;
        self.answer(call, StatusCode::OK, &written)
    }

    /// Server-side apply.
    async fn apply(
        &self,
        call: &Call,
        intent: &Intent<'_>,
        options: &WriteOptions,
    ) -> Result<Response<Body>, ApiError> {
        let kind = &call.kind;
        let mut warnings = Vec::new();
        let (configuration, oddities) = decode::yaml(&call.body).map_err(undecodable)?;
        if !configuration.is_object() {
            let found = crate::json_syntax::type_name(&configuration);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            return Err(undecodable(format!("error unmarshaling JSON: while decoding JSON: {why}")));
        }
        match options.field_validation {
            FieldValidation::Strict if !oddities.is_empty() => {
                return Err(ApiError::bad_request(format!("error strict decoding YAML: {}", oddities.join(", "))));
            }
            FieldValidation::Warn => warnings.extend(oddities),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        let mut applied = Applied { server: self, call, intent, configuration, force: options.force };
        if self.store().get(&kind.resource, &call.key()).is_some() {
            let written = self.replace(call, intent, &mut applied, warnings).await?;
            return self.answer(call, StatusCode::OK, &written);
        }
        if !call.subresource.is_empty() {
            return Err(call.not_found());
        }
        if applied.configuration["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()) {
            let why = "uid mismatch: the provided object specified uid %s, and no existing object was found";
            let uid = applied.configuration["metadata"]["uid"].as_str().unwrap_or_default();
            return Err(ApiError::conflict(&kind.plural, &kind.group, &call.name, &why.replace("%s", uid)));
        }
        let mut object = applied.merge(None, &mut warnings).map_err(|refusal| refusal.with_warnings(&warnings))?;
        super::create::place(call, &mut object)?;
        super::write::metadata(&mut object).insert("name".into(), call.name.as_str().into());
        let written = self.finish_create(intent, object, warnings, Operation::Create).await?;
        self.answer(call, StatusCode::CREATED, &written)
    }

    fn answer(&self, call: &Call, code: StatusCode, written: &Written) -> Result<Response<Body>, ApiError> {
        let mut response = self.show(call, code, &written.shown)?;
        warn(&mut response, &written.warnings);
        Ok(response)
    }
}

fn undecodable(why: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("error decoding YAML: {why}"))
}

/// What results has the name and namespace of the path. A configuration of an object that exists need not repeat them.
fn check_place(call: &Call, object: &Value) -> Result<(), ApiError> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (name, namespace) = (text("name"), text("namespace"));
    if name != call.name {
        return Err(call.misnamed(name));
    }
    if !namespace.is_empty() && namespace != call.namespace && call.kind.namespaced {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}
