//! `apiextensions.k8s.io`: kinds that users define.

use super::{BASE, Builtin};
use crate::crd;

pub(super) const CUSTOM_RESOURCE_DEFINITION: Builtin = Builtin {
    group: "apiextensions.k8s.io",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    namespaced: false,
    definition: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    status: true,
    unconditional_update: false,
    generation: true,
    default: crd::default,
    prepare: |definition, _| crd::record_stored_version(definition),
    ..BASE
};
