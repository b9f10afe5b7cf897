//! `apiextensions.k8s.io`: kinds that users define.

use serde_json::{Value, json};

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
    prepare,
    ..BASE
};

/// The server says which versions are in the store; a new definition waits for its names to be accepted.
fn prepare(definition: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        definition["status"] = json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null});
    }
    crd::record_stored_version(definition);
}
