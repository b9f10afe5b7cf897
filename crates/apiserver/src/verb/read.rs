//! Get and list.

use std::borrow::Cow;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use super::call::{Shown, encoded};
use crate::body::Body;
use crate::builtin::Builtin;
use crate::continue_token::ContinueToken;
use crate::kind::{Kind, Origin};
use crate::negotiate::{Accepted, Reading, Want};
use crate::present::{Headings, misfitting, partial, partial_list};
use crate::query::{GetOptions, IncludeObject, ListOptions, Query, VersionMatch};
use crate::selector::field::Selectable;
use crate::selector::{FieldSelector, LabelSelector};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Key, Page, Range};

impl ApiServer {
    /// Reads one object.
    pub(crate) fn get(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let asked = GetOptions::parse(&Query::parse(&call.query))?.resource_version.unwrap_or_default();
        let current = self.store().revision();
        if asked > current {
            return Err(too_large(asked, current));
        }
        let entry = self.store().get(&call.kind.resource, &call.key()).ok_or_else(|| call.not_found())?;
        self.show(call, StatusCode::OK, &Shown::Stored(entry))
    }

    /// Reads many objects, or watches them.
    pub(crate) fn list_or_watch(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let mut options = ListOptions::parse(&Query::parse(&call.query))?;
        if !call.name.is_empty() {
            options.field_selector = options.field_selector.with_name(&call.name)?;
        }
        check_fields(&call.kind, &options.field_selector)?;
        if options.watch {
            return self.watch(call, &options);
        }
        let accepted = call.accepted(Reading::List)?;
        let filter = Filter::new(call, &options);
        let page = self.page(call, &options, &filter)?;
        let json = self.write_list(call, accepted, &page, options.limit.is_some_and(|limit| limit > 0))?;
        Ok(encoded(StatusCode::OK, accepted, json))
    }

    fn page(&self, call: &Call, options: &ListOptions, filter: &Filter<'_>) -> Result<Page, ApiError> {
        let keep = |entry: &Entry| filter.keeps(entry);
        let token = &options.continue_token;
        let namespace = filter.namespace;
        let start = token.as_ref().map(|token| {
            let (in_token, name) = (&token.start.0, &token.start.1);
            Key::new(namespace.unwrap_or(in_token), name)
        });
        let range = Range {
            namespace,
            after: start.as_ref(),
            limit: usize::try_from(options.limit.unwrap_or_default()).unwrap_or_default(),
        };
        let resource = &call.kind.resource;
        let current = self.store().revision();
        let at = match (token, options.resource_version_match) {
            (Some(token), _) if token.resource_version > 0 => Some(token.resource_version),
            (None, Some(VersionMatch::Exact)) => options.resource_version,
            _ => None,
        };
        let asked = at.or(options.resource_version).unwrap_or_default();
        if asked > current {
            return Err(too_large(asked, current));
        }
        let mut page = match at {
            Some(revision) if revision < current => {
                self.store().list_at(resource, range, revision, keep).map_err(|_| gone(token.as_ref()))?
            }
            _ => self.store().list(resource, range, keep),
        };
        if !filter.is_everything() {
            page.remaining = None;
        }
        Ok(page)
    }

    pub(crate) fn write_list(
        &self,
        call: &Call,
        accepted: Accepted,
        page: &Page,
        paged: bool,
    ) -> Result<Vec<u8>, ApiError> {
        let kind = &call.kind;
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if kind.is_custom() && accepted.want == Want::Plain {
            metadata["continue"] = "".into();
        }
        if let Some(next) = page.next.as_ref().filter(|_| paged) {
            let namespace = if call.namespace.is_empty() { next.namespace.to_string() } else { String::new() };
            let token = ContinueToken { resource_version: page.revision, start: (namespace, next.name.to_string()) };
            metadata["continue"] = token.encode().into();
            if let Some(remaining) = page.remaining {
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        let trees = || page.entries.iter().map(|entry| Self::load(kind, entry)).collect::<Vec<_>>();
        let document = match accepted.want {
            Want::Plain | Want::AggregatedDiscovery => return Ok(whole_list(kind, &metadata, &page.entries)),
            Want::Table(version) => {
                let include = IncludeObject::parse(&Query::parse(&call.query))?;
                self.table(kind, version, &metadata, &trees(), include, Headings::Shown)
            }
            Want::PartialObject(_) => return Err(misfitting(kind, "PartialObjectMetadata", "a list", "List")),
            Want::PartialObjectList(version) if !Self::needs_tree(kind) => {
                return Ok(partial_list(version, &metadata, &page.entries));
            }
            Want::PartialObjectList(version) => {
                let items: Vec<Value> = trees().iter_mut().map(|object| partial(object, version)).collect();
                json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": version.api_version(),
                    "metadata": metadata, "items": items,
                })
            }
        };
        Ok(serde_json::to_vec(&document).unwrap_or_default())
    }
}

/// A list is the stored bytes, one after the other. Items of built-in kinds do not repeat their kind, as in Kubernetes.
fn whole_list(kind: &Kind, metadata: &Value, entries: &[std::sync::Arc<Entry>]) -> Vec<u8> {
    let size: usize = entries.iter().map(|entry| entry.json.len() + kind.head.len() + 2).sum();
    let mut out = Vec::with_capacity(size + 256);
    out.push(b'{');
    out.extend(crate::kind::head(&kind.api_version, &kind.list_kind));
    out.extend_from_slice(b"\"metadata\":");
    out.extend(serde_json::to_vec(metadata).unwrap_or_default());
    out.extend_from_slice(b",\"items\":[");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if kind.is_custom() || ApiServer::needs_tree(kind) {
            ApiServer::write_object(kind, entry, &mut out);
        } else {
            out.extend_from_slice(&entry.json);
        }
    }
    out.extend_from_slice(b"]}");
    out
}

/// Which objects a list or a watch speaks about.
pub(crate) struct Filter<'a> {
    kind: &'a Kind,
    /// Only this namespace.
    pub(crate) namespace: Option<&'a str>,
    labels: &'a LabelSelector,
    fields: &'a FieldSelector,
}

impl<'a> Filter<'a> {
    /// The objects that a call and its options name.
    pub(crate) fn new(call: &'a Call, options: &'a ListOptions) -> Self {
        let namespace = Some(call.namespace.as_str()).filter(|namespace| call.kind.namespaced && !namespace.is_empty());
        Self { kind: &call.kind, namespace, labels: &options.label_selector, fields: &options.field_selector }
    }

    /// Whether only the namespace decides.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object is one of them.
    pub(crate) fn keeps(&self, entry: &Entry) -> bool {
        self.namespace.is_none_or(|namespace| &*entry.key.namespace == namespace)
            && self.labels.matches(&*entry.labels)
            && self.keeps_fields(entry)
    }

    fn keeps_fields(&self, entry: &Entry) -> bool {
        if self.fields.is_everything() {
            return true;
        }
        self.fields.matches(|path| match path {
            "metadata.name" => Cow::Owned(entry.key.name.to_string()),
            "metadata.namespace" => Cow::Owned(entry.key.namespace.to_string()),
            path => Cow::Owned(selectable_text(self.kind, entry, path)),
        })
    }
}

/// The text at a field that objects can be selected by. Only where the stored bytes are not enough, the whole object is read.
fn selectable_text(kind: &Kind, entry: &Entry, name: &str) -> String {
    let path = kind.selectable_fields.iter().find(|field| field.name == name).and_then(|field| field.path.as_ref());
    if let Some(path) = path {
        return match path.find(&ApiServer::view(kind, entry)).first() {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
    }
    if ApiServer::needs_tree(kind) {
        let object = ApiServer::view(kind, entry);
        return Builtin::selectable_text(name, |path| value_at(&object, path));
    }
    Builtin::selectable_text(name, |path| entry.field(path))
}

fn value_at(object: &Value, path: &str) -> Value {
    path.split('.').fold(object, |value, name| &value[name]).clone()
}

/// Refuses fields that the kind cannot be selected by.
pub(crate) fn check_fields(kind: &Kind, selector: &FieldSelector) -> Result<(), ApiError> {
    let fields: Vec<&str> = kind.selectable_fields.iter().map(|field| field.name.as_str()).collect();
    let selectable = match &kind.origin {
        Origin::Builtin(builtin) if builtin.kind == "Job" => Selectable::Job(&fields),
        Origin::Builtin(_) if fields.is_empty() => Selectable::Metadata,
        Origin::Builtin(_) | Origin::Custom(_) => Selectable::Fields(&fields),
    };
    Ok(selector.check(selectable)?)
}

/// The client has seen a future that this server does not know.
pub(crate) fn too_large(asked: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut error = ApiError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    error.details.causes.push(crate::status::Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    });
    error.details.retry_after_seconds = 1;
    error
}

/// The version that a list was to be read at is forgotten. A page can still be had, of what is there now.
fn gone(token: Option<&ContinueToken>) -> ApiError {
    let Some(token) = token else {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    };
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.details.continue_token = ContinueToken { resource_version: 0, start: token.start.clone() }.encode();
    error
}
