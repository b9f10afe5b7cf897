//! `scheduling.k8s.io`: which pods go first.

use super::{BASE, Builtin, default, prepare, print};

pub(super) const PRIORITY_CLASS: Builtin = Builtin {
    group: "scheduling.k8s.io",
    kind: "PriorityClass",
    plural: "priorityclasses",
    singular: "priorityclass",
    short_names: &["pc"],
    namespaced: false,
    definition: "io.k8s.api.scheduling.v1.PriorityClass",
    default: default::config::priority_class,
    columns: print::config::PRIORITY_COLUMNS,
    row: print::config::priority_class,
    prepare: prepare::cluster::priority_class,
    ..BASE
};
