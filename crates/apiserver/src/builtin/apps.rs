//! `apps`: workloads that keep running.

use super::{BASE, Builtin, default, prepare, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "apps", ..BASE };

pub(super) const DEPLOYMENT: Builtin = Builtin {
    kind: "Deployment",
    plural: "deployments",
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    definition: "io.k8s.api.apps.v1.Deployment",
    status: true,
    scale: true,
    generation: true,
    default: default::workload::deployment,
    columns: print::workload::DEPLOYMENT_COLUMNS,
    row: print::workload::deployment,
    ..GROUP
};

pub(super) const REPLICA_SET: Builtin = Builtin {
    kind: "ReplicaSet",
    plural: "replicasets",
    singular: "replicaset",
    short_names: &["rs"],
    categories: &["all"],
    definition: "io.k8s.api.apps.v1.ReplicaSet",
    status: true,
    scale: true,
    generation: true,
    default: default::workload::replica_set,
    columns: print::workload::REPLICA_SET_COLUMNS,
    row: print::workload::replica_set,
    ..GROUP
};

pub(super) const DAEMON_SET: Builtin = Builtin {
    kind: "DaemonSet",
    plural: "daemonsets",
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    definition: "io.k8s.api.apps.v1.DaemonSet",
    status: true,
    generation: true,
    default: default::workload::daemon_set,
    columns: print::workload::DAEMON_SET_COLUMNS,
    row: print::workload::daemon_set,
    prepare: prepare::workload::daemon_set,
    ..GROUP
};

pub(super) const STATEFUL_SET: Builtin = Builtin {
    kind: "StatefulSet",
    plural: "statefulsets",
    singular: "statefulset",
    short_names: &["sts"],
    categories: &["all"],
    definition: "io.k8s.api.apps.v1.StatefulSet",
    status: true,
    scale: true,
    generation: true,
    default: default::workload::stateful_set,
    columns: print::workload::STATEFUL_SET_COLUMNS,
    row: print::workload::stateful_set,
    ..GROUP
};

pub(super) const CONTROLLER_REVISION: Builtin = Builtin {
    kind: "ControllerRevision",
    plural: "controllerrevisions",
    singular: "controllerrevision",
    definition: "io.k8s.api.apps.v1.ControllerRevision",
    default: default::workload::controller_revision,
    columns: print::workload::REVISION_COLUMNS,
    row: print::workload::controller_revision,
    ..GROUP
};
