//! Update: an object is replaced, or, through its status endpoint, its status is. Patches come in here too.

use http::{Response, StatusCode};
use serde_json::{Map, Value};

use super::Call;
use super::call::Shown;
use super::create::{check_kind, dedup_owners, drop_status, place};
use super::write::{Intent, Written, metadata, nothing_keeps};
use crate::admission::Operation;
use crate::apply;
use crate::body::{Body, warn};
use crate::field::FieldError;
use crate::kind::{Kind, Origin};
use crate::lifecycle::CUSTOM_RESOURCE_DEFINITIONS;
use crate::query::{Query, WriteOptions};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Expect};

/// How often a write that names no version is tried again when others write at the same time.
const TRIES: usize = 5;

/// How the new object comes about.
pub(crate) trait Proposal: Send {
    /// The object that should be stored, given the one that is. It has its shape, and field owners if [`Proposal::owned`] says so.
    fn propose(&mut self, current: &Value, warnings: &mut Vec<String>) -> Result<Value, ApiError>;

    /// Whether [`Proposal::propose`] has recorded the owners of fields itself.
    fn owned(&self) -> bool;

    /// Whether it is a whole object of one version, which is tried once. Another one follows whatever is there, and is refused
    /// at the next try if it says itself what that must be.
    fn is_pinned(&self) -> bool {
        false
    }
}

/// A whole object, as sent.
struct Replacement<'a> {
    kind: &'a Kind,
    object: Value,
    is_pinned: bool,
}

impl<'a> Replacement<'a> {
    fn new(kind: &'a Kind, object: Value) -> Self {
        let version = object["metadata"]["resourceVersion"].as_str();
        let is_pinned = version.is_some_and(|version| !version.is_empty() && version != "0");
        Self { kind, object, is_pinned }
    }
}

impl Proposal for Replacement<'_> {
    fn propose(&mut self, current: &Value, _: &mut Vec<String>) -> Result<Value, ApiError> {
        let sent = &self.object["metadata"];
        if let Some(uid) = sent["uid"].as_str().filter(|uid| !uid.is_empty() && current["metadata"]["uid"] != *uid) {
            let found = current["metadata"]["uid"].as_str().unwrap_or_default();
            let name = current["metadata"]["name"].as_str().unwrap_or_default();
            let namespace = current["metadata"]["namespace"].as_str().unwrap_or_default();
            let key = crate::store::Key::new(namespace, name);
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {found}",
                self.kind.plural
            );
            return Err(ApiError::conflict(&self.kind.plural, &self.kind.group, name, &why));
        }
        // One that names its version is tried once, so nothing needs to be kept for another try.
        Ok(if self.is_pinned { self.object.take() } else { self.object.clone() })
    }

    fn owned(&self) -> bool {
        false
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned
    }
}

impl ApiServer {
    /// Replaces an object, or its status.
    pub(crate) async fn update(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let options = WriteOptions::update(&Query::parse(&call.query))?;
        let kind = &call.kind;
        let decoded = super::body::object(call)?;
        let mut object = decoded.object;
        check_kind(kind, &mut object)?;
        let mut warnings = Vec::new();
        Self::shape(kind, &mut object, options.field_validation, decoded.oddities, &mut warnings)
            .map_err(|unfit| unfit.in_body(kind))?;
        check_place(call, &mut object).map_err(|refusal| refusal.with_warnings(&warnings))?;
        let manager = call.manager(options.field_manager.as_deref());
        let intent = call.intent(&manager, options.dry_run);
        let exists = self.store().get(&kind.resource, &call.key()).is_some();
        let makes = kind.builtin().is_some_and(|builtin| builtin.create_on_update) && call.subresource.is_empty();
        let (code, written) = if makes && !exists {
            let version = metadata(&mut object).remove("resourceVersion");
            drop_status(kind, &mut object);
            Self::fill(kind, &mut object);
            let mut written = self.create_object(&intent, object, warnings).await?;
            // What was only tried has the version that it was sent with.
            if let (Shown::Imagined(shown), Some(version)) = (&mut written.shown, version) {
                metadata(shown).insert("resourceVersion".into(), version);
            }
            (StatusCode::CREATED, written)
        } else {
            (StatusCode::OK, self.replace(call, &intent, &mut Replacement::new(kind, object), warnings).await?)
        };
        let mut response = self.show(call, code, &written.shown)?;
        warn(&mut response, &written.warnings);
        Ok(response)
    }

    /// Replaces an object by a proposal, again and again while others write at the same time, unless the proposal names the
    /// version that it is made for.
    pub(crate) async fn replace(
        &self,
        call: &Call,
        intent: &Intent<'_>,
        proposal: &mut dyn Proposal,
        warnings: Vec<String>,
    ) -> Result<Written, ApiError> {
        let mut said = Vec::new();
        let replaced = self.try_to_replace(call, intent, proposal, &warnings, &mut said).await;
        Written::with(replaced, said)
    }

    async fn try_to_replace(
        &self,
        call: &Call,
        intent: &Intent<'_>,
        proposal: &mut dyn Proposal,
        warnings: &[String],
        said: &mut Vec<String>,
    ) -> Result<Shown, ApiError> {
        let key = call.key();
        for _ in 0..TRIES {
            // Each try speaks for itself.
            *said = warnings.to_vec();
            let entry = self.store().get(&intent.kind.resource, &key).ok_or_else(|| call.not_found())?;
            let current = Self::view(intent.kind, &entry);
            let mut object = proposal.propose(&current, said)?;
            Self::check_version(call, &entry, &object)?;
            if let Some(shown) =
                self.replace_once(intent, &entry, &current, &mut object, proposal.owned(), said).await?
            {
                return Ok(shown);
            }
            if proposal.is_pinned() {
                break;
            }
        }
        // Whoever deleted it meanwhile has left nothing that could be newer.
        Err(if self.store().get(&intent.kind.resource, &key).is_some() { call.stale() } else { call.not_found() })
    }

    /// Refuses an object that names another version than the one that it replaces. It must name one, where a kind does not take
    /// anything on trust.
    fn check_version(call: &Call, entry: &Entry, object: &Value) -> Result<(), ApiError> {
        let kind = &call.kind;
        match object["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty()) {
            Some("0") | None if kind.unconditional_update() => Ok(()),
            Some(version) if version.parse() == Ok(entry.revision) => Ok(()),
            Some(version) if version.parse::<u64>().is_err() => {
                let error =
                    FieldError::invalid("metadata.resourceVersion", version, "must be a valid resource version");
                Err(Self::invalid(kind, object, &[error]))
            }
            Some(_) => Err(call.stale()),
            None => {
                let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
                Err(ApiError::invalid(&kind.plural, &kind.group, &call.name, &[error]))
            }
        }
    }

    /// One try; `None` means that somebody else wrote first.
    async fn replace_once(
        &self,
        intent: &Intent<'_>,
        entry: &Entry,
        current: &Value,
        object: &mut Value,
        owned: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Shown>, ApiError> {
        let kind = intent.kind;
        dedup_owners(object, warnings);
        if !owned {
            self.own(intent, Some(current), object);
        }
        self.admit(intent, Operation::Update, Some(object), Some(current), warnings).await?;
        prepare_update(kind, intent.subresource, object, current);
        metadata(object).insert("resourceVersion".into(), current["metadata"]["resourceVersion"].clone());
        Self::check(kind, object, Some(current), intent.subresource, warnings)?;
        if intent.subresource != "status" {
            warnings.extend(kind.warnings(object));
        }
        self.review(intent, Operation::Update, Some(object), Some(current), warnings).await?;
        apply::keep_times(current, object);
        if object == current || intent.dry_run {
            return Ok(Some(Shown::Imagined(object.take())));
        }
        let object = object.take();
        if nothing_keeps(&object) {
            let committed = self.commit_removal(kind, entry, current.clone()).await?;
            return Ok(committed.ok().map(|_| Shown::Imagined(object)));
        }
        let committed = self.commit(kind, &entry.key, Expect::Revision(entry.revision), object).await?;
        Ok(committed.ok().map(Shown::Stored))
    }
}

/// A body has the namespace and the name of its path.
fn check_place(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    place(call, object)?;
    let named = object["metadata"]["name"].as_str().unwrap_or_default();
    if named == call.name { Ok(()) } else { Err(call.misnamed(named)) }
}

/// What a client may not decide stays as it was; the generation counts changes of what is wanted.
fn prepare_update(kind: &Kind, subresource: &str, object: &mut Value, current: &Value) {
    if subresource == "status" {
        keep_all_but_status(kind, object, current);
    } else if subresource == "finalize" {
        keep_all_but_finalizers(object, current);
    } else if kind.status {
        copy(object, current, "status");
    }
    let old = &current["metadata"];
    let fields = metadata(object);
    for decided in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"]
    {
        // A client may repeat what it read; something else is a mistake that validation names.
        let silent = matches!(decided, "generation" | "selfLink" | "creationTimestamp")
            || (decided.starts_with("deletion") && !old["deletionTimestamp"].is_null())
            || fields.get(decided).is_none_or(Value::is_null);
        match old.get(decided) {
            Some(value) if silent => {
                fields.insert(decided.into(), value.clone());
            }
            None if silent => {
                fields.remove(decided);
            }
            Some(_) | None => {}
        }
    }
    for list in ["finalizers", "ownerReferences"] {
        if fields.get(list).is_some_and(|list| list.as_array().is_some_and(Vec::is_empty)) {
            fields.remove(list);
        }
    }
    if let Origin::Builtin(builtin) = &kind.origin
        && subresource.is_empty()
    {
        (builtin.prepare)(object, Some(current));
    }
    if subresource != "status" && kind.is_new_generation(object, current) {
        let generation = old["generation"].as_i64().unwrap_or_default() + 1;
        metadata(object).insert("generation".into(), generation.into());
    }
}

/// A status endpoint writes the status. That of a built-in takes the metadata along, as it has always done.
fn keep_all_but_status(kind: &Kind, object: &mut Value, current: &Value) {
    let (Value::Object(mut sent), Value::Object(stored)) = (object.take(), current) else { return };
    let (metadata, status) = (sent.remove("metadata"), sent.remove("status"));
    let mut keep = |name: &String, value: &Value| match sent.get_mut(name) {
        // What was sent back as it was is not copied.
        Some(sent) if sent == value => sent.take(),
        _ => value.clone(),
    };
    let others = stored.iter().filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"));
    let mut kept: Map<String, Value> = others.map(|(name, value)| (name.clone(), keep(name, value))).collect();
    kept.insert("metadata".into(), kept_metadata(kind, metadata, &current["metadata"]));
    kept.extend(status.map(|status| ("status".to_owned(), status)));
    *object = Value::Object(kept);
    if &*kind.resource == "pods" && !current["status"]["qosClass"].is_null() {
        // It follows from the containers.
        object["status"]["qosClass"] = current["status"]["qosClass"].clone();
    }
}

fn kept_metadata(kind: &Kind, sent: Option<Value>, stored: &Value) -> Value {
    let Some(mut sent) = sent else { return stored.clone() };
    let resource = &*kind.resource;
    if kind.is_custom() || resource == CUSTOM_RESOURCE_DEFINITIONS || resource == "volumeattachments.storage.k8s.io" {
        // Only who owns which field is as it was sent.
        let stored = stored.as_object().into_iter().flatten().filter(|(name, _)| *name != "managedFields");
        let mut kept: Map<String, Value> = stored.map(|(name, value)| (name.clone(), value.clone())).collect();
        let owners = sent.as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
        kept.extend(owners.map(|owners| ("managedFields".to_owned(), owners)));
        return Value::Object(kept);
    }
    match resource {
        "deployments.apps" => copy(&mut sent, stored, "labels"),
        "pods" => copy(&mut sent, stored, "ownerReferences"),
        _ => {}
    }
    sent
}

/// A namespace's `finalize` endpoint writes `spec.finalizers` and nothing else.
fn keep_all_but_finalizers(object: &mut Value, current: &Value) {
    let sent = object["spec"]["finalizers"].take();
    let owners = object["metadata"]["managedFields"].take();
    *object = current.clone();
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        match sent {
            Value::Null => spec.remove("finalizers"),
            list => spec.insert("finalizers".into(), list),
        };
    }
    if !owners.is_null() {
        metadata(object).insert("managedFields".into(), owners);
    }
}

fn copy(object: &mut Value, current: &Value, field: &str) {
    if let Value::Object(fields) = object
        && fields.get(field) != current.get(field)
    {
        match current.get(field) {
            Some(value) => fields.insert(field.into(), value.clone()),
            None => fields.remove(field),
        };
    }
}
