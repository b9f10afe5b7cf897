//! Events, of both groups alike.

use jiff::Timestamp;
use serde_json::Value;

use super::{count, name, since, text, text_or};
use crate::builtin::{Column, events};

/// The columns of [`core`] and [`newer`].
pub(in crate::builtin) const COLUMNS: &[Column] = &[
    Column::string("Last Seen"),
    Column::string("Type"),
    Column::string("Reason"),
    Column::string("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::string("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    Column { name: "Name", type_: "string", format: "name", priority: 1 },
];

/// Event of the core group.
pub(in crate::builtin) fn core(object: &Value, now: Timestamp) -> Vec<Value> {
    let series = &object["series"];
    let first = match &object["firstTimestamp"] {
        Value::Null => since(&object["eventTime"], now),
        time => since(time, now),
    };
    let last = match (&object["lastTimestamp"], series) {
        (Value::Null, Value::Null) => first.clone(),
        (time, Value::Null) => since(time, now),
        (_, series) => since(&series["lastObservedTime"], now),
    };
    // Events of the newer kind have no count when they happened once.
    let times = if series.is_null() { count(&object["count"]).max(1) } else { count(&series["count"]) };
    vec![
        last.into(),
        text(&object["type"]).into(),
        text(&object["reason"]).into(),
        target(&object["involvedObject"]).into(),
        text(&object["involvedObject"]["fieldPath"]).into(),
        source(object).into(),
        text(&object["message"]).trim().into(),
        first.into(),
        times.into(),
        name(object),
    ]
}

/// Event of `events.k8s.io`.
pub(in crate::builtin) fn newer(object: &Value, now: Timestamp) -> Vec<Value> {
    core(&events::to_core(object.clone()), now)
}

fn target(object: &Value) -> String {
    let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["name"]));
    if name.is_empty() { kind } else { format!("{kind}/{name}") }
}

fn source(object: &Value) -> String {
    let component = text_or(&object["source"]["component"], text(&object["reportingComponent"]));
    let instance = text_or(&object["source"]["host"], text(&object["reportingInstance"]));
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
