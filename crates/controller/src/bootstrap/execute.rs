//! Writes what was planned, and makes no choices.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::name::NamespacedName;
use windlass_plan::bootstrap::{Object, Step, Write};
use windlass_plan::step::{Place, Revision};

use crate::execute::write::{self, WriteError};
use crate::execute::{FIELD_MANAGER, Kinds};
use crate::said::{is_already_exists, is_conflict, is_not_found, is_other_object};

/// What steps are executed with.
pub(crate) struct Executor<'a> {
    pub management: &'a Client,
    pub workload: Option<&'a Client>,
    pub kinds: &'a Kinds,
}

/// Whether a step was made.
enum Made {
    Yes,
    /// The object is not in the state that the decision was made on.
    Outdated,
}

impl Executor<'_> {
    /// Makes the steps, in order; returns what failed, with what it was for. What others build on ends them all.
    pub(crate) async fn steps(&self, steps: &[Step]) -> Vec<(String, WriteError)> {
        let mut failures = Vec::new();
        let mut broken = BTreeSet::new();
        for step in steps {
            if step.alone.as_ref().is_some_and(|alone| broken.contains(alone)) {
                continue;
            }
            let made = self.step(step).await;
            let stop = !matches!(made, Ok(Made::Yes));
            failures.extend(made.err().map(|error| (step.why.clone(), error)));
            match &step.alone {
                _ if !stop => {}
                Some(alone) => drop(broken.insert(alone.clone())),
                None => break,
            }
        }
        failures
    }

    /// Whether an object is still in the state that a decision was made on. What was read may be old, also what was read just now:
    /// only a write is judged by what is true. This one is for show, and changes nothing.
    pub(super) async fn is_current(&self, object: &Object, expect: &Revision) -> Result<bool, WriteError> {
        let api = self.api(self.management, Place::Management, object).await?;
        let patch = json!({"metadata": {"resourceVersion": expect.resource_version, "uid": expect.uid.as_str()}});
        let params = PatchParams { dry_run: true, field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        match api.patch_status(&object.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) || is_other_object(&error) || is_not_found(&error) => Ok(false),
            Err(error) => Err(WriteError::api("confirm", object.to_string())(error)),
        }
    }

    async fn step(&self, step: &Step) -> Result<Made, WriteError> {
        let client = match step.place {
            Place::Management => self.management,
            Place::Workload => self.workload.ok_or(WriteError::NoWorkload)?,
        };
        tracing::info!(why = step.why, "packages");
        match &step.write {
            Write::Create { object } => self.create(client, step.place, object).await,
            Write::Apply { object } => self.apply(client, step.place, object).await,
            Write::CopySecret { from, object } => {
                let copy = self.copy(from, object).await?;
                self.apply(client, step.place, &copy).await
            }
            Write::Patch { object, patch, expect } => {
                self.patch(client, step.place, object, patch, expect, false).await
            }
            Write::PatchStatus { object, patch, expect } => {
                self.patch(client, step.place, object, patch, expect, true).await
            }
            Write::Delete { object, expect } => {
                let api = self.api(client, step.place, object).await?;
                let deleted = write::delete(&api, &object.kind, &object.name, expect).await?;
                Ok(if deleted == write::Written::Made { Made::Yes } else { Made::Outdated })
            }
        }
    }

    async fn api(&self, client: &Client, place: Place, object: &Object) -> Result<Api<DynamicObject>, WriteError> {
        self.kinds.api(client, place, &object.api_version, &object.kind, object.namespace.as_deref()).await
    }

    async fn create(&self, client: &Client, place: Place, object: &Value) -> Result<Made, WriteError> {
        let (named, parsed) = (object_of(object), write::parse(object)?);
        let api = self.api(client, place, &named).await?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        match api.create(&params, &parsed).await {
            Ok(_) => Ok(Made::Yes),
            // Somebody was faster, or we were before a crash: the next look says what of it is ours.
            Err(error) if is_already_exists(&error) => Ok(Made::Outdated),
            Err(error) => Err(WriteError::api("create", named.to_string())(error)),
        }
    }

    async fn apply(&self, client: &Client, place: Place, object: &Value) -> Result<Made, WriteError> {
        let api = self.api(client, place, &object_of(object)).await?;
        let applied = write::apply(&api, object, None).await?;
        Ok(if applied.is_some() { Made::Yes } else { Made::Outdated })
    }

    /// A Secret with what another one says. Nobody but the API sees it.
    async fn copy(&self, from: &NamespacedName, object: &Value) -> Result<Value, WriteError> {
        let api: Api<Secret> = Api::namespaced(self.management.clone(), from.namespace.as_str());
        let source = api.get(from.name.as_str()).await.map_err(WriteError::api("read", format!("Secret {from}")))?;
        let mut copy = object.clone();
        copy["data"] = serde_json::to_value(source.data.unwrap_or_default()).map_err(WriteError::Malformed)?;
        Ok(copy)
    }

    async fn patch(
        &self,
        client: &Client,
        place: Place,
        object: &Object,
        patch: &Value,
        expect: &Revision,
        status: bool,
    ) -> Result<Made, WriteError> {
        let api = self.api(client, place, object).await?;
        let mut patch = patch.clone();
        patch["metadata"]["resourceVersion"] = json!(expect.resource_version);
        patch["metadata"]["uid"] = json!(expect.uid.as_str());
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let patched = if status {
            api.patch_status(&object.name, &params, &Patch::Merge(&patch)).await
        } else {
            api.patch(&object.name, &params, &Patch::Merge(&patch)).await
        };
        match patched {
            Ok(_) => Ok(Made::Yes),
            Err(error) if is_conflict(&error) || is_other_object(&error) || is_not_found(&error) => Ok(Made::Outdated),
            Err(error) => Err(WriteError::api("change", object.to_string())(error)),
        }
    }
}

/// What an object is called.
fn object_of(object: &Value) -> Object {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Object {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
        name: text(&object["metadata"]["name"]),
    }
}
