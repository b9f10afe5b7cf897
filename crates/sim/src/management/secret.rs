//! The Secrets of a cluster: the certificates that its machines need, and how to reach it as its administrator.
//!
//! Who owns them decides how long they live. A control plane that Cluster API rolls owns them as a whole; where machines stand
//! for themselves, the configuration of the first one does, and what nobody else owns is collected with it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_runtime::key::Key;

use super::context::{Error, Turn, path, workload_name};
use super::write;

/// The type of the Secrets of Cluster API.
pub(super) const TYPE: &str = "cluster.x-k8s.io/secret";

/// Makes the certificates that are not there. Those that somebody brought stay as they are.
pub(super) async fn ensure_certificates(turn: &Turn, cluster: &Cluster, owner: &OwnerReference) -> Result<(), Error> {
    let workload = workload_name(cluster)?;
    for secret in ClusterSecret::CERTIFICATES {
        if is_there(turn, cluster, secret)? {
            continue;
        }
        let data = turn.doors.certificate(&workload, secret)?;
        create(turn, cluster, secret, owner.clone(), data).await?;
    }
    Ok(())
}

/// Makes the kubeconfig, once there is an authority that could sign it. It is never changed.
pub(super) async fn ensure_kubeconfig(turn: &Turn, cluster: &Cluster, owner: OwnerReference) -> Result<(), Error> {
    let Some(endpoint) = &cluster.spec.control_plane_endpoint else { return Ok(()) };
    if !is_there(turn, cluster, ClusterSecret::CertificateAuthority)?
        || is_there(turn, cluster, ClusterSecret::Kubeconfig)?
    {
        return Ok(());
    }
    let kubeconfig = turn.doors.kubeconfig(&workload_name(cluster)?, endpoint).await?;
    let data = BTreeMap::from([("value".to_owned(), kubeconfig.into_bytes())]);
    create(turn, cluster, ClusterSecret::Kubeconfig, owner, data).await
}

fn is_there(turn: &Turn, cluster: &Cluster, secret: ClusterSecret) -> Result<bool, Error> {
    let name = secret.object_name(&name(cluster)?).to_string();
    Ok(turn.caches.secrets.get(&Key { namespace: cluster.metadata.namespace.clone(), name }).is_some())
}

fn name(cluster: &Cluster) -> Result<ClusterName, Error> {
    let meta = &cluster.metadata;
    ClusterName::new(meta.name.as_deref().unwrap_or_default())
        .map_err(|source| Error::Name { object: path(meta), source })
}

async fn create(
    turn: &Turn,
    cluster: &Cluster,
    secret: ClusterSecret,
    owner: OwnerReference,
    data: BTreeMap<String, Vec<u8>>,
) -> Result<(), Error> {
    let name = name(cluster)?;
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(secret.object_name(&name).to_string()),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some(BTreeMap::from([label::CLUSTER_NAME.entry(&name)])),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some(data.into_iter().map(|(key, value)| (key, ByteString(value))).collect()),
        ..Secret::default()
    };
    match write::create(turn, &secret).await {
        Err(error) if error.already_exists() => Ok(()),
        result => result.map(drop),
    }
}
