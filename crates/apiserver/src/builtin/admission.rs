//! `admissionregistration.k8s.io`: webhooks that are asked before a write.

use super::{BASE, Builtin, default, print};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "admissionregistration.k8s.io", ..BASE };

pub(super) const VALIDATING_WEBHOOK_CONFIGURATION: Builtin = Builtin {
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
    singular: "validatingwebhookconfiguration",
    categories: &["api-extensions"],
    namespaced: false,
    definition: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    unconditional_update: false,
    generation: true,
    default: default::webhook::validating,
    columns: print::meta::WEBHOOK_COLUMNS,
    row: print::meta::webhooks,
    ..GROUP
};

pub(super) const MUTATING_WEBHOOK_CONFIGURATION: Builtin = Builtin {
    kind: "MutatingWebhookConfiguration",
    plural: "mutatingwebhookconfigurations",
    singular: "mutatingwebhookconfiguration",
    categories: &["api-extensions"],
    namespaced: false,
    definition: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    unconditional_update: false,
    generation: true,
    default: default::webhook::mutating,
    columns: print::meta::WEBHOOK_COLUMNS,
    row: print::meta::webhooks,
    ..GROUP
};
