//! Workers never run ahead of the control plane.
//!
//! A kubelet may not be newer than any API server it talks to. The last thing a control-plane update does is to delete the
//! old Machine, so "every control-plane Machine is at the target" also proves that the update has ended.

use windlass_api::version::KubernetesVersion;

use super::Blocked;
use crate::inventory::Inventory;

/// Refuses to make workers of a version while any control-plane machine is older than it.
/// A pool whose version does not change (class, storage class, count) passes by the same rule, as no machine is older than the
/// workers that are there: it may roll beside the control plane.
pub fn worker_order(version: &KubernetesVersion, inventory: &Inventory) -> Option<Blocked> {
    let behind = inventory.control_plane.machines.iter().find(|machine| machine.version < *version)?;
    Some(Blocked::ControlPlaneBehind {
        machine: behind.name.clone(),
        at: behind.version.clone(),
        need: version.clone(),
    })
}
