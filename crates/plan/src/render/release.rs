//! What keeps a release for a cluster: a copy of what its image said.

use serde_json::{Value, json};
use windlass_api::name::kept_release_name;
use windlass_api::{annotation, label};

use super::Scope;
use crate::release::Original;

/// The copy. It is named by what is in it and never changes; it goes with the cluster.
pub fn kept(scope: &Scope<'_>, original: &Original) -> Value {
    let id = &scope.target.cluster;
    let labels = [label::CLUSTER_NAME.entry(&id.name), label::KEPT_RELEASE.entry(&scope.target.release.distribution)];
    let labels: serde_json::Map<String, Value> = labels.into_iter().map(|(key, value)| (key, value.into())).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": kept_release_name(&id.name, original.digest()),
            "namespace": id.namespace,
            "labels": labels,
            "annotations": { annotation::RELEASE_DIGEST.name: original.digest() },
            "ownerReferences": [super::cluster::owner(scope)],
        },
        "immutable": true,
        "data": original.data(),
    })
}
