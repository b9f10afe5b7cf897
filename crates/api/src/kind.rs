//! The kinds, with the fields that Windlass reads or owns and no others.
//!
//! An object of a foreign kind is never written back as it was read here: what is not in the type would be lost. Writes are
//! built fresh and applied, so that fields of others stay theirs.
//!
//! Texts that people type (versions, names of classes) are texts here: an object with a typing error must still be readable,
//! so that its status can say what is wrong with it.

#![allow(
    clippy::duplicated_attributes,
    reason = "the columns of a kind are alike in their types: clippy takes them for one attribute"
)]

pub mod bootstrap;
pub mod cluster_api;
pub mod cluster_update;
pub mod definition;
pub mod tanzu;
pub mod virtual_machine;
pub mod wcp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference as Cluster API's v1beta2 contract has it: the version is found through the target's definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractReference {
    /// The group of the target.
    pub api_group: String,
    /// The kind of the target.
    pub kind: String,
    /// The name of the target, in the namespace of whoever refers to it.
    pub name: String,
}

/// Whether something holds, since when, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the object that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed, as RFC 3339.
    pub last_transition_time: String,
    /// Why, in one word.
    #[serde(default)]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default)]
    pub message: String,
}

/// The condition of that type.
pub fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type is there and true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition(conditions, type_).is_some_and(|condition| condition.status == "True")
}
