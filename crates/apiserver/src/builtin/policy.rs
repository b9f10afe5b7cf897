//! `policy`: how many pods may be missing at once.

use super::{BASE, Builtin, default, print};

pub(super) const POD_DISRUPTION_BUDGET: Builtin = Builtin {
    group: "policy",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    singular: "poddisruptionbudget",
    short_names: &["pdb"],
    definition: "io.k8s.api.policy.v1.PodDisruptionBudget",
    status: true,
    unconditional_update: false,
    generation: true,
    default: default::batch::disruption_budget,
    columns: print::pod::BUDGET_COLUMNS,
    row: print::pod::disruption_budget,
    ..BASE
};
