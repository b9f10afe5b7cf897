//! `authentication.k8s.io`: questions about who somebody is: answered, not stored.

use super::{BASE, Builtin, Verbs, default};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "authentication.k8s.io", ..BASE };

pub(super) const TOKEN_REVIEW: Builtin = Builtin {
    kind: "TokenReview",
    plural: "tokenreviews",
    singular: "tokenreview",
    namespaced: false,
    definition: "io.k8s.api.authentication.v1.TokenReview",
    verbs: Verbs::CreateOnly,
    default: default::spec_and_status,
    ..GROUP
};

pub(super) const SELF_SUBJECT_REVIEW: Builtin = Builtin {
    kind: "SelfSubjectReview",
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    namespaced: false,
    definition: "io.k8s.api.authentication.v1.SelfSubjectReview",
    verbs: Verbs::CreateOnly,
    ..GROUP
};
