//! Admission: others have a say in a write before it is committed.
//!
//! A webhook gets the same `AdmissionReview` and gives the same answer whether it is called in process or over HTTPS; only the
//! [`Handler`] differs. Mutating webhooks run one after the other and see each other's changes; validating ones see the end
//! result. Everything runs for dry-run requests too, so that a dry run tells the truth.

mod review;
mod rule;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::auth::User;
use crate::field::quote;
use crate::identity::Identities;
use crate::kind::Kind;
use crate::selector::label::LabelSelector;
use crate::status::ApiError;

pub use rule::{Rule, Scope};

use review::{Answer, Failure, Role};

/// Answers reviews.
pub trait Handler: Send + Sync {
    /// Takes an `AdmissionReview` with a request, and gives one with a response to the request's uid. An error means that no
    /// answer was to be had.
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>>;

    /// Whether there is anything to ask about a write, by the object and what it was before: the match conditions of a webhook.
    /// The server answers this itself, also while whoever reviews cannot be reached.
    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        let _ = (object, old);
        true
    }
}

/// What a webhook wants to be asked about, and whom to ask.
#[derive(Clone)]
pub struct Webhook {
    /// A qualified name; refusals mention it.
    pub name: String,
    /// Which requests. None match without a rule.
    pub rules: Vec<Rule>,
    /// Only objects in namespaces with these labels, and namespaces with these labels. Other objects outside of namespaces are
    /// always asked about.
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
    /// The namespace, or nothing. A namespace is in itself.
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

/// Gives an object that a webhook patched its shape again: defaults, and no fields that its kind does not have.
pub type Reshape<'a> = &'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Sync);

/// The webhooks of a server.
pub struct Admission {
    mutating: RwLock<Vec<Arc<Webhook>>>,
    validating: RwLock<Vec<Arc<Webhook>>>,
    /// Names reviews. Apart from the identities of objects: who is asked does not change what objects are called.
    reviews: Identities,
}

impl Admission {
    /// No webhooks yet. The seed names the reviews.
    pub fn new(seed: u64) -> Self {
        Self { mutating: RwLock::default(), validating: RwLock::default(), reviews: Identities::new(!seed) }
    }

    /// Adds a webhook that may change objects, after those that are there.
    pub fn add_mutating(&self, webhook: Webhook) {
        self.mutating.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(webhook));
    }

    /// Adds a webhook that may only refuse, after those that are there.
    pub fn add_validating(&self, webhook: Webhook) {
        self.validating.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(webhook));
    }

    /// Lets the mutating webhooks change an object. Warnings are added to `warnings`.
    pub async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        reshape: Reshape<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let webhooks = concerned(&self.mutating, attributes);
        // Who wants to see the object again: those who were asked, and then somebody after them made a change.
        let (mut asked, mut again) = (BTreeSet::new(), BTreeSet::new());
        for (i, webhook) in webhooks.iter().enumerate() {
            if !webhook.selects(attributes, object.as_deref(), old) {
                continue;
            }
            if self.change(webhook, attributes, object.as_deref_mut(), old, reshape, warnings).await? {
                again.append(&mut asked);
            }
            if webhook.reinvoke {
                asked.insert(i);
            }
        }
        // Once: what they change now they do not see again.
        for webhook in again.into_iter().map(|i| &webhooks[i]) {
            if webhook.selects(attributes, object.as_deref(), old) {
                self.change(webhook, attributes, object.as_deref_mut(), old, reshape, warnings).await?;
            }
        }
        Ok(())
    }

    /// Asks one mutating webhook; returns whether it changed the object.
    async fn change(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
        reshape: Reshape<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let answer = match self.ask(webhook, Role::Mutating, attributes, object.as_deref(), old).await {
            Ok(answer) => answer,
            Err(failure) => return webhook.without_answer(failure).map(|()| false),
        };
        let patch = answer.allowed(webhook, warnings)?;
        if patch.is_empty() {
            return Ok(false);
        }
        let Some(object) = object else {
            let name = quote(&webhook.name);
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(ApiError::internal(&format!("admission webhook {name} {why}")));
        };
        let mut changed = object.clone();
        patch.apply(&mut changed).map_err(|_| {
            ApiError::internal(&format!("the patch of admission webhook {} does not apply", quote(&webhook.name)))
        })?;
        reshape(&mut changed)?;
        let differs = changed != *object;
        *object = changed;
        Ok(differs)
    }

    /// Asks the validating webhooks, all of them: each may have a warning to give.
    pub async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let mut first = Ok(());
        for webhook in concerned(&self.validating, attributes) {
            if !webhook.selects(attributes, object, old) {
                continue;
            }
            let verdict = match self.ask(&webhook, Role::Validating, attributes, object, old).await {
                Ok(answer) => answer.allowed(&webhook, warnings).map(drop),
                Err(failure) => webhook.without_answer(failure),
            };
            first = first.and(verdict);
        }
        first
    }

    async fn ask(
        &self,
        webhook: &Webhook,
        role: Role,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Answer, Failure> {
        if attributes.dry_run && webhook.side_effects {
            let why = format!("admission webhook {} does not support dry run", quote(&webhook.name));
            return Err(Failure::Refusal(ApiError::bad_request(why)));
        }
        let uid = self.reviews.uid();
        let review = review::request(&uid, attributes, object, old);
        match webhook.handler.review(review).await {
            Ok(answer) => Answer::read(&uid, role, answer).map_err(Failure::NoAnswer),
            Err(why) => Err(Failure::NoAnswer(format!("failed to call webhook: {why}"))),
        }
    }

    /// Whether anybody would have to be asked at all; most servers have no webhooks.
    pub fn is_empty(&self) -> bool {
        let none = |list: &RwLock<Vec<Arc<Webhook>>>| list.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        none(&self.mutating) && none(&self.validating)
    }
}

impl Webhook {
    /// What no answer means for the request.
    fn without_answer(&self, failure: Failure) -> Result<(), ApiError> {
        match failure {
            Failure::Refusal(refusal) => Err(refusal),
            Failure::NoAnswer(why) if self.failure == FailurePolicy::Ignore => {
                tracing::warn!(webhook = self.name, why, "failed calling webhook, the request goes on");
                Ok(())
            }
            Failure::NoAnswer(why) => {
                Err(ApiError::internal(&format!("failed calling webhook {}: {why}", quote(&self.name))))
            }
        }
    }

    /// Whether the labels of the object and of its namespace are those that the webhook wants to be asked about.
    fn selects(&self, attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> bool {
        self.selects_namespace(attributes, object)
            && self.selects_object(object, old)
            && self.handler.concerns(object, old)
    }

    fn selects_namespace(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
        let selector = &self.namespace_selector;
        let itself = &*attributes.kind.resource == "namespaces";
        match object {
            // A namespace is in itself, and as it is going to be.
            Some(namespace) if itself && attributes.subresource.is_empty() => {
                selector.matches(&namespace["metadata"]["labels"])
            }
            _ if attributes.namespace.is_empty() => true,
            _ => selector.matches(attributes.namespace_labels),
        }
    }

    fn selects_object(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        let selected = |object: &Value| self.object_selector.matches(&object["metadata"]["labels"]);
        self.object_selector.is_everything() || object.is_some_and(selected) || old.is_some_and(selected)
    }
}

/// The webhooks with a rule for the write. Nobody is asked about webhook configurations: a broken one could not be repaired.
fn concerned(webhooks: &RwLock<Vec<Arc<Webhook>>>, attributes: &Attributes<'_>) -> Vec<Arc<Webhook>> {
    if attributes.kind.group == "admissionregistration.k8s.io" {
        return Vec::new();
    }
    let webhooks = webhooks.read().unwrap_or_else(PoisonError::into_inner);
    let wanted = webhooks.iter().filter(|webhook| webhook.rules.iter().any(|rule| rule.matches(attributes)));
    wanted.cloned().collect()
}
