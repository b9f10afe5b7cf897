//! How far a stage is, in numbers: what it has to make, and what of that is there.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde::Serialize;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateEnd, UpdateState};
use windlass_api::kind::is_true;
use windlass_api::kind::tanzu::{AddonPhase, AddonStatus};
use windlass_plan::step::Stage;

use super::{is_control_plane, time};

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Count {
    pub done: u64,
    pub of: u64,
}

impl Count {
    /// The part that is done, drawn so many letters wide.
    pub fn bar(self, width: usize) -> String {
        let of = usize::try_from(self.of).unwrap_or(usize::MAX).max(1);
        let done = usize::try_from(self.done).unwrap_or(usize::MAX).min(of);
        let full = width * done / of;
        format!("{}{}", "█".repeat(full), "░".repeat(width - full))
    }
}

/// How far a stage of an update is; nothing where the update does not touch it.
pub(super) fn of(
    stage: Stage,
    update: &ClusterUpdate,
    addons: Option<&BTreeMap<String, AddonStatus>>,
    machines: &[Machine],
) -> Option<Count> {
    let (from, to) = (&update.spec.from, &update.spec.to);
    // Where a release brings no add-ons, it sets fields: machines go by those, and not by its number.
    let is_other = match addons {
        Some(_) => from.distribution != to.distribution,
        None => from.kubernetes != to.kubernetes,
    };
    let is_outdated = |role: &str| {
        let mut outdated = from.outdated.iter().chain(&to.outdated);
        is_other || outdated.any(|outdated| outdated.starts_with(role))
    };
    let is_done = update.status.as_ref().and_then(|status| status.state) == Some(UpdateState::Succeeded);
    let count = match stage {
        Stage::Packages => addons.filter(|_| is_other).map(applied)?,
        Stage::ControlPlane => {
            let touched = from.control_plane != to.control_plane || is_outdated("control-plane");
            let of = u64::from(to.control_plane.count);
            touched.then(|| Count { done: made(update, machines, true, of), of })?
        }
        Stage::Workers => {
            let workers = |end: &UpdateEnd| u64::from(end.workers.count) + pools(end);
            let touched = from.workers != to.workers || from.pools != to.pools || is_outdated("workers");
            let of = workers(to);
            touched.then(|| Count { done: made(update, machines, false, of), of })?
        }
    };
    // What is done is done, also when a machine was replaced for another reason since.
    let done = if is_done { count.of } else { count.done.min(count.of) };
    Some(Count { done, ..count })
}

fn pools(end: &UpdateEnd) -> u64 {
    end.pools.iter().map(|pool| u64::from(pool.machines.count)).sum()
}

/// Add-ons that are as they should be, of those that are ours.
fn applied(addons: &BTreeMap<String, AddonStatus>) -> Count {
    let ours = || addons.values().filter(|addon| addon.status != AddonPhase::Unmanaged);
    let done = ours().filter(|addon| addon.status == AddonPhase::Applied).count();
    Count { done: done.try_into().unwrap_or(u64::MAX), of: ours().count().try_into().unwrap_or(u64::MAX) }
}

/// Machines that were made since the update began, are ready, and have taken the place of another: as long as there are older
/// ones, there is no place for as many.
fn made(update: &ClusterUpdate, machines: &[Machine], control_plane: bool, of: u64) -> u64 {
    let began = time(update.status.as_ref().and_then(|status| status.started_at.as_deref()));
    let began = began.or_else(|| update.creation_timestamp().map(|created| created.0));
    let is_new = |machine: &&Machine| machine.creation_timestamp().map(|created| created.0) >= began;
    let is_made = |machine: &&Machine| {
        let ready = machine.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Ready"));
        ready && machine.metadata.deletion_timestamp.is_none() && is_new(machine)
    };
    let of_role = || machines.iter().filter(|machine| is_control_plane(machine) == control_plane);
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let old = count(of_role().filter(|machine| !is_new(machine)).count());
    count(of_role().filter(is_made).count()).min(of.saturating_sub(old))
}
