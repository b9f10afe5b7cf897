//! What is known about the shape of an object: one type for built-in kinds and custom resources.
//!
//! Built-in kinds get their schema from the facts in `builtin/openapi.json`, custom resources from their
//! `CustomResourceDefinition`; after [`compile`] nobody can tell them apart. Validation, pruning, defaulting, server-side
//! apply, strategic merge and strict decoding all walk this tree.

pub mod compile;
pub mod default;
pub mod definitions;
mod embedded;
pub(crate) mod format;
pub mod omit;
pub(crate) mod path;
pub mod prune;
pub(crate) mod regexp;
pub mod unmarshal;
pub mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The schema of the value at one place in an object. Shared: one definition used in many places is one allocation.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// What kind of value may stand here, and what is inside it.
    pub shape: Shape,
    /// `null` is a value here; elsewhere a null is as good as an absent field.
    pub nullable: bool,
    /// Filled in where the field is absent.
    pub default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`: pruning stops here (and resumes at properties that are specified).
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`: an object with `apiVersion`, `kind` and `metadata` of its own.
    pub embedded_resource: bool,
    /// How a strategic merge patch treats this field, when it is a list or a map of a built-in kind.
    pub patch: PatchStrategy,
    /// The constraints on the value. Absent for most places, so it is boxed.
    pub rules: Option<Box<Rules>>,
    /// The name of the definition that a built-in's schema came from (`io.k8s.api.core.v1.PodSpec`); decoding errors name it.
    pub definition: Option<Arc<str>>,
}

/// The kind of value that may stand at a place.
#[derive(Debug, Clone, Default)]
pub enum Shape {
    /// Anything: nothing is specified about it.
    #[default]
    Any,
    /// A string.
    String,
    /// A whole number; `format` in the rules tells its width.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    /// An object with named fields, a map with values of one shape, or both.
    Object(ObjectShape),
    /// A list.
    Array(ArrayShape),
}

/// The inside of an object.
#[derive(Debug, Clone, Default)]
pub struct ObjectShape {
    /// The named fields.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// The values of all other keys; `None` when only named fields are known.
    pub additional: Option<Arc<Schema>>,
    /// The fields that must be there.
    pub required: Vec<String>,
    /// The fields of a built-in that hold a struct in Go: a new object has them from the start, so nobody adds them.
    pub structs: Vec<String>,
    /// The fields of a built-in that tell a zero from nothing; any other zero is not shown.
    pub pointers: Vec<String>,
    /// `x-kubernetes-map-type`: an atomic map has one owner for all of it.
    pub atomic: bool,
}

/// The inside of a list.
#[derive(Debug, Clone, Default)]
pub struct ArrayShape {
    /// The elements.
    pub items: Arc<Schema>,
    /// How elements are told apart.
    pub list: ListType,
}

/// `x-kubernetes-list-type`: how the elements of a list are told apart, which decides who can own them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// One owner for the whole list.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects told apart by the values of these fields.
    Map(Vec<String>),
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of a built-in's field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// A list is merged by `merge_key` (or as a set of scalars without one) instead of replaced.
    pub merge: bool,
    /// `retainKeys`: the patch names the fields that survive.
    pub retain_keys: bool,
    /// An object is replaced instead of merged.
    pub replace: bool,
    /// The field that tells elements apart.
    pub merge_key: Option<String>,
}

/// The constraints of a schema node.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// No type is declared: the shape says what is inside *if* the value is an object or a list, and nothing else.
    pub untyped: bool,
    /// `format`, such as `int32`, `date-time` or `byte`.
    pub format: Option<String>,
    /// The values that are allowed.
    pub allowed: Option<Vec<Value>>,
    /// A regular expression that a string must match somewhere: as written, and compiled.
    pub pattern: Option<(String, regex::Regex)>,
    /// Bounds of a number; the flag says that the bound itself is excluded.
    pub minimum: Option<(f64, bool)>,
    /// See [`Rules::minimum`].
    pub maximum: Option<(f64, bool)>,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Bounds of a string's length, in characters.
    pub min_length: Option<u64>,
    /// See [`Rules::min_length`].
    pub max_length: Option<u64>,
    /// Bounds of a list's length.
    pub min_items: Option<u64>,
    /// See [`Rules::min_items`].
    pub max_items: Option<u64>,
    /// No element twice. (Refused by structural schemas; built-ins do not use it.)
    pub unique_items: bool,
    /// Bounds of the number of an object's fields.
    pub min_properties: Option<u64>,
    /// See [`Rules::min_properties`].
    pub max_properties: Option<u64>,
    /// Value validations that all must hold.
    pub all_of: Vec<Schema>,
    /// Value validations of which at least one must hold.
    pub any_of: Vec<Schema>,
    /// Value validations of which exactly one must hold.
    pub one_of: Vec<Schema>,
    /// A value validation that must not hold.
    pub not: Option<Box<Schema>>,
    /// `x-kubernetes-validations`, as written.
    pub expressions: Vec<Value>,
    /// The same, compiled.
    #[cfg(feature = "cel")]
    pub(crate) compiled: Arc<crate::cel::Compiled>,
}
