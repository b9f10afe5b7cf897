//! The kinds that every Kubernetes cluster has: one row each, with what they do beyond their schema.

pub mod eviction;
pub mod validate;

use serde_json::Value;

use crate::field::FieldError;

/// One served version of a built-in resource.
#[derive(Debug)]
pub struct Builtin {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version: `v1`.
    pub version: &'static str,
    /// `Deployment`.
    pub kind: &'static str,
    /// `deployments`.
    pub plural: &'static str,
    /// `deployment`.
    pub singular: &'static str,
    /// `deploy`.
    pub short_names: &'static [&'static str],
    /// `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The key of its schema in `builtin/openapi.json`.
    pub definition: &'static str,
    /// The verbs that the resource offers.
    pub verbs: Verbs,
    /// Objects have a `status` that is written apart.
    pub status: bool,
    /// Objects can be scaled through `spec.replicas`.
    pub scale: bool,
    /// Whether an update without a resourceVersion is taken as "whatever it is now".
    pub unconditional_update: bool,
    /// Whether `metadata.generation` counts changes of the desired state.
    pub generation: bool,
    /// The field selectors beyond `metadata.name` and `metadata.namespace`, as paths into the object.
    pub selectable_fields: &'static [&'static str],
    /// Fills in what a user may leave out and a schema's `default` cannot say.
    pub default: fn(&mut Value),
    /// Changes what a user may not decide; the second argument is the object as stored (an update), or `None` (a create).
    pub prepare: fn(&mut Value, Option<&Value>),
    /// What is wrong with the object; the second argument is the object as stored (an update), or `None` (a create).
    pub validate: fn(&Value, Option<&Value>) -> Vec<FieldError>,
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// One object's cells, one for each column.
    pub row: fn(&Value, jiff::Timestamp) -> Vec<Value>,
}

/// The verbs that a resource offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbs {
    /// All of them.
    All,
    /// Create only, answered and not stored: access and token reviews.
    CreateOnly,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, `date`, ….
    pub type_: &'static str,
    /// `name` for the name, else empty.
    pub format: &'static str,
    /// 0: always shown; 1: shown by `-o wide`.
    pub priority: i32,
}
