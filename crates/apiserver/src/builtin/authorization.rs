//! `authorization.k8s.io`: questions about what somebody may do: answered, not stored.

use super::{BASE, Builtin, Verbs, default};

/// What all rows of this group share.
const GROUP: Builtin = Builtin { group: "authorization.k8s.io", ..BASE };

pub(super) const SELF_SUBJECT_ACCESS_REVIEW: Builtin = Builtin {
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    namespaced: false,
    definition: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    verbs: Verbs::CreateOnly,
    default: default::spec_and_status,
    ..GROUP
};

pub(super) const SUBJECT_ACCESS_REVIEW: Builtin = Builtin {
    kind: "SubjectAccessReview",
    plural: "subjectaccessreviews",
    singular: "subjectaccessreview",
    namespaced: false,
    definition: "io.k8s.api.authorization.v1.SubjectAccessReview",
    verbs: Verbs::CreateOnly,
    default: default::spec_and_status,
    ..GROUP
};

pub(super) const LOCAL_SUBJECT_ACCESS_REVIEW: Builtin = Builtin {
    kind: "LocalSubjectAccessReview",
    plural: "localsubjectaccessreviews",
    singular: "localsubjectaccessreview",
    definition: "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    verbs: Verbs::CreateOnly,
    default: default::spec_and_status,
    ..GROUP
};

pub(super) const SELF_SUBJECT_RULES_REVIEW: Builtin = Builtin {
    kind: "SelfSubjectRulesReview",
    plural: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    namespaced: false,
    definition: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    verbs: Verbs::CreateOnly,
    default: default::spec_and_status,
    ..GROUP
};
