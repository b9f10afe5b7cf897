//! `batch`: workloads that end.

use super::{BASE, Builtin, default, prepare, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "batch", ..BASE };

pub(super) const JOB: Builtin = Builtin {
    kind: "Job",
    plural: "jobs",
    singular: "job",
    categories: &["all"],
    definition: "io.k8s.api.batch.v1.Job",
    status: true,
    generation: true,
    selectable_fields: &["status.successful"],
    default: default::batch::job,
    columns: print::workload::JOB_COLUMNS,
    row: print::workload::job,
    prepare: prepare::workload::job,
    ..GROUP
};

pub(super) const CRON_JOB: Builtin = Builtin {
    kind: "CronJob",
    plural: "cronjobs",
    singular: "cronjob",
    short_names: &["cj"],
    categories: &["all"],
    definition: "io.k8s.api.batch.v1.CronJob",
    status: true,
    generation: true,
    default: default::batch::cron_job,
    columns: print::workload::CRON_JOB_COLUMNS,
    row: print::workload::cron_job,
    ..GROUP
};
