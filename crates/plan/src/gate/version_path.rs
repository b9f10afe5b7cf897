//! Versions go up, one minor at a time.
//!
//! No API server skips a minor, and none goes back: what is stored by a newer one need not be readable by an older one.
//! Admission refuses such a change before it is stored; whoever got past it is refused here.

use super::Blocked;
use crate::inventory::Inventory;
use crate::resolve::{self, Refusal, hops, labelled};
use crate::target::Target;

/// Refuses a target that cannot be reached from what is there in one update. Pools may have waited for several minors of the
/// control plane, and go up by all of them at once. Distributions may be numbered as they like, but never go back.
pub fn version_path(target: &Target, inventory: &Inventory) -> Option<Blocked> {
    let release = &target.release;
    let machines = inventory.control_plane.machines.iter().map(|machine| &machine.version);
    let kubeadm = inventory.control_plane.kubeadm.iter().map(|kubeadm| &kubeadm.version);
    let pools = inventory.pools.values().map(|pool| (&pool.version, &release.kubernetes));
    let nodes = inventory.reachable().map(|workload| workload.nodes).unwrap_or_default();
    let distributions = nodes.iter().filter_map(|node| Some((node.distribution.as_ref()?, &release.distribution)));
    let deployed = inventory.deployed.as_ref();
    let refusal = machines
        .chain(kubeadm)
        .find_map(|from| resolve::change(from, &release.kubernetes).err())
        .or_else(|| deployed.and_then(|from| labelled::not_older(from, &release.distribution).err()))
        .or_else(|| pools.chain(distributions).find_map(|(from, to)| resolve::not_back(from, to).err()))
        .or_else(|| too_old(target, inventory))?;
    Some(Blocked::VersionRefused { why: refusal.to_string() })
}

/// Refuses to leave workers further behind than their kubelets can be. Where the control plane is there already, to replace them
/// is the way out and not the danger.
fn too_old(target: &Target, inventory: &Inventory) -> Option<Refusal> {
    let to = &target.release.kubernetes;
    let steps = inventory.control_plane.machines.iter().any(|machine| machine.version != *to);
    let pools = inventory.pools.values().map(|pool| &pool.version);
    let workers = pools.filter(|_| steps).find(|workers| hops::is_too_old(workers, to))?;
    let distance = to.distance_from(workers).to_string();
    Some(Refusal::WorkersTooOld { workers: workers.clone(), to: to.clone(), distance })
}
