//! What the controller would do next with a classic cluster, without doing it.

use kube::Api;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::NamespacedName;

use super::parts::published;
use super::{Considered, Unplanned, consider, latest};
use crate::access::Access;
use crate::reconcile::context::Reach;
use crate::reconcile::preview::Preview;
use crate::said::said;

/// There is nothing to preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The cluster could not be read.
    #[error("read {cluster}: {why}")]
    Unread {
        /// The cluster.
        cluster: NamespacedName,
        /// What the API said.
        why: String,
    },
    /// It is not known what it should be.
    #[error("find out what {cluster} is to be")]
    Unplanned {
        /// The cluster.
        cluster: NamespacedName,
        /// Why not.
        #[source]
        source: Unplanned,
    },
}

/// Looks at a cluster once. Only reads are made.
pub async fn preview(access: Access, cluster: &NamespacedName) -> Result<Preview, PreviewError> {
    let unread = |why: String| PreviewError::Unread { cluster: cluster.clone(), why };
    let reach = Reach::new(access);
    let api: Api<Cluster> = Api::namespaced(reach.access.client.clone(), cluster.namespace.as_str());
    let found = api.get(cluster.name.as_str()).await.map_err(|error| unread(said(&error)))?;
    let latest = latest(&reach.access.client, &found).await.map_err(|error| unread(error.to_string()))?;
    let unplanned = |source: Unplanned| PreviewError::Unplanned { cluster: cluster.clone(), source };
    let published = published(&reach.access.client).await.map_err(|error| unplanned(error.into()))?;
    let considered = consider(&reach, &found, latest.as_ref(), &published).await.map_err(unplanned)?;
    let Considered { input, planned, findings, .. } = considered;
    Ok(Preview { input, planned, findings })
}
