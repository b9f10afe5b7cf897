//! `events.k8s.io`: what happened: the newer of the two faces of an event.

use super::{BASE, Builtin, default};

pub(super) const EVENT: Builtin = Builtin {
    group: "events.k8s.io",
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
    ..BASE
};
