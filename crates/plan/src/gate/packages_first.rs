//! Packages come first.
//!
//! New machines have only the images of the new release on their disks. The add-ons of that release have to be in the cluster
//! before the first of them joins, and they have to work with what is there.

use super::Blocked;
use crate::inventory::Inventory;
use crate::package;
use crate::target::Target;

/// Refuses to replace machines while a package of the target is not applied, or not well, or something of ours is still there
/// that nobody could remove afterwards.
pub fn packages_first(target: &Target, inventory: &Inventory) -> Option<Blocked> {
    let Some(states) = package::states(target, inventory) else { return inventory.unreachable() };
    let complaint = |(addon, state): (_, package::PackageState)| {
        state.complaint().map(|why| Blocked::PackageNotReady { addon, why })
    };
    let removed = || inventory.reachable().and_then(|workload| package::of_removed_kind(target, &workload));
    states.into_iter().find_map(complaint).or_else(removed)
}
