//! Admission: others have a say in a write before it is committed.
//!
//! A webhook gets the same `AdmissionReview` and gives the same answer whether it is called in process or over HTTPS; only the
//! [`Handler`] differs. Mutating webhooks run one after the other and see each other's changes; validating ones see the end
//! result. Everything runs for dry-run requests too, so that a dry run tells the truth.
//!
//! Some webhooks are added by whoever made the server; others come from the `MutatingWebhookConfiguration`s and
//! `ValidatingWebhookConfiguration`s in its store, if it was given somebody to carry its questions there
//! ([`crate::carrier`]). A server that was not keeps such configurations and asks nobody: a rehearsal calls no one.

mod configured;
mod review;
mod rule;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::auth::User;
use crate::carrier::Carrier;
use crate::field::quote;
use crate::identity::Identities;
use crate::kind::Kind;
use crate::selector::label::LabelSelector;
use crate::status::ApiError;
use crate::store::Store;

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
    /// The rules are also about the other versions of a kind: an object is then shown in a version that they name.
    pub equivalent: bool,
    /// What must hold, besides all this, for the webhook to be asked.
    pub conditions: Option<Arc<dyn Conditions>>,
    /// Whom to ask.
    pub handler: Arc<dyn Handler>,
}

/// The match conditions of a webhook. The server answers them itself, also while whoever reviews cannot be reached.
pub trait Conditions: Send + Sync {
    /// Whether there is anything to ask; an error says why nobody can tell.
    fn hold(&self, attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> Result<bool, String>;
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
    /// The query string, as sent.
    pub query: &'a str,
}

impl Attributes<'_> {
    /// The group, version and kind of what is shown of an object of that kind: some subresources are objects of their own.
    pub(crate) fn shown_as<'k>(&self, kind: &'k Kind) -> [&'k str; 3] {
        match self.subresource {
            "scale" => ["autoscaling", "v1", "Scale"],
            _ => [&kind.group, &kind.version, &kind.kind],
        }
    }
}

/// What admission needs of the server around it.
pub(crate) trait Around: Sync {
    /// Gives an object that a webhook patched its shape again: defaults, and no fields that its kind does not have.
    fn reshape(&self, kind: &Kind, object: &mut Value) -> Result<(), ApiError>;

    /// The other versions in which objects of the kind are served.
    fn equivalents(&self, kind: &Kind) -> Vec<Arc<Kind>>;

    /// Brings an object into another version of its kind.
    fn convert<'a>(&'a self, object: Value, to: &'a Kind) -> BoxFuture<'a, Result<Value, ApiError>>;
}

/// The webhooks of a server.
pub struct Admission {
    mutating: RwLock<Vec<Arc<Webhook>>>,
    validating: RwLock<Vec<Arc<Webhook>>>,
    /// Those that objects in the store describe, asked after the others.
    configured: [RwLock<Vec<Arc<Webhook>>>; 2],
    carrier: RwLock<Option<Arc<dyn Carrier>>>,
    /// Names reviews. Apart from the identities of objects: who is asked does not change what objects are called.
    reviews: Identities,
}

impl Admission {
    /// No webhooks yet. The seed names the reviews.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            mutating: RwLock::default(),
            validating: RwLock::default(),
            configured: Default::default(),
            carrier: RwLock::default(),
            reviews: Identities::new(!seed),
        }
    }

    /// Adds a webhook that may change objects, after those that are there.
    pub fn add_mutating(&self, webhook: Webhook) {
        self.mutating.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(webhook));
    }

    /// Adds a webhook that may only refuse, after those that are there.
    pub fn add_validating(&self, webhook: Webhook) {
        self.validating.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(webhook));
    }

    /// Reads the configurations of a resource anew, if it is one that has them.
    pub(crate) fn configure(&self, resource: &str, store: &Store) {
        let Some(carrier) = &self.carrier() else { return };
        for (role, list) in [Role::Mutating, Role::Validating].into_iter().zip(&self.configured) {
            if role.resource() == resource {
                let webhooks = configured::webhooks(role, carrier, store);
                *list.write().unwrap_or_else(PoisonError::into_inner) = webhooks;
            }
        }
    }

    /// Asks those who are configured from now on, too.
    pub(crate) fn reach(&self, carrier: Arc<dyn Carrier>, store: &Store) {
        *self.carrier.write().unwrap_or_else(PoisonError::into_inner) = Some(carrier);
        for role in [Role::Mutating, Role::Validating] {
            self.configure(role.resource(), store);
        }
    }

    /// Lets the mutating webhooks change an object. Warnings are added to `warnings`.
    pub(crate) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        around: &dyn Around,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let webhooks = self.concerned(Role::Mutating, attributes, around);
        // Who wants to see the object again: those who were asked, and then somebody after them made a change.
        let (mut asked, mut again) = (BTreeSet::new(), BTreeSet::new());
        for (i, concerned) in webhooks.iter().enumerate() {
            let view = View { attributes, old, around };
            let Some(changed) = self.change(concerned, &view, object.as_deref_mut(), warnings).await? else { continue };
            if changed {
                again.append(&mut asked);
            }
            if concerned.webhook.reinvoke {
                asked.insert(i);
            }
        }
        // Once: what they change now they do not see again.
        for concerned in again.into_iter().map(|i| &webhooks[i]) {
            let view = View { attributes, old, around };
            self.change(concerned, &view, object.as_deref_mut(), warnings).await?;
        }
        Ok(())
    }

    /// Asks one mutating webhook; returns whether it changed the object, or nothing if there was no need to ask.
    async fn change(
        &self,
        concerned: &Concerned,
        view: &View<'_>,
        object: Option<&mut Value>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<bool>, ApiError> {
        let Concerned { webhook, .. } = concerned;
        let Some(shown) = concerned.shown(view, object.as_deref()).await? else { return Ok(None) };
        let answer = match self.ask(webhook, Role::Mutating, view.attributes, &shown).await {
            Ok(answer) => answer,
            Err(failure) => return webhook.without_answer(failure).map(|()| Some(false)),
        };
        let patch = answer.allowed(webhook, warnings)?;
        if patch.is_empty() {
            return Ok(Some(false));
        }
        let seen = shown.object.map(Cow::into_owned);
        let (Some(object), Some(mut changed)) = (object, seen) else {
            let name = quote(&webhook.name);
            let why = "attempted to modify the object, which is not supported for this operation";
            return Err(ApiError::internal(&format!("admission webhook {name} {why}")));
        };
        patch.apply(&mut changed).map_err(|why| ApiError::internal(&why.message))?;
        let kind = view.attributes.kind;
        if view.attributes.subresource == "scale" {
            // Whoever wrote it reads of it what it knows: a number.
        } else if let Some(version) = &concerned.version {
            view.around.reshape(version, &mut changed)?;
            changed = view.around.convert(changed, kind).await?;
        } else {
            view.around.reshape(kind, &mut changed)?;
        }
        let differs = changed != *object;
        *object = changed;
        Ok(Some(differs))
    }

    /// Asks the validating webhooks, all of them and at once: each may have a warning to give.
    pub(crate) async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        around: &dyn Around,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let webhooks = self.concerned(Role::Validating, attributes, around);
        let view = View { attributes, old, around };
        let asking = webhooks.iter().map(|concerned| {
            let view = &view;
            async move {
                let Concerned { webhook, .. } = concerned;
                let mut said = Vec::new();
                let verdict = match concerned.shown(view, object).await {
                    Ok(None) => Ok(()),
                    Ok(Some(shown)) => match self.ask(webhook, Role::Validating, attributes, &shown).await {
                        Ok(answer) => answer.allowed(webhook, &mut said).map(drop),
                        Err(failure) => webhook.without_answer(failure),
                    },
                    Err(refusal) => Err(refusal),
                };
                (verdict, said)
            }
        });
        let mut first = Ok(());
        for (verdict, said) in futures::future::join_all(asking).await {
            review::warn_once(warnings, said);
            first = first.and(verdict);
        }
        first
    }

    async fn ask(
        &self,
        webhook: &Webhook,
        role: Role,
        attributes: &Attributes<'_>,
        shown: &Shown<'_>,
    ) -> Result<Answer, Failure> {
        if attributes.dry_run && webhook.side_effects {
            let why = format!("admission webhook {} does not support dry run", quote(&webhook.name));
            return Err(Failure::Refusal(ApiError::bad_request(why)));
        }
        let uid = self.reviews.uid();
        let review = review::request(&uid, attributes, shown);
        match webhook.handler.review(review).await {
            Ok(answer) => Answer::read(&uid, role, answer).map_err(Failure::NoAnswer),
            Err(why) => Err(Failure::NoAnswer(format!("failed to call webhook: {why}"))),
        }
    }

    /// Who takes questions to others.
    pub(crate) fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        self.carrier.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The uid of a question.
    pub(crate) fn review_uid(&self) -> String {
        self.reviews.uid()
    }

    /// Whether anybody would have to be asked at all; most servers have no webhooks.
    pub fn is_empty(&self) -> bool {
        let none = |list: &RwLock<Vec<Arc<Webhook>>>| list.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        none(&self.mutating) && none(&self.validating) && self.configured.iter().all(none)
    }

    /// The webhooks with a rule for the write. Nobody is asked about webhook configurations: a broken one could not be
    /// repaired.
    fn concerned(&self, role: Role, attributes: &Attributes<'_>, around: &dyn Around) -> Vec<Concerned> {
        if attributes.kind.group == "admissionregistration.k8s.io" {
            return Vec::new();
        }
        let lists = match role {
            Role::Mutating => [&self.mutating, &self.configured[0]],
            Role::Validating => [&self.validating, &self.configured[1]],
        };
        let mut concerned = Vec::new();
        for list in lists {
            let webhooks = list.read().unwrap_or_else(PoisonError::into_inner);
            concerned.extend(webhooks.iter().filter_map(|webhook| Concerned::by(webhook, attributes, around)));
        }
        concerned
    }
}

/// A webhook that has a rule for a write.
struct Concerned {
    webhook: Arc<Webhook>,
    /// The version that its rule names, where that is another one than is written.
    version: Option<Arc<Kind>>,
}

/// A write, as the webhooks look at it.
struct View<'a> {
    attributes: &'a Attributes<'a>,
    old: Option<&'a Value>,
    around: &'a dyn Around,
}

/// What a webhook is shown.
struct Shown<'a> {
    /// The version that it wants, where that is another one than is written.
    version: Option<&'a Kind>,
    object: Option<Cow<'a, Value>>,
    old: Option<Cow<'a, Value>>,
}

impl Concerned {
    fn by(webhook: &Arc<Webhook>, attributes: &Attributes<'_>, around: &dyn Around) -> Option<Self> {
        let wants = |kind: &Kind| webhook.rules.iter().any(|rule| rule.matches(attributes, kind));
        let version = if wants(attributes.kind) {
            None
        } else if webhook.equivalent {
            Some(around.equivalents(attributes.kind).into_iter().find(|kind| wants(kind))?)
        } else {
            return None;
        };
        Some(Self { webhook: Arc::clone(webhook), version })
    }

    /// What the webhook is shown, if it is to be asked.
    async fn shown<'a>(&'a self, view: &View<'a>, object: Option<&'a Value>) -> Result<Option<Shown<'a>>, ApiError> {
        let View { attributes, old, around } = *view;
        if !self.webhook.selects(attributes, object, old) {
            return Ok(None);
        }
        let version = self.version.as_deref();
        let in_version = async |value: Option<&'a Value>| match (value, version) {
            (Some(value), Some(version)) => around.convert(value.clone(), version).await.map(|it| Some(Cow::Owned(it))),
            (value, _) => Ok(value.map(Cow::Borrowed)),
        };
        let shown = Shown { version, object: in_version(object).await?, old: in_version(old).await? };
        let Some(conditions) = &self.webhook.conditions else { return Ok(Some(shown)) };
        let attributes = Attributes { kind: version.unwrap_or(attributes.kind), ..*attributes };
        match conditions.hold(&attributes, shown.object.as_deref(), shown.old.as_deref()) {
            Ok(hold) => Ok(hold.then_some(shown)),
            Err(why) if self.webhook.failure == FailurePolicy::Ignore => {
                tracing::warn!(webhook = self.webhook.name, why, "cannot tell whether to ask, the request goes on");
                Ok(None)
            }
            Err(why) => {
                let kind = attributes.kind;
                Err(ApiError::forbidden(&kind.plural, &kind.group, attributes.name, &why))
            }
        }
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
