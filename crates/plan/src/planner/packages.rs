//! The add-ons in the workload cluster. Each object is brought in apart from all others: an error with one stops no other.

use serde_json::Value;
use windlass_api::name::AddonName;

use super::case::Case;
use super::{StagePlan, applied};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{AddonObject, Reachable};
use crate::package::{self, PackageState};
use crate::release::{addon_role, distribution_of};
use crate::render;
use crate::step::{Action, Place, Stage, Step};

/// How many differences of one object are told.
const DIFFERENCES_SHOWN_MAX: usize = 3;

pub(super) fn plan(case: &Case<'_>) -> StagePlan {
    let held: Vec<Blocked> = case.forbidden.iter().cloned().chain(case.inventory.unreachable()).collect();
    let Some(workload) = case.inventory.reachable().filter(|_| held.is_empty()) else {
        return StagePlan::waiting(held, Vec::new());
    };
    let (mut steps, mut changes) = (Vec::new(), Vec::new());
    let ahead = proxy_refused(case, &workload);
    for (addon, release) in package::managed(case.target, &workload) {
        let refused = ahead.is_some() && addon.as_str() == package::PROXY;
        for desired in &release.objects {
            let found = package::find(&workload, addon, desired);
            if let Some(change) = change(desired, found) {
                changes.push(format!("{}: {change}", addon_role(addon, desired)));
                steps.extend((!refused).then(|| apply(addon, desired, change)));
            }
        }
    }
    // What is applied is on record before it is there.
    steps.splice(0..0, applied::record(case, &workload));
    let stale: Vec<(&AddonName, &AddonObject)> = stale(case, &workload).collect();
    if steps.is_empty() && case.is_settled() {
        let gone = |found: &&(&AddonName, &AddonObject)| bound_node(&workload, found.1).is_none();
        let why = || "no node of its distribution is left".to_owned();
        steps.extend(stale.iter().filter(gone).map(|(_, found)| applied::delete(found, why())));
    }
    if steps.is_empty() {
        steps.extend(applied::prunable(case, &workload));
    }
    if !steps.is_empty() {
        return StagePlan { blocked: ahead.into_iter().collect(), ..StagePlan::ready(steps, changes) };
    }
    let mut blocked: Vec<Blocked> = ahead.into_iter().chain(complaints(case)).collect();
    blocked.extend(package::of_removed_kind(case.target, &workload));
    if case.is_settled() {
        // Workers that are kept back for a later hop go on needing what they have.
        let workers_wait = case.target.kept_pools().next().is_some();
        let needed = |addon, found| kept(&workload, addon, found, workers_wait);
        blocked.extend(stale.iter().filter_map(|(addon, found)| needed(addon, found)));
    }
    if blocked.is_empty() { StagePlan::done() } else { StagePlan::running(blocked, changes) }
}

/// Why kube-proxy may not be brought in: it alone, as an error with one add-on stops no other.
fn proxy_refused(case: &Case<'_>, workload: &Reachable<'_>) -> Option<Blocked> {
    let machines = &case.inventory.control_plane.machines;
    case.gates.ask(Gate::ProxyNotAhead, || gate::proxy_not_ahead(case.target, machines, workload))
}

fn complaints(case: &Case<'_>) -> Vec<Blocked> {
    let complaint = |(addon, state): (AddonName, PackageState)| {
        state.complaint().map(|why| Blocked::PackageNotReady { addon, why })
    };
    package::states(case.target, case.inventory).into_iter().flatten().filter_map(complaint).collect()
}

/// What is to be changed about an object; `None` if it is as it should be.
fn change(desired: &Value, found: Option<&AddonObject>) -> Option<String> {
    let Some(found) = found else { return Some("new".to_owned()) };
    let differences = render::differences(desired, &found.live);
    let more = differences.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
    let shown: Vec<&str> = differences.iter().take(DIFFERENCES_SHOWN_MAX).map(String::as_str).collect();
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    (!differences.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

fn apply(addon: &AddonName, desired: &Value, why: String) -> Step {
    Step {
        stage: Stage::Packages,
        role: addon_role(addon, desired),
        place: Place::Workload,
        action: Action::Apply { object: desired.clone(), expect: None },
        why,
    }
}

/// The objects of other distributions than the target's.
fn stale<'a>(
    case: &Case<'a>,
    workload: &Reachable<'a>,
) -> impl Iterator<Item = (&'a AddonName, &'a AddonObject)> + use<'a> {
    let wanted = &case.target.release.distribution;
    let objects = workload.addons.iter().flat_map(|(addon, found)| found.iter().map(move |found| (addon, found)));
    objects.filter(move |(_, found)| distribution_of(&found.live).is_some_and(|bound| bound != *wanted))
}

/// What earlier releases have left behind, this one has no more, and is not on record as ours: nobody updates it, and it is not
/// deleted either. So it is at least told.
pub(super) fn left_over(case: &Case<'_>) -> Vec<String> {
    let Some(workload) = case.inventory.reachable() else { return Vec::new() };
    let is_wanted = |addon: &AddonName, found: &AddonObject| {
        let same = |desired: &Value| package::is_same(desired, &found.live);
        case.target.release.addons.get(addon).is_some_and(|release| release.objects.iter().any(same))
    };
    let objects = workload.addons.iter().flat_map(|(addon, found)| found.iter().map(move |found| (addon, found)));
    let left = objects.filter(|(addon, found)| distribution_of(&found.live).is_none() && !is_wanted(addon, found));
    let left = left.filter(|(_, found)| !applied::is_to_go(&workload, found));
    let tell = |(addon, found): (&AddonName, &AddonObject)| {
        let object = package::object_name(&found.live);
        format!(
            "D12: {object} of the add-on {addon} is no part of {}, and stays as it is",
            case.target.release.distribution
        )
    };
    left.map(tell).collect()
}

/// A node that an object is still for.
fn bound_node<'a>(workload: &Reachable<'a>, found: &AddonObject) -> Option<&'a crate::inventory::Node> {
    let bound = distribution_of(&found.live)?;
    workload.nodes.iter().find(|node| node.distribution.as_ref() == Some(&bound))
}

fn kept(workload: &Reachable<'_>, addon: &AddonName, found: &AddonObject, workers_wait: bool) -> Option<Blocked> {
    let node = bound_node(workload, found).filter(|node| node.control_plane || !workers_wait)?;
    let why = format!("{} stays, because node {} still needs it", package::object_name(&found.live), node.name);
    Some(Blocked::PackageNotReady { addon: addon.clone(), why })
}
