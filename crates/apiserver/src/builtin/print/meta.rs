//! Kinds that show little but their metadata.

use jiff::Timestamp;
use serde_json::Value;

use super::{age, list, name, text};
use crate::builtin::Column;

/// The columns of kinds that Kubernetes has no printer for.
pub(in crate::builtin) const CREATED_AT_COLUMNS: &[Column] =
    &[Column::NAME, Column { name: "Created At", type_: "date", format: "", priority: 0 }];

/// The row of kinds that Kubernetes has no printer for. kubectl makes an age of the time.
pub(in crate::builtin) fn created_at(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["metadata"]["creationTimestamp"]).into()]
}

/// The columns of [`name_and_age`].
pub(in crate::builtin) const NAME_AND_AGE_COLUMNS: &[Column] = &[Column::NAME, Column::AGE];

/// `ServiceAccount`.
pub(in crate::builtin) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

/// The columns of [`webhooks`].
pub(in crate::builtin) const WEBHOOK_COLUMNS: &[Column] = &[Column::NAME, Column::integer("Webhooks"), Column::AGE];

/// Both kinds of webhook configurations.
pub(in crate::builtin) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), list(&object["webhooks"]).len().into(), age(object, now)]
}
