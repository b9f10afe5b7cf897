//! What the control plane of a Cluster is told to be, whoever its controller is.

use kube::api::{DynamicObject, GroupVersionKind};
use kube::core::ApiResource;
use kube::{Api, Client};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::version::KubernetesVersion;

use crate::admission::cluster::VERSION;

/// The version that the control plane of a cluster is told to have. One that says nothing that can be read is at no version that a
/// cluster could go back to.
pub async fn version(client: &Client, cluster: &Cluster) -> Result<Option<KubernetesVersion>, kube::Error> {
    let Some(reference) = &cluster.spec.control_plane_ref else { return Ok(None) };
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&reference.api_group, VERSION, &reference.kind));
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let found = api.get_opt(&reference.name).await?;
    Ok(found.and_then(|found| found.data["spec"]["version"].as_str().and_then(|version| version.parse().ok())))
}
