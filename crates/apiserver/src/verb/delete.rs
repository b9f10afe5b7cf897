//! Delete, one object or many.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::Call;
use super::call::Shown;
use super::read::Filter;
use super::write::{Intent, metadata, nothing_keeps};
use crate::admission::Operation;
use crate::auth::User;
use crate::body::{self, Body, warn};
use crate::kind::Kind;
use crate::lifecycle::{CUSTOM_RESOURCE_DEFINITIONS, FOREGROUND, ORPHAN};
use crate::negotiate;
use crate::query::{DeleteOptions, ListOptions, Query};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Expect, Key, Mismatch, Range};

pub(crate) use crate::query::Propagation;

/// The wish to delete.
pub(crate) struct Deletion {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry_run: bool,
    pub(crate) user: User,
}

impl Deletion {
    /// A deletion that a part of the control plane asks for.
    pub(crate) fn by_system(user: &str) -> Self {
        Self {
            propagation: Some(Propagation::Background),
            uid: None,
            resource_version: None,
            grace_seconds: None,
            dry_run: false,
            user: User { name: user.to_owned(), ..User::default() },
        }
    }

    fn by_client(call: &Call, options: &DeleteOptions) -> Self {
        let orphan = match options.orphan_dependents {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Background),
            None => None,
        };
        Self {
            propagation: options.propagation.or(orphan),
            uid: options.preconditions.uid.clone(),
            resource_version: options.preconditions.resource_version.clone(),
            grace_seconds: options.grace_period_seconds,
            dry_run: options.dry_run,
            user: call.user.clone(),
        }
    }
}

/// What became of an object that was to be deleted.
pub(crate) enum Deleted {
    /// It is gone; this was its last state, at the version of its deletion.
    Gone(Arc<Entry>),
    /// It waits for finalizers, for dependents or for its grace period.
    Waits(Shown),
    /// It would be gone, were this not a dry run.
    WouldGo(Value),
}

impl ApiServer {
    /// Deletes one object.
    pub(crate) async fn delete(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let options = delete_options(call)?;
        let deletion = Deletion::by_client(call, &options);
        let mut warnings = Vec::new();
        let deleted = self.delete_with_warnings(&call.kind, &call.key(), &deletion, &mut warnings).await;
        let deleted = deleted.map_err(|refusal| refusal.with_warnings(&warnings))?;
        let mut response = match deleted {
            Deleted::Waits(shown) => self.show(call, StatusCode::OK, &shown)?,
            Deleted::Gone(last) if returns_object(&call.kind) => {
                self.show(call, StatusCode::OK, &Shown::Stored(last))?
            }
            Deleted::WouldGo(object) if returns_object(&call.kind) => {
                self.show(call, StatusCode::OK, &Shown::Imagined(object))?
            }
            Deleted::Gone(entry) => body::json(StatusCode::OK, &success(&call.kind, &entry.key.name, &entry.uid)),
            Deleted::WouldGo(object) => {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                body::json(StatusCode::OK, &success(&call.kind, text("name"), text("uid")))
            }
        };
        warn(&mut response, &warnings);
        Ok(response)
    }

    /// Deletes all objects that a list would show.
    pub(crate) async fn delete_collection(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let list = ListOptions::parse(&Query::parse(&call.query))?;
        super::read::check_fields(&call.kind, &list.field_selector)?;
        let options = delete_options(call)?;
        let filter = Filter::new(call, &list);
        let range = Range { namespace: filter.namespace, after: None, limit: 0 };
        let page = self.store().list(&call.kind.resource, range, |entry| filter.keeps(entry));
        let deletion = Deletion::by_client(call, &options);
        for entry in &page.entries {
            match self.delete_one(&call.kind, &entry.key, &deletion).await {
                Err(error) if error.code != StatusCode::NOT_FOUND => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        let accepted = call.accepted(negotiate::Reading::List)?;
        let json = self.write_list(call, accepted, &page, false)?;
        Ok(super::call::encoded(StatusCode::OK, accepted, json))
    }

    /// Deletes an object, or marks it for deletion.
    pub(crate) async fn delete_one(&self, kind: &Kind, key: &Key, deletion: &Deletion) -> Result<Deleted, ApiError> {
        self.delete_with_warnings(kind, key, deletion, &mut Vec::new()).await
    }

    async fn delete_with_warnings(
        &self,
        kind: &Kind,
        key: &Key,
        deletion: &Deletion,
        warnings: &mut Vec<String>,
    ) -> Result<Deleted, ApiError> {
        refuse_system_namespaces(kind, key)?;
        loop {
            let not_found = || ApiError::not_found(&kind.plural, &kind.group, &key.name);
            let entry = self.store().get(&kind.resource, key).ok_or_else(not_found)?;
            check_preconditions(kind, &entry, deletion)?;
            let current = Self::load(kind, &entry);
            let intent = Intent {
                kind,
                namespace: &key.namespace,
                subresource: "",
                manager: "",
                user: &deletion.user,
                dry_run: deletion.dry_run,
                query: "",
            };
            self.admit(&intent, Operation::Delete, None, Some(&current), warnings).await?;
            self.review(&intent, Operation::Delete, None, Some(&current), warnings).await?;
            let object = self.marked(kind, &entry, &current, deletion);
            let gone = nothing_keeps(&object);
            if deletion.dry_run {
                let shown = if ends_in_two_steps(kind) { object.clone() } else { current };
                return Ok(if gone { Deleted::WouldGo(shown) } else { Deleted::Waits(Shown::Imagined(object)) });
            }
            if object == current && !gone {
                return Ok(Deleted::Waits(Shown::Stored(entry)));
            }
            let committed = if gone && ends_in_two_steps(kind) {
                self.end_pod(kind, &entry, object).await?
            } else if gone {
                self.commit_removal(kind, &entry, current).await?.map(Deleted::Gone)
            } else {
                let object = Self::to_stored(kind, object);
                let expect = Expect::Revision(entry.revision);
                self.commit(kind, key, expect, object).await?.map(|entry| Deleted::Waits(Shown::Stored(entry)))
            };
            if let Ok(deleted) = committed {
                return Ok(deleted);
            }
        }
    }

    /// Marks a pod and then removes it: watchers see both.
    async fn end_pod(&self, kind: &Kind, entry: &Entry, marked: Value) -> Result<Result<Deleted, Mismatch>, ApiError> {
        let mut last = marked;
        let mut entry = match self.commit(kind, &entry.key, Expect::Revision(entry.revision), last.clone()).await? {
            Ok(entry) => entry,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        loop {
            match self.commit_removal(kind, &entry, last).await? {
                Ok(gone) => return Ok(Ok(Deleted::Gone(gone))),
                Err(Mismatch { current: Some(newer) }) if newer.uid == entry.uid => {
                    last = Self::load(kind, &newer);
                    entry = newer;
                    if !nothing_keeps(&last) {
                        return Ok(Ok(Deleted::Waits(Shown::Stored(entry))));
                    }
                }
                // Somebody else has removed it.
                Err(_) => return Ok(Ok(Deleted::Gone(entry))),
            }
        }
    }

    /// The object as it looks once its deletion was asked for.
    fn marked(&self, kind: &Kind, entry: &Entry, current: &Value, deletion: &Deletion) -> Value {
        let mut object = current.clone();
        let grace = grace_seconds(kind, current, deletion);
        set_finalizers(&mut object, deletion.propagation);
        let now = self.now();
        let fields = metadata(&mut object);
        let was_marked = entry.deleting;
        let shorter = fields.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_none_or(|was| grace < was);
        if !was_marked || shorter {
            let at = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
            if !was_marked {
                fields.insert("deletionTimestamp".into(), crate::time::format(at).into());
                let generation = fields.get("generation").and_then(Value::as_i64);
                if let Some(generation) = generation.filter(|generation| *generation > 0) {
                    fields.insert("generation".into(), (generation + 1).into());
                }
            }
            fields.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
        if kind.kind == "Namespace" && kind.group.is_empty() {
            object["status"]["phase"] = "Terminating".into();
            metadata(&mut object).remove("deletionGracePeriodSeconds");
        }
        if &*kind.resource == CUSTOM_RESOURCE_DEFINITIONS && !was_marked {
            crate::lifecycle::mark_definition(&mut object, &crate::time::format(now));
        }
        object
    }
}

/// Only pods are marked for deletion even when nothing keeps them.
fn ends_in_two_steps(kind: &Kind) -> bool {
    &*kind.resource == "pods"
}

/// How long an object has to end: only pods that run on a node take time.
fn grace_seconds(kind: &Kind, object: &Value, deletion: &Deletion) -> i64 {
    if &*kind.resource != "pods" {
        return 0;
    }
    let runs = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty())
        && !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !runs {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
    // A negative wish means at once, but not "do not ask the node".
    let wish = deletion.grace_seconds.or(own).unwrap_or(30);
    if wish < 0 { 1 } else { wish }
}

/// The collector's finalizers, as the deletion wants them.
fn set_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let (add, drop) = match propagation {
        None => return,
        Some(Propagation::Background) => (None, [FOREGROUND, ORPHAN].as_slice()),
        Some(Propagation::Foreground) => (Some(FOREGROUND), [ORPHAN].as_slice()),
        Some(Propagation::Orphan) => (Some(ORPHAN), [FOREGROUND].as_slice()),
    };
    let fields = metadata(object);
    let mut list = fields.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    list.retain(|item| !drop.iter().any(|drop| item == drop));
    if let Some(add) = add.filter(|add| !list.iter().any(|item| item == add)) {
        list.push(add.into());
    }
    if list.is_empty() {
        fields.remove("finalizers");
    } else {
        fields.insert("finalizers".into(), list.into());
    }
}

fn check_preconditions(kind: &Kind, entry: &Entry, deletion: &Deletion) -> Result<(), ApiError> {
    let failed = |what: &str, wanted: &str, found: &str, perhaps: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have \
             been {perhaps}"
        );
        Err(ApiError::conflict(&kind.kind, &kind.group, &entry.key.name, &why))
    };
    match (&deletion.uid, &deletion.resource_version) {
        (Some(uid), _) if **uid != *entry.uid => failed("UID", uid, &entry.uid, "deleted and then recreated"),
        (_, Some(version)) if *version != entry.revision.to_string() => {
            failed("ResourceVersion", version, &entry.revision.to_string(), "modified")
        }
        _ => Ok(()),
    }
}

fn refuse_system_namespaces(kind: &Kind, key: &Key) -> Result<(), ApiError> {
    let protected = matches!(&*key.name, "default" | "kube-system" | "kube-public");
    if &*kind.resource == "namespaces" && protected {
        return Err(ApiError::forbidden("namespaces", "", &key.name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Some built-in kinds answer a deletion with what was deleted.
fn returns_object(kind: &Kind) -> bool {
    matches!(
        &*kind.resource,
        "namespaces"
            | "pods"
            | "podtemplates"
            | "services"
            | "serviceaccounts"
            | "persistentvolumes"
            | "persistentvolumeclaims"
            | "resourcequotas"
            | "storageclasses.storage.k8s.io"
            | "volumeattachments.storage.k8s.io"
            | "csidrivers.storage.k8s.io"
            | "csinodes.storage.k8s.io"
    )
}

fn success(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural, "uid": uid});
    if !kind.group.is_empty() {
        details["group"] = kind.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn delete_options(call: &Call) -> Result<DeleteOptions, ApiError> {
    let query = Query::parse(&call.query);
    if call.body.is_empty() {
        return DeleteOptions::parse(&query, None);
    }
    let body = super::body::value(call.header(header::CONTENT_TYPE), &call.body)?;
    DeleteOptions::parse(&query, Some(&body))
}
