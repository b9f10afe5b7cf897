//! `coordination.k8s.io`: who leads, and until when.

use super::{BASE, Builtin, default, print};

pub(super) const LEASE: Builtin = Builtin {
    group: "coordination.k8s.io",
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    definition: "io.k8s.api.coordination.v1.Lease",
    unconditional_update: false,
    default: default::spec,
    columns: print::config::LEASE_COLUMNS,
    row: print::config::lease,
    create_on_update: true,
    ..BASE
};
