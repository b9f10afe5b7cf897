//! The objects that say how a cluster is doing, read once.

use kube::ResourceExt as _;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;

use super::Report;
use crate::client::{Error, Management};

/// Reads what belongs to a cluster.
pub async fn read(management: &Management, cluster: &TanzuKubernetesCluster) -> Result<Report, Error> {
    let update = match cluster.status.as_ref().and_then(|status| status.update.as_ref()) {
        Some(update) => {
            let found = management.api::<ClusterUpdate>().get_opt(update).await;
            found.map_err(Error::while_trying(&format!("read the update {update}")))?
        }
        None => None,
    };
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME.name, cluster.name_any()));
    let machines = management.api::<Machine>().list(&of_cluster).await;
    let machines = machines.map_err(Error::while_trying("list the machines"))?;
    Ok(Report::of(cluster, update.as_ref(), &machines.items, management.now()))
}
