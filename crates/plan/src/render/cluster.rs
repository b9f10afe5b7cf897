//! What a cluster needs once: the Cluster, its infrastructure, and its certificates.

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::ClusterSpec;
use windlass_api::kind::wcp::{self, WCPClusterSpec};
use windlass_api::name::{ClusterSecret, Uid};

use super::{Scope, cluster_api_version, infrastructure_api_version};

/// The version of the kind of the owner, with its group.
const OWNER_API_VERSION: &str = "run.tanzu.vmware.com/v1alpha1";

/// Who controls an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    /// The owner does.
    Owner,
    /// The owner only outlives it: Cluster API controls it.
    Other,
}

/// The infrastructure that the cluster needs once.
pub fn wcp_cluster(scope: &Scope<'_>) -> Value {
    json!({
        "apiVersion": infrastructure_api_version(),
        "kind": "WCPCluster",
        "metadata": metadata(scope, Control::Other),
        "spec": WCPClusterSpec::default(),
    })
}

/// The cluster as Cluster API sees it.
pub fn cluster(scope: &Scope<'_>) -> Value {
    let network = &scope.target.network;
    let spec = ClusterSpec {
        infrastructure_ref: Some(ContractReference {
            api_group: wcp::GROUP.to_owned(),
            kind: "WCPCluster".to_owned(),
            name: scope.target.cluster.name.to_string(),
        }),
        cluster_network: Some(json!({
            "pods": { "cidrBlocks": network.pods },
            "services": { "cidrBlocks": network.services },
            "serviceDomain": network.service_domain,
        })),
        ..ClusterSpec::default()
    };
    let mut metadata = metadata(scope, Control::Owner);
    // What it begins with; from then on the record of each update says what it is.
    if let Some(digest) = scope.target.original_digest() {
        metadata["annotations"] = json!({ annotation::RELEASE_DIGEST.name: digest });
    }
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "Cluster",
        "metadata": metadata,
        "spec": spec,
    })
}

/// The metadata of a certificate. Its owner is the Cluster, never a machine: it has to outlive them all.
pub fn secret_metadata(scope: &Scope<'_>, secret: ClusterSecret, cluster: &Uid) -> Value {
    let name = secret.object_name(&scope.target.cluster.name);
    scope.metadata(name.as_str(), &scope.labels(), cluster)
}

/// Whose all of it is.
pub(super) fn owner(scope: &Scope<'_>) -> Value {
    let id = &scope.target.cluster;
    json!({
        "apiVersion": OWNER_API_VERSION,
        "kind": "TanzuKubernetesCluster",
        "name": id.name,
        "uid": id.uid,
    })
}

fn metadata(scope: &Scope<'_>, control: Control) -> Value {
    let id = &scope.target.cluster;
    let mut owner = owner(scope);
    if control == Control::Owner {
        owner["controller"] = true.into();
        owner["blockOwnerDeletion"] = true.into();
    }
    json!({ "name": id.name, "namespace": id.namespace, "labels": scope.labels(), "ownerReferences": [owner] })
}
