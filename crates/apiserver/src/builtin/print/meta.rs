//! Kinds that show nothing but their metadata.

use jiff::Timestamp;
use serde_json::Value;

use crate::builtin::Column;

/// The columns of kinds that Kubernetes has no printer for.
pub(in crate::builtin) const CREATED_AT_COLUMNS: &[Column] =
    &[Column::NAME, Column { name: "Created At", type_: "date", format: "", priority: 0 }];

/// The row of kinds that Kubernetes has no printer for. kubectl makes an age of the time.
pub(in crate::builtin) fn created_at(object: &Value, _: Timestamp) -> Vec<Value> {
    let meta = &object["metadata"];
    vec![meta["name"].clone(), meta["creationTimestamp"].clone()]
}
