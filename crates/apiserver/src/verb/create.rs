//! Create.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use super::Call;
use super::call::Shown;
use super::write::{Intent, Written, metadata};
use crate::admission::Operation;
use crate::body::{Body, warn};
use crate::builtin::Verbs;
use crate::field::FieldError;
use crate::kind::{Kind, Origin};
use crate::query::{Query, WriteOptions};
use crate::server::ApiServer;
use crate::status::{ApiError, Cause};
use crate::store::{Entry, Expect, Key};

/// How often a generated name that is taken is replaced by another.
const NAME_TRIES: usize = 8;

impl ApiServer {
    /// Makes a new object.
    pub(crate) async fn create(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let options = WriteOptions::create(&Query::parse(&call.query))?;
        let kind = &call.kind;
        let decoded = super::body::object(call)?;
        let mut object = decoded.object;
        check_kind(kind, &mut object)?;
        let mut warnings = Vec::new();
        Self::fit(kind, &mut object, options.field_validation, decoded.oddities, &mut warnings)
            .map_err(|unfit| unfit.in_body(kind))?;
        if !kind.is_custom() {
            // Before defaults: they begin a status of their own.
            drop_status(kind, &mut object);
        }
        Self::fill(kind, &mut object);
        if kind.builtin().is_some_and(|builtin| builtin.verbs == Verbs::CreateOnly) {
            let answer = crate::reviews::answer(self, kind, object, &call.user);
            return self.show(call, StatusCode::CREATED, &Shown::Imagined(answer));
        }
        place(call, &mut object).map_err(|refusal| refusal.with_warnings(&warnings))?;
        let manager = call.manager(options.field_manager.as_deref());
        let intent = call.intent(&manager, options.dry_run);
        let written = self.create_object(&intent, object, warnings).await?;
        let mut response = self.show(call, StatusCode::CREATED, &written.shown)?;
        warn(&mut response, &written.warnings);
        Ok(response)
    }

    /// Makes a new object that has its shape and its place.
    pub(crate) async fn create_object(
        &self,
        intent: &Intent<'_>,
        mut object: Value,
        mut warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        if metadata(&mut object).get("resourceVersion").is_some_and(|version| version != "" && !version.is_null()) {
            let refusal = ApiError::unforeseen("resourceVersion should not be set on objects to be created");
            return Err(refusal.with_warnings(&warnings));
        }
        dedup_owners(&mut object, &mut warnings);
        self.own(intent, None, &mut object);
        self.finish_create(intent, object, warnings, Operation::Create).await
    }

    /// The part of a create that comes after field ownership: an apply that makes an object comes in here.
    pub(crate) async fn finish_create(
        &self,
        intent: &Intent<'_>,
        object: Value,
        mut warnings: Vec<String>,
        operation: Operation,
    ) -> Result<Written, ApiError> {
        let created = self.admit_and_commit(intent, object, &mut warnings, operation).await;
        Written::with(created, warnings)
    }

    async fn admit_and_commit(
        &self,
        intent: &Intent<'_>,
        mut object: Value,
        warnings: &mut Vec<String>,
        operation: Operation,
    ) -> Result<Shown, ApiError> {
        let kind = intent.kind;
        self.check_namespace(intent, name_or_prefix(&object))?;
        self.admit_new(intent, operation, &mut object, warnings).await?;
        if kind.namespaced && object["metadata"]["namespace"] != intent.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let generated = self.name(&mut object);
        self.prepare_create(kind, &mut object);
        Self::check(kind, &object, None, "", warnings)?;
        warnings.extend(kind.warnings(&object));
        self.review(intent, operation, Some(&object), None, warnings).await?;
        if intent.dry_run {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let key = Key::new(intent.namespace, name);
            if let Some(taken) = self.store().get(&kind.resource, &key) {
                return Err(name_taken(kind, name, Some(&taken)));
            }
            return Ok(Shown::Imagined(object));
        }
        for _ in 0..NAME_TRIES {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = if kind.namespaced { intent.namespace } else { "" };
            let key = Key::new(namespace, &name);
            // Only a name that the server makes can be tried again, so only then is a copy kept.
            let spare = if generated { Some(object.clone()) } else { None };
            match (self.commit(kind, &key, Expect::Absent, object).await?, spare) {
                (Ok(entry), _) => return Ok(Shown::Stored(entry)),
                (Err(mismatch), None) => return Err(name_taken(kind, &name, mismatch.current.as_deref())),
                (Err(_), Some(again)) => object = again,
            }
            metadata(&mut object).remove("name");
            self.name(&mut object);
        }
        Err(ApiError::already_exists(
            &kind.plural,
            &kind.group,
            object["metadata"]["name"].as_str().unwrap_or_default(),
        ))
    }

    /// Lets webhooks change a new object, but not the status that it begins with.
    async fn admit_new(
        &self,
        intent: &Intent<'_>,
        operation: Operation,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let kind = intent.kind;
        if self.admission().is_empty() {
            return Ok(());
        }
        let kept = (!kind.is_custom() && begins_without_status(kind)).then(|| object.get("status").cloned());
        self.admit(intent, operation, Some(object), None, warnings).await?;
        if let (Some(status), Value::Object(fields)) = (kept, object) {
            match status {
                Some(status) => fields.insert("status".into(), status),
                None => fields.remove("status"),
            };
        }
        Ok(())
    }

    /// Makes a name from `generateName`, if that is how the object is named.
    fn name(&self, object: &mut Value) -> bool {
        let metadata = metadata(object);
        let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
        match metadata.get("generateName").and_then(Value::as_str) {
            Some(prefix) if !named && !prefix.is_empty() => {
                // 63 characters are what a label value takes; five of them are the suffix.
                let end =
                    (0..=prefix.len().min(58)).rev().find(|end| prefix.is_char_boundary(*end)).unwrap_or_default();
                let name = format!("{}{}", &prefix[..end], self.identities().suffix());
                metadata.insert("name".into(), name.into());
                true
            }
            _ => false,
        }
    }

    /// Nothing new comes into a namespace that does not exist, or that is to go.
    fn check_namespace(&self, intent: &Intent<'_>, name: &str) -> Result<(), ApiError> {
        let kind = intent.kind;
        if !kind.namespaced {
            return Ok(());
        }
        let namespace = intent.namespace;
        match self.store().get("namespaces", &Key::new("", namespace)) {
            None => Err(ApiError::not_found("namespaces", "", namespace)),
            Some(entry) if entry.deleting => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let cause = Cause {
                    reason: "NamespaceTerminating".into(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".into(),
                };
                Err(ApiError::forbidden(&kind.plural, &kind.group, name, &why).with_causes(vec![cause]))
            }
            Some(_) => Ok(()),
        }
    }

    /// What the server decides about a new object.
    fn prepare_create(&self, kind: &Kind, object: &mut Value) {
        let fields = metadata(object);
        for decided in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
            fields.remove(decided);
        }
        fields.insert("creationTimestamp".into(), crate::time::format(self.now()).into());
        fields.insert("uid".into(), self.identities().uid().into());
        let counts = match &kind.origin {
            Origin::Builtin(builtin) => builtin.generation,
            Origin::Custom(_) => true,
        };
        if counts {
            fields.insert("generation".into(), 1.into());
        }
        if kind.is_custom() {
            drop_status(kind, object);
        }
        if let Origin::Builtin(builtin) = &kind.origin {
            (builtin.prepare)(object, None);
        }
    }

    /// What every cluster has from the start: its namespaces.
    pub(crate) fn create_first_objects(&self) {
        let Some(kind) = self.registry().stored("namespaces").cloned() else { return };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let mut object = serde_json::json!({
                "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name},
            });
            Self::fill(&kind, &mut object);
            self.prepare_create(&kind, &mut object);
            // One that is there stays as it is: the store is that of a server before.
            drop(self.store().put(&kind.resource, &Key::new("", name), Expect::Absent, object, self.now()));
        }
    }
}

/// 409: the name is taken, perhaps not for long.
fn name_taken(kind: &Kind, name: &str, by: Option<&Entry>) -> ApiError {
    let mut error = ApiError::already_exists(&kind.plural, &kind.group, name);
    if by.is_some_and(|entry| entry.deleting) {
        error.message = format!("object is being deleted: {}", error.message);
    }
    error
}

/// A new object brings no status, where that is written apart.
pub(crate) fn drop_status(kind: &Kind, object: &mut Value) {
    if begins_without_status(kind)
        && let Value::Object(object) = object
    {
        object.remove("status");
    }
}

fn begins_without_status(kind: &Kind) -> bool {
    kind.status && !kind.builtin().is_some_and(|builtin| builtin.status_on_create)
}

/// How an object is called that may have no name yet.
fn name_or_prefix(object: &Value) -> &str {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    text("name").or(text("generateName")).unwrap_or("Unknown")
}

/// The kind and version in the body must be those of the path; a built-in may leave them out.
pub(crate) fn check_kind(kind: &Arc<Kind>, object: &mut Value) -> Result<(), ApiError> {
    let Value::Object(fields) = object else { return Err(super::body::unrecognized(kind, b"", "not an object")) };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, name) = (text("apiVersion"), text("kind"));
    if kind.is_custom() && name.is_empty() {
        let sent = serde_json::to_string(&fields).unwrap_or_default();
        let why = format!("Object 'Kind' is missing in '{sent}'");
        return Err(super::body::unrecognized(kind, sent.as_bytes(), &why));
    }
    if !kind.is_custom()
        && let Some(why) = misfit(kind, version, name)
    {
        let (name, short) =
            (if name.is_empty() { &kind.kind } else { name }, version.rsplit('/').next().unwrap_or_default());
        let short = if short.is_empty() { &kind.version } else { short };
        let wanted = &kind.kind;
        return Err(ApiError::bad_request(format!(
            "{name} in version {short:?} cannot be handled as a {wanted}: {why}"
        )));
    }
    if kind.is_custom() && version != kind.api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version
        )));
    }
    if kind.is_custom() && name != kind.kind {
        let named = fields.get("metadata").and_then(|metadata| metadata["name"].as_str()).unwrap_or_default();
        let error = FieldError::invalid("kind", name, format!("must be {}", kind.kind));
        return Err(ApiError::invalid(name, &kind.group, named, &[error]));
    }
    fields.insert("apiVersion".into(), kind.api_version.as_str().into());
    fields.insert("kind".into(), kind.kind.as_str().into());
    Ok(())
}

/// Why an object that says to be of this version and kind is none of a built-in kind; `None` when it is.
pub(crate) fn misfit(kind: &Kind, version: &str, name: &str) -> Option<String> {
    let (version, name) = match (version, name) {
        ("", "") => return None,
        (version, "") => (version, kind.kind.as_str()),
        ("", name) => (kind.api_version.as_str(), name),
        both => both,
    };
    if version == kind.api_version && name == kind.kind {
        return None;
    }
    let short = version.rsplit('/').next().unwrap_or_default();
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let known = crate::kind::builtins::registry().find_kind(group, short, name).is_some();
    let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
    Some(if known {
        format!("converting ({short}.{name}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        format!("no kind {name:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
    })
}

/// Puts an object into the namespace that the path names.
pub(crate) fn place(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let kind = &call.kind;
    let fields = metadata(object);
    let given = fields.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !kind.namespaced {
        fields.remove("namespace");
        return Ok(());
    }
    if call.namespace.is_empty() {
        let why = "an empty namespace may not be set during creation";
        return Err(ApiError::invalid(
            &kind.kind,
            &kind.group,
            fields.get("name").and_then(Value::as_str).unwrap_or_default(),
            &[FieldError::required("metadata.namespace", why)],
        ));
    }
    if !given.is_empty() && given != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    fields.insert("namespace".into(), call.namespace.as_str().into());
    Ok(())
}

/// An owner counts once.
pub(crate) fn dedup_owners(object: &mut Value, warnings: &mut Vec<String>) {
    let Some(owners) = metadata(object).get_mut("ownerReferences").and_then(Value::as_array_mut) else { return };
    let mut seen: Vec<Value> = Vec::new();
    let mut again = Vec::new();
    owners.retain(|owner| {
        let uid = owner["uid"].clone();
        let known = seen.contains(&uid);
        if known {
            again.push(uid.as_str().unwrap_or_default().to_owned());
        } else {
            seen.push(uid);
        }
        !known
    });
    if !again.is_empty() {
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            again.join(", ")
        ));
    }
}
