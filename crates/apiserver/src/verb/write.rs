//! What every write goes through, in the order of a real server: decode, shape, own, admit, prepare, validate, commit.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::call::Shown;
use crate::admission::{Around, Attributes, Operation};
use crate::apply;
use crate::auth::User;
use crate::builtin::validate;
use crate::field::FieldError;
use crate::kind::{Kind, Origin, Scale, builtins};
use crate::meta::{self, NameRule};
use crate::patch::strategic;
use crate::query::FieldValidation;
use crate::schema;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Expect, Key, Mismatch, Waits};
use crate::subresource::scale;

/// A body as it was sent, and what was odd about it.
pub(crate) struct Decoded {
    pub(crate) object: Value,
    /// Keys that stand twice, in the words of strict decoding.
    pub(crate) oddities: Vec<String>,
}

/// The write that a request asks for, apart from the object itself.
pub(crate) struct Intent<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) manager: &'a str,
    pub(crate) user: &'a User,
    pub(crate) dry_run: bool,
    /// The query string, as sent.
    pub(crate) query: &'a str,
}

impl<'a> Intent<'a> {
    /// Where the object has its scale, if that is what is written.
    fn scale(&self) -> Option<&'a Scale> {
        self.kind.scale.as_ref().filter(|_| self.subresource == "scale")
    }
}

/// An object that was written, or would have been.
pub(crate) struct Written {
    pub(crate) shown: Shown,
    pub(crate) warnings: Vec<String>,
}

impl Written {
    /// What came of a write, with the warnings there were: a refusal has them, too.
    pub(crate) fn with(outcome: Result<Shown, ApiError>, warnings: Vec<String>) -> Result<Self, ApiError> {
        match outcome {
            Ok(shown) => Ok(Self { shown, warnings }),
            Err(refusal) => Err(refusal.with_warnings(&warnings)),
        }
    }
}

impl ApiServer {
    /// Makes an object of the right kind and shape: unknown fields go (or are refused), absent ones get their defaults.
    pub(crate) fn shape(
        kind: &Kind,
        object: &mut Value,
        validation: FieldValidation,
        oddities: Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Unfit> {
        Self::fit(kind, object, validation, oddities, warnings)?;
        Self::fill(kind, object);
        Ok(())
    }

    /// Makes an object of the right kind: unknown fields go, or are refused.
    pub(crate) fn fit(
        kind: &Kind,
        object: &mut Value,
        validation: FieldValidation,
        mut oddities: Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Unfit> {
        if let Some(why) = Self::undecodable(kind, object) {
            return Err(Unfit::Undecodable(why));
        }
        let mut unknown = Vec::new();
        let wanted = (validation != FieldValidation::Ignore).then_some(&mut unknown);
        schema::prune::prune(object, &kind.schema, wanted);
        if !kind.is_custom() {
            // The fields of a struct are named in the order of their paths.
            unknown.sort();
        }
        oddities.extend(unknown.into_iter().map(|path| format!("unknown field {path:?}")));
        match validation {
            FieldValidation::Strict if !oddities.is_empty() => return Err(Unfit::Strict(oddities)),
            FieldValidation::Warn => warnings.append(&mut oddities),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        Ok(())
    }

    /// The first value of the wrong type in what is a struct to a real server: a built-in object, or any object's metadata.
    fn undecodable(kind: &Kind, object: &Value) -> Option<String> {
        if !kind.is_custom() {
            return schema::unmarshal::decode_errors(object, &kind.schema, &kind.kind, &kind.version);
        }
        let metadata = builtins::object_meta()?;
        schema::unmarshal::decode_errors(&object["metadata"], metadata, &kind.kind, &kind.version)
    }

    /// Fills in defaults.
    pub(crate) fn fill(kind: &Kind, object: &mut Value) {
        schema::default::fill(object, &kind.schema);
        Self::omit_empty(kind, object);
    }

    /// Fills in defaults after an apply. A null that a configuration has for a custom resource is not overlooked.
    pub(crate) fn fill_applied(kind: &Kind, object: &mut Value) {
        if kind.is_custom() {
            schema::default::fill_applied(object, &kind.schema);
            if let (Some(schema), Some(metadata)) = (builtins::object_meta(), object.get_mut("metadata")) {
                schema::default::fill(metadata, schema);
            }
            Self::omit_empty(kind, object);
        } else {
            Self::fill(kind, object);
        }
    }

    fn omit_empty(kind: &Kind, object: &mut Value) {
        if let Origin::Builtin(builtin) = &kind.origin {
            (builtin.default)(object);
            schema::omit::empty(object, &kind.schema);
        } else if let (Some(schema), Some(metadata)) = (builtins::object_meta(), object.get_mut("metadata")) {
            schema::omit::empty(metadata, schema);
        }
    }

    /// Records who owns which fields after a write that is not an apply.
    pub(crate) fn own(&self, intent: &Intent<'_>, before: Option<&Value>, after: &mut Value) {
        apply::update(&self.ownership(intent), before, after);
    }

    /// What field ownership is recorded under.
    pub(crate) fn ownership<'a>(&self, intent: &Intent<'a>) -> apply::Request<'a> {
        let kind = intent.kind;
        let reset: &'static [&'static [&'static str]] = match (intent.subresource, kind.status) {
            ("", true) => &[&["status"]],
            ("status", _) if kind.is_custom() => &[&["metadata"], &["spec"]],
            ("status", _) if &*kind.resource == "deployments.apps" => &[&["spec"], &["metadata", "labels"]],
            ("status", _) if &*kind.resource == "pods" => {
                &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
            }
            ("status", _) => &[&["spec"]],
            _ => &[],
        };
        apply::Request {
            schema: &kind.schema,
            manager: intent.manager,
            kind: &kind.kind,
            api_version: &kind.api_version,
            subresource: intent.subresource,
            now: self.now(),
            reset,
        }
    }

    /// Lets mutating webhooks change an object; what they leave is shaped again. An object that goes is not theirs to change.
    pub(crate) async fn admit(
        &self,
        intent: &Intent<'_>,
        operation: Operation,
        object: Option<&mut Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if self.admission().is_empty() {
            return Ok(());
        }
        let name = name(object.as_deref().or(old)).to_owned();
        let namespace = namespace(intent, &name);
        let labels = self.namespace_labels(namespace);
        let attributes = attributes(intent, operation, namespace, &name, &labels);
        let Some(scale) = intent.scale() else {
            return self.admission().mutate(&attributes, object, old, self, warnings).await;
        };
        let Some(object) = object else { return Ok(()) };
        // Of an object that is scaled only the scale is shown, and only the number of replicas is taken.
        let mut shown = scale::show(intent.kind, scale, object);
        let before = old.map(|old| scale::show(intent.kind, scale, old));
        self.admission().mutate(&attributes, Some(&mut shown), before.as_ref(), self, warnings).await?;
        scale::settle(scale, &shown, object);
        Ok(())
    }

    /// Asks the validating webhooks.
    pub(crate) async fn review(
        &self,
        intent: &Intent<'_>,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if self.admission().is_empty() {
            return Ok(());
        }
        let name = name(object.or(old));
        let namespace = namespace(intent, name);
        let labels = self.namespace_labels(namespace);
        let attributes = attributes(intent, operation, namespace, name, &labels);
        let scaled = intent.scale().map(|scale| [object, old].map(|it| Some(scale::show(intent.kind, scale, it?))));
        let [object, old] = scaled.as_ref().map_or([object, old], |[object, old]| [object.as_ref(), old.as_ref()]);
        self.admission().validate(&attributes, object, old, self, warnings).await
    }

    fn namespace_labels(&self, namespace: &str) -> Vec<(Box<str>, Box<str>)> {
        let entry = self.store().get("namespaces", &Key::new("", namespace));
        entry.map(|entry| entry.labels.to_vec()).unwrap_or_default()
    }

    /// What is wrong with an object, if anything.
    pub(crate) fn check(
        kind: &Kind,
        object: &Value,
        old: Option<&Value>,
        subresource: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let metadata = &object["metadata"];
        let mut errors = meta::validate(metadata, kind.namespaced, name_rule(kind, old));
        if let Some(old) = old {
            // A real server asks twice, and lists the causes twice.
            let changed = meta::validate_update(metadata, &old["metadata"]);
            errors.extend(changed.iter().cloned().chain(changed.clone()));
            if subresource.is_empty() && VALIDATED_AGAIN.contains(&&*kind.resource) {
                meta::standard_finalizers(metadata, &mut errors);
                errors.extend(meta::validate(metadata, kind.namespaced, name_rule(kind, Some(old))));
            }
        }
        let (mentioned, found): (Vec<_>, Vec<_>) =
            kind.problems(object, old, subresource).into_iter().partition(|error| error.is_old);
        warnings.extend(mentioned.iter().map(ToString::to_string));
        errors.extend(found);
        if errors.is_empty() { Ok(()) } else { Err(Self::invalid(kind, object, &errors)) }
    }

    /// The refusal of an object with these faults.
    pub(crate) fn invalid(kind: &Kind, object: &Value, errors: &[FieldError]) -> ApiError {
        let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let name = name.or(object["metadata"]["generateName"].as_str()).unwrap_or_default();
        // Both faces of an event are refused as one kind.
        let group = if kind.group == crate::builtin::events::GROUP { "" } else { &kind.group };
        ApiError::invalid(&kind.kind, group, name, errors)
    }

    /// Commits an object and waits until it would survive a crash.
    pub(crate) async fn commit(
        &self,
        kind: &Kind,
        key: &Key,
        expect: Expect,
        object: Value,
    ) -> Result<Result<Arc<Entry>, Mismatch>, ApiError> {
        let object = self.stored_form(kind, object).await?;
        self.may_write()?;
        let before = match expect {
            Expect::Absent => None,
            Expect::Revision(_) => self.store().get(&kind.resource, key),
        };
        let entry = match self.store().put(&kind.resource, key, expect, object, self.now()) {
            Ok(entry) => entry,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        self.note_write(kind, before.as_deref(), &entry);
        self.persisted(entry.revision).await?;
        Ok(Ok(entry))
    }

    /// Removes an object and waits until that would survive a crash. Watchers are told its last state.
    pub(crate) async fn commit_removal(
        &self,
        kind: &Kind,
        entry: &Entry,
        last: Value,
    ) -> Result<Result<Arc<Entry>, Mismatch>, ApiError> {
        self.may_write()?;
        let owners = last["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let last = self.last_form(kind, entry, last);
        let removed = match self.store().remove(&kind.resource, &entry.key, entry.revision, last, self.now()) {
            Ok(removed) => removed,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        self.note_removal(kind, &removed, owners);
        self.persisted(removed.revision).await?;
        Ok(Ok(removed))
    }

    /// Refuses a write that could not be made durable as things are.
    fn may_write(&self) -> Result<(), ApiError> {
        self.store().refuses().map_or(Ok(()), |error| Err(ApiError::not_durable(&error)))
    }

    async fn persisted(&self, revision: u64) -> Result<(), ApiError> {
        if self.store().waits() == Waits::TheDoor {
            return Ok(());
        }
        self.store().durable(revision).await.map_err(|error| ApiError::not_durable(&error))
    }

    /// Changes an object on the server's own behalf: metadata and status, without webhooks. An object that nothing keeps any
    /// more is removed. If somebody else writes in between, the change is made again on what they wrote.
    pub(crate) async fn rewrite(
        &self,
        kind: &Kind,
        entry: &Entry,
        change: impl Fn(&mut Value),
    ) -> Result<(), ApiError> {
        let mut current = self.store().get(&kind.resource, &entry.key);
        while let Some(entry) = current.take().filter(|now| now.uid == entry.uid) {
            let before = entry.to_value(&kind.api_version, &kind.kind);
            let mut after = before.clone();
            change(&mut after);
            drop_empty_lists(&mut after);
            if after == before {
                return Ok(());
            }
            let user = User::default();
            let intent = Intent {
                kind,
                namespace: &entry.key.namespace,
                subresource: "",
                manager: "kube-controller-manager",
                user: &user,
                dry_run: false,
                query: "",
            };
            apply::update(&apply::Request { reset: &[], ..self.ownership(&intent) }, Some(&before), &mut after);
            let outcome = if nothing_keeps(&after) {
                self.commit_removal(kind, &entry, before).await?
            } else {
                self.commit(kind, &entry.key, Expect::Revision(entry.revision), after).await?
            };
            match outcome {
                Ok(_) => return Ok(()),
                Err(mismatch) => current = mismatch.current,
            }
        }
        Ok(())
    }
}

impl Around for ApiServer {
    fn reshape(&self, kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
        let shaped = Self::shape(kind, object, FieldValidation::Ignore, Vec::new(), &mut Vec::new());
        shaped.map_err(|unfit| ApiError::internal(&unfit.why()))
    }

    fn equivalents(&self, kind: &Kind) -> Vec<Arc<Kind>> {
        let registry = self.registry();
        let versions = registry.versions(&kind.group).into_iter().filter(|version| *version != kind.version);
        versions.filter_map(|version| registry.find(&kind.group, version, &kind.plural).cloned()).collect()
    }

    fn convert<'a>(&'a self, object: Value, to: &'a Kind) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.in_version(object, to))
    }
}

/// The name of an object, as far as it has one.
fn name(object: Option<&Value>) -> &str {
    object.and_then(|object| object["metadata"]["name"].as_str()).unwrap_or_default()
}

/// The namespace of a write. A namespace is in itself.
fn namespace<'a>(intent: &Intent<'a>, name: &'a str) -> &'a str {
    if &*intent.kind.resource == "namespaces" { name } else { intent.namespace }
}

fn attributes<'a>(
    intent: &Intent<'a>,
    operation: Operation,
    namespace: &'a str,
    name: &'a str,
    namespace_labels: &'a [(Box<str>, Box<str>)],
) -> Attributes<'a> {
    Attributes {
        kind: intent.kind,
        operation,
        subresource: intent.subresource,
        namespace,
        name,
        user: intent.user,
        dry_run: intent.dry_run,
        namespace_labels,
        query: intent.query,
    }
}

/// The built-in resources whose updates are also judged as if they were created, which shows in the number of causes.
const VALIDATED_AGAIN: [&str; 12] = [
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "configmaps",
    "endpoints",
    "nodes",
    "persistentvolumeclaims",
    "pods",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "secrets",
    "serviceaccounts",
    "statefulsets.apps",
];

/// Why an object does not fit its kind.
pub(crate) enum Unfit {
    /// A value of the wrong type.
    Undecodable(String),
    /// Unknown or repeated fields, and strict validation.
    Strict(Vec<String>),
}

impl Unfit {
    /// The refusal of a body.
    pub(crate) fn in_body(self, kind: &Kind) -> ApiError {
        let (version, name) = (&kind.version, &kind.kind);
        ApiError::bad_request(match self {
            Self::Undecodable(why) => why,
            Self::Strict(oddities) => format!(
                "{name} in version {version:?} cannot be handled as a {name}: strict decoding error: {}",
                oddities.join(", ")
            ),
        })
    }

    /// The refusal of a patch, which a real server blames on the patched object.
    pub(crate) fn in_patch(self, patched: &Value) -> ApiError {
        crate::patch::undecodable(patched, &self.why())
    }

    /// The refusal of a strategic patch, which a real server turns into an object without a detour over JSON, and in other
    /// words.
    pub(crate) fn in_strategic_patch(self, patch: &Value) -> ApiError {
        strategic::undecodable(patch, &strategic::words::unrestored(self.why()))
    }

    /// The refusal of a configuration that was merged, and then is no object of a built-in kind.
    pub(crate) fn in_configuration(self, kind: &Kind, configuration: &Value) -> ApiError {
        if kind.is_custom() {
            return self.in_body(kind);
        }
        let text = |field: &str| configuration["metadata"][field].as_str().unwrap_or_default();
        let slash = if kind.group.is_empty() { "/" } else { "" };
        let typed = format!("{slash}{}, Kind={}", kind.api_version, kind.kind);
        let why = self.why();
        // Bytes are read by another reader than the rest.
        let reader = if why.starts_with("illegal base64") { "error decoding from json: " } else { "" };
        ApiError::unforeseen(format!(
            "failed to convert new object ({}/{}; {typed}) to proper version: unable to convert unstructured object to \
             {typed}: {reader}{why}",
            text("namespace"),
            text("name")
        ))
    }

    fn why(self) -> String {
        match self {
            Self::Undecodable(why) => why
                .split_once(" cannot be handled as a ")
                .map_or(why.clone(), |(_, rest)| rest.split_once(": ").map_or(rest, |(_, cause)| cause).to_owned()),
            Self::Strict(oddities) => format!("strict decoding error: {}", oddities.join(", ")),
        }
    }
}

/// What names of a kind look like.
fn name_rule(kind: &Kind, old: Option<&Value>) -> NameRule {
    match (&kind.origin, old) {
        (Origin::Custom(custom), _) => custom.names,
        (Origin::Builtin(_), None) => validate::name_rule(&kind.group, &kind.kind),
        // A name cannot change, so it is not judged again.
        (Origin::Builtin(_), Some(_)) => NameRule::PathSegment,
    }
}

/// Whether an object that is to be deleted may go now: no finalizer, no grace, and (a namespace) nothing left to finalize.
pub(crate) fn nothing_keeps(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && empty(&metadata["finalizers"])
        && (object["kind"] != "Namespace" || object["apiVersion"] != "v1" || empty(&object["spec"]["finalizers"]))
}

/// Empty lists of owners and finalizers are not kept, nor are a namespace's own finalizers once they are done.
fn drop_empty_lists(object: &mut Value) {
    let drop = |part: Option<&mut Value>, name: &str| {
        if let Some(Value::Object(fields)) = part
            && fields.get(name).is_some_and(|list| list.as_array().is_some_and(Vec::is_empty))
        {
            fields.remove(name);
        }
    };
    drop(object.get_mut("metadata"), "finalizers");
    drop(object.get_mut("metadata"), "ownerReferences");
    if object["kind"] == "Namespace" && object["apiVersion"] == "v1" {
        drop(object.get_mut("spec"), "finalizers");
    }
}

/// The metadata, made if it is absent. The object is one: decoding refuses everything else.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    match &mut object["metadata"] {
        Value::Object(fields) => fields,
        _ => unreachable!("it was just made an object"),
    }
}
