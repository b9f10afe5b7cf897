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
pub mod control_plane;
pub mod definition;
pub mod extension;
pub mod machine_deletion;
pub mod machine_health;
pub mod package_values;
pub mod packaging;
pub mod release;
pub mod tanzu;
pub mod topology;
pub mod virtual_machine;
pub mod wcp;

use std::str::FromStr;

use kube_core::Resource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::ConditionType;

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

impl ContractReference {
    /// Whether it refers to an object of this kind, in whichever version.
    pub fn is_of<K: Resource<DynamicType = ()>>(&self) -> bool {
        self.kind == K::kind(&()) && self.api_group == K::group(&())
    }
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

impl Condition {
    /// Why, as one of the words that have a meaning under this condition; nothing if it is none of them.
    pub fn reason_as<R: FromStr>(&self) -> Option<R> {
        self.reason.parse().ok()
    }
}

impl ConditionType {
    /// The condition of this type, if it is there.
    pub fn among(self, conditions: &[Condition]) -> Option<&Condition> {
        condition(conditions, self.as_str())
    }

    /// Whether the condition of this type is there and true.
    pub fn holds(self, conditions: &[Condition]) -> bool {
        is_true(conditions, self.as_str())
    }
}

/// The condition of that type.
pub fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type is there and true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// The schema of an object that may have anything in it. Without the extension an API server keeps the keys and loses what is
/// inside of their values.
pub(crate) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::TopologyReason;

    #[test]
    fn a_condition_is_asked_for_by_its_type_and_why_by_its_words() {
        let of = |type_: &str, status: &str, reason: &str| Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            ..Condition::default()
        };
        let conditions = [
            of("Paused", "True", "Paused"),
            of("TopologyReconciled", "False", "ClusterUpgrading"),
            of("Ready", "Unknown", "X"),
        ];

        assert!(ConditionType::Paused.holds(&conditions));
        assert!(!ConditionType::Ready.holds(&conditions) && !ConditionType::Available.holds(&conditions));
        let why = |type_: ConditionType| type_.among(&conditions).and_then(Condition::reason_as::<TopologyReason>);
        assert_eq!(why(ConditionType::TopologyReconciled), Some(TopologyReason::ClusterUpgrading));
        assert_eq!(why(ConditionType::Ready), None);
        assert_eq!(why(ConditionType::Available), None);
    }
}
