//! The question and the answer, as they are on the wire.

use base64::Engine as _;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Attributes, Operation, Shown, Webhook};
use crate::field::quote;
use crate::patch::json::JsonPatch;
use crate::query::{FieldValidation, Query};
use crate::status::{ApiError, Cause};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// The versions of it that a real server can read.
const KNOWN: [&str; 2] = [API_VERSION, "admission.k8s.io/v1beta1"];

/// What a webhook may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Change the object, or refuse it.
    Mutating,
    /// Refuse it.
    Validating,
}

impl Role {
    /// The resource of the objects that say who has this role, by its name in the store.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            Self::Validating => "validatingwebhookconfigurations.admissionregistration.k8s.io",
        }
    }
}

/// Why there is no answer to go by.
pub(super) enum Failure {
    /// None was given, or none that can be understood: the failure policy decides.
    NoAnswer(String),
    /// The question could not be asked.
    Refusal(ApiError),
}

/// What a webhook said.
pub(super) struct Answer {
    response: Value,
    patch: JsonPatch,
}

/// The question.
pub(super) fn request(uid: &str, attributes: &Attributes<'_>, shown: &Shown<'_>) -> Value {
    let kind = attributes.kind;
    let user = attributes.user;
    let asked = shown.version.unwrap_or(kind);
    let identify = |kind| {
        let [group, version, kind] = attributes.shown_as(kind);
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut request = json!({
        "uid": uid,
        "kind": identify(asked),
        "resource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "requestKind": identify(kind),
        "requestResource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "operation": attributes.operation.as_str(),
        "userInfo": {},
        "object": shown.object.as_deref(),
        "oldObject": shown.old.as_deref(),
        "dryRun": attributes.dry_run,
        "options": options(attributes),
    });
    for (field, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ] {
        if !text.is_empty() {
            request[field] = text.into();
        }
    }
    let info = &mut request["userInfo"];
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info[field] = text.as_str().into();
        }
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "request": request})
}

/// The options of the request, as far as they are the same for all of its kind.
fn options(attributes: &Attributes<'_>) -> Value {
    let kind = match attributes.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if attributes.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let query = Query::parse(attributes.query);
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.first(field).filter(|value| !value.is_empty()) {
            options[field] = value.into();
        }
    }
    options
}

/// An answer of another kind, in the words of a real server.
fn unknown(version: &str, kind: &str) -> String {
    let (version, kind) = (quote(version), quote(kind));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

impl Answer {
    /// Reads the answer to the question with this uid.
    pub(super) fn read(uid: &str, role: Role, mut review: Value) -> Result<Self, String> {
        let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
        let (version, kind) = (review["apiVersion"].as_str(), review["kind"].as_str());
        let (version, kind) = (version.unwrap_or_default(), kind.unwrap_or_default());
        if kind != KIND || !KNOWN.contains(&version) {
            return Err(format!("failed to call webhook: {}", unknown(version, kind)));
        }
        let response = review.get_mut("response").map(Value::take).unwrap_or_default();
        if response.is_null() {
            return invalid("webhook response was absent".into());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if response["uid"] != uid {
            return invalid(format!("expected response.uid={}, got {}", quote(uid), quote(&text(&response["uid"]))));
        }
        if review["apiVersion"] != API_VERSION || review["kind"] != KIND {
            let found = text(&review["apiVersion"]);
            let (group, version) = found.split_once('/').unwrap_or(("", &found));
            let found = format!("{group}/{version}, Kind={}", text(&review["kind"]));
            return invalid(format!("expected webhook response of {API_VERSION}, Kind={KIND}, got {found}"));
        }
        let (patch, type_) = (response["patch"].as_str().filter(|patch| !patch.is_empty()), response.get("patchType"));
        let patch = match (role, patch, type_.filter(|type_| !type_.is_null())) {
            (_, None, None) => JsonPatch::default(),
            (Role::Validating, Some(_), _) => {
                return invalid("validating webhook may not return response.patch".into());
            }
            (Role::Validating, None, Some(_)) => {
                return invalid("validating webhook may not return response.patchType".into());
            }
            (Role::Mutating, Some(_), None) => {
                return invalid("webhook returned response.patch but not response.patchType".into());
            }
            (Role::Mutating, None, Some(_)) => {
                return invalid("webhook returned response.patchType but not response.patch".into());
            }
            (Role::Mutating, Some(_), Some(type_)) if type_ == "" => {
                return invalid("webhook returned invalid response.patchType of \"\"".into());
            }
            (Role::Mutating, Some(patch), Some(type_)) => read_patch(patch, &text(type_))?,
        };
        Ok(Self { response, patch })
    }

    /// What the webhook wants to change; or its refusal. Its warnings are added in either case.
    pub(super) fn allowed(self, webhook: &Webhook, warnings: &mut Vec<String>) -> Result<JsonPatch, ApiError> {
        let said = self.response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        warn_once(warnings, said.map(str::to_owned));
        // Whoever keeps an audit log reads these there; this server has its log.
        for (key, value) in self.response["auditAnnotations"].as_object().into_iter().flatten() {
            tracing::info!(webhook = webhook.name, annotation = %key, %value, "a webhook annotated a request");
        }
        if self.response["allowed"] == true {
            return Ok(self.patch);
        }
        Err(denial(&webhook.name, &self.response["status"]))
    }
}

/// Adds warnings; webhooks that agree say it once.
pub(super) fn warn_once(warnings: &mut Vec<String>, said: impl IntoIterator<Item = String>) {
    for warning in said {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

fn read_patch(encoded: &str, type_: &str) -> Result<JsonPatch, String> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
    let bytes = decoded.map_err(|why| format!("failed to call webhook: {why}"))?;
    let patch = JsonPatch::parse(&bytes, FieldValidation::Ignore)
        .map_err(|why| format!("received undecodable patch in webhook response: {why}"))?;
    if type_ != "JSONPatch" && !patch.is_empty() {
        return Err(format!("unsupported patch type {}", quote(type_)));
    }
    Ok(patch)
}

/// A refusal in the webhook's own words.
fn denial(name: &str, status: &Value) -> ApiError {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (said, reason) = (text(&status["message"]), text(&status["reason"]));
    let why = if said.is_empty() { &reason } else { &said };
    let name = quote(name);
    let message = if why.is_empty() {
        format!("admission webhook {name} denied the request without explanation")
    } else {
        format!("admission webhook {name} denied the request: {why}")
    };
    // A refusal below 400 would look like a success.
    let code =
        status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut error = ApiError::new(code, reason, message);
    if let Value::Object(given) = &status["details"] {
        let field = |name: &str| given.get(name).map(text).unwrap_or_default();
        let details = &mut error.details;
        (details.name, details.group, details.kind, details.uid) =
            (field("name"), field("group"), field("kind"), field("uid"));
        let seconds = given.get("retryAfterSeconds").and_then(Value::as_u64).unwrap_or_default();
        details.retry_after_seconds = u32::try_from(seconds).unwrap_or_default();
        details.even_if_empty = true;
        let causes = given.get("causes").and_then(Value::as_array).into_iter().flatten();
        details.causes = causes
            .map(|cause| Cause {
                reason: text(&cause["reason"]),
                message: text(&cause["message"]),
                field: text(&cause["field"]),
            })
            .collect();
    }
    error
}
