//! Admission: others have a say in a write before it is committed.
//!
//! A webhook gets the same `AdmissionReview` and gives the same answer whether it is called in process or over HTTPS; only the
//! [`Handler`] differs. Mutating webhooks run one after the other and see each other's changes; validating ones see the end
//! result. Everything runs for dry-run requests too, so that a dry run tells the truth.

use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};

use crate::auth::User;
use crate::kind::Kind;
use crate::patch;
use crate::selector::label::LabelSelector;
use crate::status::ApiError;

/// Answers reviews.
pub trait Handler: Send + Sync {
    /// Takes an `AdmissionReview` with a request, and gives one with a response. An error means that no answer was to be had.
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>>;
}

/// What a webhook wants to be asked about, and whom to ask.
#[derive(Clone)]
pub struct Webhook {
    /// A qualified name; refusals mention it.
    pub name: String,
    /// Which requests. None match without a rule.
    pub rules: Vec<Rule>,
    /// Only objects in namespaces with these labels.
    pub namespace_selector: LabelSelector,
    /// Only objects with these labels, before or after the write.
    pub object_selector: LabelSelector,
    /// What happens when no answer is to be had.
    pub failure: FailurePolicy,
    /// Whether to ask again when a later webhook changed the object. (Mutating webhooks only.)
    pub reinvoke: bool,
    /// The webhook changes something outside of the request; then it cannot be asked about a dry run.
    pub side_effects: bool,
    /// Whom to ask.
    pub handler: Arc<dyn Handler>,
}

/// What happens when a webhook gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request goes on.
    Ignore,
}

/// Which requests a webhook is asked about. `*` stands for all.
#[derive(Debug, Clone)]
pub struct Rule {
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
    /// The API groups.
    pub groups: Vec<String>,
    /// The versions.
    pub versions: Vec<String>,
    /// `pods`, `pods/status`, `*`, `*/*`.
    pub resources: Vec<String>,
}

impl Rule {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let any = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
        let kind = attributes.kind;
        any(&self.operations, attributes.operation.as_str())
            && any(&self.groups, &kind.group)
            && any(&self.versions, &kind.version)
            && self.resources.iter().any(|wanted| {
                let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
                (resource == "*" || resource == kind.plural)
                    && (subresource == attributes.subresource || subresource == "*")
            })
    }
}

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object that goes.
    Delete,
}

impl Operation {
    /// As reviews spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// What a write is about.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// The kind of the object.
    pub kind: &'a Kind,
    /// What is done to it.
    pub operation: Operation,
    /// The part of the object that is written, or nothing.
    pub subresource: &'a str,
    /// The namespace, or nothing.
    pub namespace: &'a str,
    /// The name; empty when the server has yet to make one.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// Nothing will be written.
    pub dry_run: bool,
    /// The labels of the namespace that the object is in.
    pub namespace_labels: &'a [(Box<str>, Box<str>)],
}

/// The webhooks of a server.
#[derive(Default)]
pub struct Admission {
    mutating: RwLock<Vec<Webhook>>,
    validating: RwLock<Vec<Webhook>>,
}

impl Admission {
    /// Adds a webhook that may change objects, after those that are there.
    pub fn add_mutating(&self, webhook: Webhook) {
        self.mutating.write().unwrap_or_else(PoisonError::into_inner).push(webhook);
    }

    /// Adds a webhook that may only refuse, after those that are there.
    pub fn add_validating(&self, webhook: Webhook) {
        self.validating.write().unwrap_or_else(PoisonError::into_inner).push(webhook);
    }

    /// Lets the mutating webhooks change an object; returns whether one did. Warnings are added to `warnings`.
    pub async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let webhooks = matching(&self.mutating, attributes, Some(object), old);
        let mut last_change = None;
        for (i, webhook) in webhooks.iter().enumerate() {
            if call(webhook, attributes, Some(object), old, warnings).await? {
                last_change = Some(i);
            }
        }
        // Whoever asked for it sees the object again, once, if somebody after it made a change.
        let Some(last) = last_change else { return Ok(false) };
        for webhook in webhooks.iter().take(last).filter(|webhook| webhook.reinvoke) {
            call(webhook, attributes, Some(object), old, warnings).await?;
        }
        Ok(true)
    }

    /// Asks the validating webhooks.
    pub async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        for webhook in matching(&self.validating, attributes, object, old) {
            let mut unchanged = object.cloned();
            call(&webhook, attributes, unchanged.as_mut(), old, warnings).await?;
        }
        Ok(())
    }

    /// Whether anybody would have to be asked at all; most servers have no webhooks.
    pub fn is_empty(&self) -> bool {
        let none = |list: &RwLock<Vec<Webhook>>| list.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        none(&self.mutating) && none(&self.validating)
    }
}

fn matching(
    webhooks: &RwLock<Vec<Webhook>>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Vec<Webhook> {
    let labels_match = |webhook: &Webhook, object: Option<&Value>| {
        object.is_some_and(|object| webhook.object_selector.matches(&object["metadata"]["labels"]))
    };
    let webhooks = webhooks.read().unwrap_or_else(PoisonError::into_inner);
    let wanted = webhooks.iter().filter(|webhook| {
        webhook.rules.iter().any(|rule| rule.matches(attributes))
            && (attributes.namespace.is_empty() || webhook.namespace_selector.matches(attributes.namespace_labels))
            && (labels_match(webhook, object) || labels_match(webhook, old))
    });
    wanted.cloned().collect()
}

/// Asks one webhook; returns whether it changed the object.
async fn call(
    webhook: &Webhook,
    attributes: &Attributes<'_>,
    object: Option<&mut Value>,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<bool, ApiError> {
    let name = &webhook.name;
    if attributes.dry_run && webhook.side_effects {
        return Err(ApiError::bad_request(format!("admission webhook {name:?} does not support dry run")));
    }
    let review = request(attributes, object.as_deref(), old);
    let response = match webhook.handler.review(review).await {
        Ok(mut answer) => answer["response"].take(),
        Err(_) if webhook.failure == FailurePolicy::Ignore => return Ok(false),
        Err(why) => return Err(ApiError::internal(&format!("failed calling webhook {name:?}: {why}"))),
    };
    if let Value::Array(given) = &response["warnings"] {
        warnings.extend(given.iter().filter_map(|warning| warning.as_str().map(str::to_owned)));
    }
    if response["allowed"] != true {
        return Err(denial(name, &response["status"]));
    }
    match (object, response["patch"].as_str()) {
        (Some(object), Some(patch)) => apply_patch(name, object, patch),
        _ => Ok(false),
    }
}

fn apply_patch(name: &str, object: &mut Value, encoded: &str) -> Result<bool, ApiError> {
    use base64::Engine as _;
    let broken = |why: String| ApiError::internal(&format!("admission webhook {name:?} gave a broken patch: {why}"));
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|e| broken(e.to_string()))?;
    let before = object.clone();
    patch::json::apply(object, &bytes).map_err(|e| broken(e.to_string()))?;
    Ok(*object != before)
}

fn request(attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> Value {
    let kind = attributes.kind;
    let uid = object.or(old).and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or_default();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
            "subResource": attributes.subresource,
            "requestKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "requestResource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
            "name": attributes.name,
            "namespace": attributes.namespace,
            "operation": attributes.operation.as_str(),
            "userInfo": {"username": attributes.user.name, "groups": attributes.user.groups},
            "object": object,
            "oldObject": old,
            "dryRun": attributes.dry_run,
        },
    })
}

/// A refusal in the webhook's own words.
fn denial(name: &str, status: &Value) -> ApiError {
    let given = status["message"].as_str().or(status["reason"].as_str()).filter(|text| !text.is_empty());
    let message = match given {
        Some(text) => format!("admission webhook {name:?} denied the request: {text}"),
        None => format!("admission webhook {name:?} denied the request without explanation"),
    };
    // A refusal below 400 would look like a success.
    let code =
        status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    ApiError::new(code, status["reason"].as_str().unwrap_or_default().to_owned(), message)
}
