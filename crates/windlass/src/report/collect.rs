//! The objects that say how a cluster is doing, read once.

use kube::ResourceExt as _;
use kube::api::ListParams;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::label;

use super::Report;
use crate::client::{Error, Management};
use crate::standing::Updated;

/// Reads what belongs to a cluster.
pub async fn read(management: &Management, cluster: &impl Updated) -> Result<Report, Error> {
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME.name, cluster.name_any()));
    let update = update(management, cluster).await?;
    let machines = management.api::<Machine>().list(&of_cluster).await;
    let machines = machines.map_err(Error::while_trying("list the machines"))?;
    Ok(Report::of(cluster, update.as_ref(), &machines.items, management.now()))
}

/// The update of a cluster that runs, or ran last.
pub async fn update(management: &Management, cluster: &impl Updated) -> Result<Option<ClusterUpdate>, Error> {
    let name = cluster.name_any();
    let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME.name));
    let updates = management.api::<ClusterUpdate>().list(&of_cluster).await;
    let updates = updates.map_err(Error::while_trying(&format!("list the updates of {name}")))?;
    Ok(cluster.latest(&updates.items).cloned())
}
