//! What a cluster is now, as one end of an update.

use windlass_api::kind::cluster_update::{PoolEnd, UpdateEnd};
use windlass_api::kind::tanzu::Machines;
use windlass_api::name::PoolName;

use super::control_plane;
use crate::inventory::{Inventory, Pool, Template};
use crate::target::Drive;

/// What the cluster is now; `None` while it cannot be told. Where machines differ it is the oldest.
pub(super) fn end(drive: Drive, inventory: &Inventory) -> Option<UpdateEnd> {
    let workload = inventory.reachable()?;
    let machines = &inventory.control_plane.machines;
    let oldest = machines.iter().min_by_key(|machine| &machine.version)?;
    let versions = machines.iter().map(|machine| &machine.version);
    let pools = inventory.pools.values().map(|pool| &pool.version);
    let kubelets = workload.nodes.iter().map(|node| &node.kubelet);
    let kubernetes = versions.chain(pools).chain(kubelets).min()?;
    let labelled = workload.nodes.iter().filter_map(|node| node.distribution.as_ref()).min();
    let distribution = match drive {
        Drive::Machines => labelled?,
        // Machines that others made may not say what they were made from.
        Drive::KubeadmControlPlane | Drive::Topology => inventory.deployed.as_ref().or(labelled).unwrap_or(kubernetes),
    };
    let text = |name: Option<&str>| name.unwrap_or_default().to_owned();
    let mut end = UpdateEnd {
        distribution: distribution.to_string(),
        kubernetes: kubernetes.to_string(),
        release: inventory.releases.in_use.clone(),
        control_plane: Machines {
            count: control_plane::rows(machines),
            class: text(oldest.class.as_ref().map(AsRef::as_ref)),
            storage_class: text(oldest.storage_class.as_ref().map(AsRef::as_ref)),
        },
        ..UpdateEnd::default()
    };
    match drive {
        Drive::Machines => end.workers = inventory.pools.values().next().map(workers).unwrap_or_default(),
        Drive::KubeadmControlPlane | Drive::Topology => {
            end.pools = inventory.pools.iter().map(pool).collect();
            if let Some(observed) = &inventory.control_plane.kubeadm {
                end.control_plane.count = observed.replicas;
                if end.control_plane.class.is_empty() {
                    end.control_plane = self::machines(observed.replicas, &observed.infrastructure_template);
                }
            }
        }
    }
    Some(end)
}

fn pool((name, pool): (&PoolName, &Pool)) -> PoolEnd {
    PoolEnd { name: name.to_string(), machines: workers(pool) }
}

fn workers(pool: &Pool) -> Machines {
    machines(pool.replicas, &pool.infrastructure_template)
}

fn machines(count: u32, template: &Template) -> Machines {
    let spec = template.spec.as_ref();
    let field = |name: &str| spec.and_then(|spec| spec[name].as_str()).unwrap_or_default().to_owned();
    Machines { count, class: field("className"), storage_class: field("storageClass") }
}
