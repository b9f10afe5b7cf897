//! What a release says about the fields of objects, and whose each field is.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::field::FieldPath;
use crate::diff::Owners;

/// What a release says about objects of one kind, field by field.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KindDefaults {
    /// The fields. None of them is within another.
    pub fields: BTreeMap<FieldPath, FieldDefault>,
}

/// A field that a release has something to say about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDefault {
    /// What the field gets.
    pub value: Value,
    /// When it does.
    pub owner: FieldOwner,
}

/// Whose a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FieldOwner {
    /// Whoever fills it first: it is set where there is nothing, at creation and at every update.
    SetIfEmpty,
    /// The release: it is overwritten at creation and at every update.
    Release,
    /// Whoever owns the cluster: it is set at creation where there is nothing, and never touched again, not even when it was
    /// emptied.
    User,
}

impl KindDefaults {
    /// Fills in an object that is being created.
    pub fn at_creation(&self, object: &mut Value) {
        for (path, field) in &self.fields {
            let sets = match field.owner {
                FieldOwner::SetIfEmpty | FieldOwner::User => is_empty(path, object),
                FieldOwner::Release => true,
            };
            if sets {
                path.put(object, field.value.clone());
            }
        }
    }

    /// What is applied to an object that is there, by whoever applies under this name: the fields of the release, those that are
    /// empty, and those that the same one has filled in before, as they are: what is not applied again would go. All else is
    /// somebody else's, and is not in it.
    pub fn applied(&self, live: &Value, manager: &str) -> Value {
        let owners = Owners::of(live);
        let mut applied = json!({});
        for (path, field) in &self.fields {
            let value = match field.owner {
                FieldOwner::Release => Some(&field.value),
                FieldOwner::SetIfEmpty if is_empty(path, live) => Some(&field.value),
                FieldOwner::SetIfEmpty | FieldOwner::User => path.get(live).filter(|_| owners.has(manager, path)),
            };
            if let Some(value) = value {
                path.put(&mut applied, value.clone());
            }
        }
        applied
    }

    /// Brings an object that is there to the release.
    pub fn at_update(&self, object: &mut Value) {
        for (path, field) in &self.fields {
            let sets = match field.owner {
                FieldOwner::SetIfEmpty => is_empty(path, object),
                FieldOwner::Release => true,
                FieldOwner::User => false,
            };
            if sets {
                path.put(object, field.value.clone());
            }
        }
    }
}

/// Whether nothing is there, and nothing on the way that would have to be thrown away for it.
fn is_empty(path: &FieldPath, object: &Value) -> bool {
    let mut place = object;
    for part in path.parts() {
        match place {
            Value::Null => return true,
            Value::Object(fields) => match fields.get(part) {
                None => return true,
                Some(next) => place = next,
            },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => return false,
        }
    }
    place.is_null()
}
