//! The checks that every object's `metadata` passes, whatever its kind.

pub mod format;
pub mod selector;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::{FieldError, Problem};
use crate::path::Path;
use crate::value::{Fields, same};

pub use format::{
    is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name, name_is_dns_label, name_is_dns_subdomain,
};

/// The most that the keys and values of an object's annotations may add up to.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// The longest name that the manager of fields may have.
const FIELD_MANAGER_MAX_BYTES: usize = 128;
/// The longest subresource that managed fields may name.
const SUBRESOURCE_MAX_BYTES: usize = 256;

const METADATA: Path<'static> = Path::new("metadata");

/// What the names of a kind's objects must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// `example.com`: most kinds, and all custom resources that say nothing else.
    DnsSubdomain,
    /// `my-name`: namespaces, services, stateful sets.
    DnsLabel,
    /// Anything that can be a segment of a URL's path: roles and their bindings, and kinds without a rule of their own.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name, or with the start of one when `prefix` is set.
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        match self {
            Self::DnsSubdomain => format::name_is_dns_subdomain(name, prefix),
            Self::DnsLabel => format::name_is_dns_label(name, prefix),
            Self::PathSegment if prefix => format::is_path_segment_prefix(name),
            Self::PathSegment => format::is_path_segment_name(name),
        }
    }
}

/// What is wrong with an object's metadata. The name has been generated and the namespace filled in before.
pub fn validate(meta: &Value, namespaced: bool, name_rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, generate_name) = (meta.text("name"), meta.text("generateName"));
    if !generate_name.is_empty() {
        let wrong = name_rule.check(generate_name, true);
        complain(&mut errors, &METADATA.field("generateName"), generate_name, wrong);
    }
    if name.is_empty() {
        errors.push(FieldError::required(METADATA.field("name"), "name or generateName is required"));
    } else {
        complain(&mut errors, &METADATA.field("name"), name, name_rule.check(name, false));
    }
    let namespace = meta.text("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(METADATA.field("namespace"), "")),
        (true, false) => {
            complain(&mut errors, &METADATA.field("namespace"), namespace, format::is_dns_label(namespace));
        }
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(METADATA.field("namespace"), "not allowed on this type")),
    }
    if let Some(generation) = meta.int("generation").filter(|generation| *generation < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(METADATA.field("generation"), generation, detail));
    }
    labels(meta.at("labels"), &METADATA.field("labels"), &mut errors);
    annotations(meta.at("annotations"), &METADATA.field("annotations"), &mut errors);
    owner_references(meta, &mut errors);
    finalizers(meta, &mut errors);
    managed_fields(meta, &mut errors);
    errors
}

/// What is wrong with the way an update changes metadata. Like a real server it says again what [`validate`] says of labels,
/// annotations, owners and managers.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.has("deletionTimestamp") {
        no_new_finalizers(new, old, &mut errors);
    }
    if new.text("resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(METADATA.field("resourceVersion"), "", detail));
    }
    let (was, is) = (old.int("generation").unwrap_or_default(), new.int("generation").unwrap_or_default());
    if is < was {
        errors.push(FieldError::invalid(METADATA.field("generation"), is, "must not be decremented"));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new.at(field);
        if value == old.at(field) {
            continue;
        }
        let shown = match field {
            "name" | "namespace" | "uid" => Value::from(new.text(field)),
            _ => value.clone(),
        };
        if shown != *old.at(field) && !(shown == "" && old.at(field).is_null()) {
            errors.push(FieldError::invalid(METADATA.field(field), shown, "field is immutable"));
        }
    }
    labels(new.at("labels"), &METADATA.field("labels"), &mut errors);
    annotations(new.at("annotations"), &METADATA.field("annotations"), &mut errors);
    owner_references(new, &mut errors);
    managed_fields(new, &mut errors);
    errors
}

/// What is wrong with the finalizers of a built-in kind's object: those without a prefix must be ones that Kubernetes knows.
pub fn standard_finalizers(meta: &Value, errors: &mut Vec<FieldError>) {
    for (i, name) in meta.texts("finalizers").enumerate() {
        standard_finalizer(name, &METADATA.field("finalizers").index(i), errors);
    }
}

/// What is wrong with one finalizer, when it has no prefix.
pub(crate) fn standard_finalizer(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// Adds one complaint about a string for each thing that is wrong with it.
pub(crate) fn complain(errors: &mut Vec<FieldError>, path: &Path<'_>, value: &str, wrong: Vec<String>) {
    errors.extend(wrong.into_iter().map(|detail| FieldError::invalid(path, value, detail)));
}

/// What is wrong with labels.
pub fn labels(labels: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        complain(errors, path, key, format::is_qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        complain(errors, path, value, format::is_label_value(value));
    }
}

/// What is wrong with annotations. Their keys may have capitals in the prefix, unlike those of labels.
pub fn annotations(annotations: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let wrong = if key.bytes().any(|b| b.is_ascii_uppercase()) {
            format::is_qualified_name(&key.to_lowercase())
        } else {
            format::is_qualified_name(key)
        };
        complain(errors, path, key, wrong);
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(too_long(path, ANNOTATIONS_MAX_BYTES));
    }
}

/// A complaint about something too long to be shown.
pub(crate) fn too_long(path: &Path<'_>, max_bytes: usize) -> FieldError {
    FieldError::new(Problem::TooLong, path, Value::Null, format!("may not be more than {max_bytes} bytes"))
}

fn owner_references(meta: &Value, errors: &mut Vec<FieldError>) {
    let path = METADATA.field("ownerReferences");
    let mut controller: Option<&Value> = None;
    for owner in meta.list("ownerReferences") {
        owner_reference(owner, &path, errors);
        if !owner.flag("controller") {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(owner);
            continue;
        };
        let named = |owner: &Value| format!("{}/{}", owner.text("kind"), owner.text("name"));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            named(first),
            named(owner)
        );
        let shown: Vec<String> = meta.list("ownerReferences").iter().map(shown_owner).collect();
        let error = FieldError::invalid(path, meta.at("ownerReferences").clone(), detail);
        errors.push(error.showing(format!("[{}]", shown.join(","))));
    }
}

fn owner_reference(owner: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (api_version, kind) = (owner.text("apiVersion"), owner.text("kind"));
    let version = match api_version.split_once('/') {
        None => api_version,
        Some((_, version)) if version.contains('/') => "",
        Some((_, version)) => version,
    };
    if version.is_empty() {
        errors.push(FieldError::invalid(path.field("apiVersion"), api_version, "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        if owner.text(field).is_empty() {
            errors.push(FieldError::invalid(path.field(field), "", "must not be empty"));
        }
    }
    if api_version == "v1" && kind == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, owner.clone(), detail).showing(shown_owner(owner)));
    }
}

/// An owner with its fields in the order in which Kubernetes prints them.
fn shown_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields = fields.into_iter().filter(|field| owner.has(field));
    let fields: Vec<String> = fields.map(|field| format!("\"{field}\":{}", owner.at(field))).collect();
    format!("{{{}}}", fields.join(","))
}

fn finalizers(meta: &Value, errors: &mut Vec<FieldError>) {
    let path = METADATA.field("finalizers");
    let (mut orphan, mut foreground) = (false, false);
    for name in meta.texts("finalizers") {
        complain(errors, &path, name, format::is_qualified_name(name));
        orphan |= name == "orphan";
        foreground |= name == "foregroundDeletion";
    }
    if orphan && foreground {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, meta.at("finalizers").clone(), detail));
    }
}

fn no_new_finalizers(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if same(new.at("finalizers"), old.at("finalizers")) {
        return;
    }
    let known: BTreeSet<&str> = old.texts("finalizers").collect();
    let added: BTreeSet<&str> = new.texts("finalizers").filter(|name| !known.contains(name)).collect();
    if !added.is_empty() {
        let added: Vec<String> = added.into_iter().map(crate::field::quote).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden(METADATA.field("finalizers"), detail));
    }
}

fn managed_fields(meta: &Value, errors: &mut Vec<FieldError>) {
    let path = METADATA.field("managedFields");
    for (i, entry) in meta.list("managedFields").iter().enumerate() {
        let path = path.index(i);
        let operation = entry.text("operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(path.field("operation"), operation, detail));
        }
        let fields_type = entry.text("fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            errors.push(FieldError::invalid(path.field("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        field_manager(entry.text("manager"), &path.field("manager"), errors);
        if entry.text("subresource").len() > SUBRESOURCE_MAX_BYTES {
            errors.push(too_long(&path.field("subresource"), SUBRESOURCE_MAX_BYTES));
        }
    }
}

/// What is wrong with the name of a manager of fields.
pub fn field_manager(manager: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if manager.len() > FIELD_MANAGER_MAX_BYTES {
        errors.push(too_long(path, FIELD_MANAGER_MAX_BYTES));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !crate::field::is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid(path, manager, detail));
    }
}

#[cfg(test)]
mod tests;
