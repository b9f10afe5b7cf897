//! `events.k8s.io`: what happened, the newer of the two faces of an event.
//!
//! One event is one object, whichever group it is read through: it is stored in the core group's form, and these two
//! functions turn one into the other without loss.

use serde_json::{Map, Value};

use super::{BASE, Builtin, default, print};

/// The group of the newer face.
pub const GROUP: &str = "events.k8s.io";

pub(super) const EVENT: Builtin = Builtin {
    group: GROUP,
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    definition: "io.k8s.api.events.v1.Event",
    selectable_fields: &[
        "reason",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reportingController",
        "type",
    ],
    default: default::config::new_event,
    columns: print::event::COLUMNS,
    row: print::event::newer,
    create_on_update: true,
    ..BASE
};

/// Fields that have another name in the other group: first the core group's, then `events.k8s.io`'s.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Fields that the core group always shows and `events.k8s.io` leaves out when they are empty, by their core names.
const SHOWN_IN_CORE: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// An event of `events.k8s.io`, as the core group has it.
pub fn to_core(mut event: Value) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    for (core, newer) in NAMES {
        rename(fields, newer, core);
    }
    for name in SHOWN_IN_CORE {
        fields.entry(name).or_insert_with(|| "".into());
    }
    fields.insert("apiVersion".into(), "v1".into());
    event
}

/// An event of the core group, as `events.k8s.io` has it.
pub fn from_core(mut event: Value) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    for name in SHOWN_IN_CORE {
        if fields.get(name).is_some_and(|value| value == "") {
            fields.remove(name);
        }
    }
    for (core, newer) in NAMES {
        rename(fields, core, newer);
    }
    fields.insert("apiVersion".into(), "events.k8s.io/v1".into());
    event
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(core: &Value, newer: &Value) {
        assert_eq!(from_core(core.clone()), *newer);
        assert_eq!(to_core(newer.clone()), *core);
    }

    #[test]
    fn an_event_of_either_group_survives_the_other() {
        check(
            &json!({
                "apiVersion": "v1", "kind": "Event", "metadata": { "name": "a", "namespace": "b" },
                "involvedObject": { "kind": "Pod", "name": "web" }, "related": { "kind": "Node", "name": "n" },
                "reason": "Killing", "message": "Stopping", "source": { "component": "kubelet", "host": "n" },
                "firstTimestamp": "2026-11-15T08:00:00Z", "lastTimestamp": "2026-11-15T08:10:00Z", "count": 3,
                "type": "Normal", "eventTime": null, "series": { "count": 2, "lastObservedTime": null },
                "action": "Kill", "reportingComponent": "", "reportingInstance": "",
            }),
            &json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "a", "namespace": "b" },
                "regarding": { "kind": "Pod", "name": "web" }, "related": { "kind": "Node", "name": "n" },
                "reason": "Killing", "note": "Stopping", "deprecatedSource": { "component": "kubelet", "host": "n" },
                "deprecatedFirstTimestamp": "2026-11-15T08:00:00Z",
                "deprecatedLastTimestamp": "2026-11-15T08:10:00Z", "deprecatedCount": 3,
                "type": "Normal", "eventTime": null, "series": { "count": 2, "lastObservedTime": null },
                "action": "Kill",
            }),
        );
        check(
            &json!({ "apiVersion": "v1", "reportingComponent": "a/b", "reportingInstance": "c" }),
            &json!({ "apiVersion": "events.k8s.io/v1", "reportingController": "a/b", "reportingInstance": "c" }),
        );
    }

    #[test]
    fn what_is_no_event_stays_as_it_is() {
        assert_eq!(to_core(json!([1])), json!([1]));
        assert_eq!(from_core(Value::Null), Value::Null);
    }
}
