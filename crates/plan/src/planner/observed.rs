//! What a cluster is now, as one end of an update.

use windlass_api::kind::cluster_update::{PoolEnd, UpdateEnd};
use windlass_api::kind::tanzu::Machines;
use windlass_api::name::PoolName;

use super::control_plane;
use crate::inventory::{Inventory, Pool, Template};
use crate::profile::{MachineField, Profile};
use crate::target::{Drive, Target};

/// What the cluster is now; `None` while it cannot be told. Where machines differ it is the oldest.
pub(super) fn end(target: &Target, inventory: &Inventory) -> Option<UpdateEnd> {
    let workload = inventory.reachable()?;
    let machines = &inventory.control_plane.machines;
    let oldest = machines.iter().min_by_key(|machine| &machine.version)?;
    let versions = machines.iter().map(|machine| &machine.version);
    let pools = inventory.pools.values().map(|pool| &pool.version);
    let kubelets = workload.nodes.iter().map(|node| &node.kubelet);
    let kubernetes = versions.chain(pools).chain(kubelets).min()?;
    let labelled = workload.nodes.iter().filter_map(|node| node.distribution.as_ref()).min();
    let distribution = match target.drive {
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
    let pool = |(name, pool): (&PoolName, &Pool)| {
        let made_from = (target.pool_profile(name), &pool.infrastructure_template);
        PoolEnd { name: name.to_string(), machines: self::machines(pool.replicas, made_from) }
    };
    match target.drive {
        Drive::Machines => end.workers = inventory.pools.iter().next().map(pool).unwrap_or_default().machines,
        Drive::KubeadmControlPlane | Drive::Topology => {
            end.pools = inventory.pools.iter().map(pool).collect();
            if let Some(observed) = &inventory.control_plane.kubeadm {
                end.control_plane.count = observed.replicas;
                if end.control_plane.class.is_empty() {
                    let made_from = (target.control_plane_profile(), &observed.infrastructure_template);
                    end.control_plane = self::machines(observed.replicas, made_from);
                }
            }
        }
    }
    Some(end)
}

fn machines(count: u32, (profile, template): (&Profile, &Template)) -> Machines {
    let text = |field: &Option<MachineField>| {
        let found = field.as_ref().zip(template.spec.as_ref()).and_then(|(field, machine)| field.of(machine)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    Machines { count, class: text(&profile.class), storage_class: text(&profile.storage_class) }
}
