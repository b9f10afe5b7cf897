//! What is different about the add-ons of a cluster.

use windlass_api::name::AddonName;

use super::machines::shown;
use super::{Effect, FieldChange, rule};
use crate::diff;
use crate::inventory::Inventory;
use crate::package;
use crate::release::{addon_role, slot};
use crate::step::Stage;
use crate::target::Target;

/// What the network add-on is for.
const CNI: &str = "cni";

/// Another network than the one that pods have.
pub(super) fn choice(target: &Target, inventory: &Inventory) -> Option<FieldChange> {
    let workload = inventory.reachable()?;
    let wanted: Vec<&AddonName> = target.release.addons.keys().filter(|name| slot(name) == CNI).collect();
    let has_objects = |name: &&AddonName| workload.addons.get(*name).is_some_and(|objects| !objects.is_empty());
    let found: Vec<&AddonName> = workload.addons.keys().filter(|name| slot(name) == CNI).filter(has_objects).collect();
    let lost = found.iter().find(|name| !wanted.contains(name))?;
    let new = wanted.iter().find(|name| !found.contains(name))?;
    Some(chosen(lost, new))
}

/// Another network than the one that the cluster was to have before, by what both ask for.
pub(super) fn other_choice(before: &Target, target: &Target) -> Option<FieldChange> {
    let network = |target: &Target| target.release.addons.keys().find(|name| slot(name) == CNI).cloned();
    let (old, new) = (network(before)?, network(target)?);
    (old != new).then(|| chosen(&old, &new))
}

fn chosen(from: &AddonName, to: &AddonName) -> FieldChange {
    let field = "spec.settings.network.cni.name";
    let (from, to) = (Some(from.to_string()), Some(to.to_string()));
    FieldChange::of(Stage::Packages, "addon/cni", rule("TanzuKubernetesCluster", field), field, from, to)
}

/// The objects that are not there, and the fields that are not as the release has them.
pub(super) fn objects(target: &Target, inventory: &Inventory) -> Vec<FieldChange> {
    let Some(workload) = inventory.reachable() else { return Vec::new() };
    let mut changes = Vec::new();
    for (addon, release) in &target.release.addons {
        for desired in &release.objects {
            let role = addon_role(addon, desired);
            let kind = desired["kind"].as_str().unwrap_or_default();
            let change = |field: &str, from, to| FieldChange {
                kind: kind.to_owned(),
                ..FieldChange::of(Stage::Packages, &role, rule(kind, field), field, from, to)
            };
            let Some(found) = package::find(&workload, addon, desired) else {
                changes.push(FieldChange { effect: Effect::Adds, ..change("metadata.name", None, None) });
                continue;
            };
            let different = diff::differences(desired, &found.live);
            if different.is_empty() {
                continue;
            }
            let [live, desired] = [&found.live, desired].map(diff::redacted);
            changes.extend(different.iter().map(|difference| {
                let path = &difference.path;
                change(&path.to_string(), path.get(&live).map(shown), path.get(&desired).map(shown))
            }));
        }
    }
    changes
}
