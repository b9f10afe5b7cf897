//! What a cluster's status says about its add-ons: `pending`, `applied`, `error` or `unmanaged`, each apart from the others.

use std::collections::BTreeMap;

use windlass_api::kind::tanzu::{AddonPhase, AddonStatus, TanzuKubernetesClusterStatus};
use windlass_api::name::AddonName;
use windlass_plan::inventory::{AddonObject, Workload};
use windlass_plan::package::{self, PackageState};
use windlass_plan::planner::Record;
use windlass_plan::release::AddonRelease;
use windlass_plan::report::StageState;
use windlass_plan::step::Stage;

use super::Recorded;

/// The status of each add-on of the release, by what it is for.
pub(super) fn addons(before: &TanzuKubernetesClusterStatus, recorded: &Recorded<'_>) -> BTreeMap<String, AddonStatus> {
    let (target, inventory) = (&recorded.input.target, &recorded.input.inventory);
    let states = package::states(target, inventory).unwrap_or_default();
    let entry = |(name, addon): (&AddonName, &AddonRelease)| {
        let known = before.addons.get(&addon.slot).filter(|before| before.name == addon.display_name);
        (addon.slot.clone(), status(known, (name, addon), states.get(name), recorded))
    };
    target.release.addons.iter().map(entry).collect()
}

/// An add-on that was neither written nor found complete now is what it was before. Its version is the last one that all of its
/// objects had.
fn status(
    known: Option<&AddonStatus>,
    (name, addon): (&AddonName, &AddonRelease),
    state: Option<&PackageState>,
    recorded: &Recorded<'_>,
) -> AddonStatus {
    let version = known.and_then(|known| known.version.clone());
    let status = |status: AddonPhase| AddonStatus {
        name: addon.display_name.clone(),
        status,
        version: version.clone(),
        last_error_message: None,
    };
    let error = |message: String| AddonStatus { last_error_message: Some(message), ..status(AddonPhase::Error) };
    if let Some(failure) = recorded.executed.failure_of_addon(name.as_str()) {
        return error(failure.error.to_string());
    }
    let unchanged = || known.cloned().unwrap_or_else(|| status(AddonPhase::Pending));
    match &recorded.input.inventory.workload {
        // As long as nothing was ever applied, there is nobody to reach yet.
        Workload::NotYet => return unchanged(),
        Workload::Unreachable { .. } if version.is_none() => return unchanged(),
        Workload::Unreachable { why } => return error(format!("the workload cluster cannot be reached: {why}")),
        Workload::Reachable { .. } => {}
    }
    match state {
        Some(PackageState::Unmanaged { .. }) => status(AddonPhase::Unmanaged),
        Some(PackageState::Ready | PackageState::NotWell { .. }) => {
            AddonStatus { version: Some(addon.version.clone()), ..status(AddonPhase::Applied) }
        }
        Some(PackageState::Differs { .. }) | None if is_written(name, addon, recorded) => {
            AddonStatus { version: Some(addon.version.clone()), ..status(AddonPhase::Applied) }
        }
        Some(PackageState::Differs { .. }) | None => match known {
            // It is ours again.
            Some(known) if known.status == AddonPhase::Unmanaged => status(AddonPhase::Pending),
            Some(_) | None => unchanged(),
        },
    }
}

/// Whether all objects of an add-on are there, and what was to be changed about them has been, as nothing of it failed.
fn is_written(name: &AddonName, addon: &AddonRelease, recorded: &Recorded<'_>) -> bool {
    let Workload::Reachable { addons, .. } = &recorded.input.inventory.workload else { return false };
    let planned = recorded.planned;
    let packages = planned.report.stages.iter().find(|stage| stage.stage == Stage::Packages);
    let held = packages.is_none_or(|stage| stage.state == StageState::Waiting) || recorded.executed.outdated;
    if held || matches!(planned.record, Some(Record::Begin { .. })) {
        return false;
    }
    let found = addons.get(name).map(Vec::as_slice).unwrap_or_default();
    let written = |object: &serde_json::Value| {
        let is_it = |step: &windlass_plan::step::Step| {
            step.stage == Stage::Packages
                && step.action.kind() == object["kind"].as_str().unwrap_or_default()
                && step.action.name() == object["metadata"]["name"].as_str().unwrap_or_default()
        };
        planned.steps.iter().any(is_it)
    };
    addon.objects.iter().all(|object| found.iter().any(|live| is_same(live, object)) || written(object))
}

fn is_same(found: &AddonObject, object: &serde_json::Value) -> bool {
    let name = |object: &serde_json::Value| {
        let metadata = &object["metadata"];
        (object["kind"].clone(), metadata["namespace"].clone(), metadata["name"].clone())
    };
    let (kind, namespace, of) = name(object);
    let live = name(&found.live);
    // A manifest may leave out the namespace; then it is the one that it was written to.
    live.0 == kind && live.2 == of && (namespace.is_null() || live.1 == namespace)
}

#[cfg(test)]
mod tests;
