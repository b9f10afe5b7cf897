//! The record of what was applied, and what is removed because it is on it.
//!
//! An object is removed when it is on record with its uid, carries our label, and no part of the release is it. Not before all
//! nodes are of the release, for pods of an earlier one may need it; but for objects of a kind that the next version of
//! Kubernetes has no more: they go before its first machine comes, as nobody could remove them afterwards.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::Case;
use super::role;
use crate::inventory::applied::{self, AppliedObject};
use crate::inventory::{AddonObject, Reachable};
use crate::package;
use crate::release::distribution_of;
use crate::step::{Action, Place, Stage, Step};

/// Kinds that are never removed: what others have put into them would go with them.
const KEPT: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// Brings the record up to date: all that is to be applied is on it, and what is on it is still there.
pub(super) fn record(case: &Case<'_>, workload: &Reachable<'_>) -> Option<Step> {
    let wanted = wanted(case, workload);
    let found = workload.applied.map(|applied| &applied.objects);
    if found.map_or(wanted.is_empty(), |found| *found == wanted) {
        return None;
    }
    let before = found.map_or(0, BTreeSet::len);
    let why = if wanted.len() == before {
        "what was applied has been seen".to_owned()
    } else {
        format!("{} objects are to be on record, {before} were", wanted.len())
    };
    Some(Step {
        stage: Stage::Packages,
        role: role::APPLIED.to_owned(),
        place: Place::Workload,
        action: Action::Apply {
            object: applied::render(&wanted),
            expect: workload.applied.map(|applied| applied.revision.clone()),
        },
        why,
    })
}

fn wanted(case: &Case<'_>, workload: &Reachable<'_>) -> BTreeSet<AppliedObject> {
    let mut wanted = BTreeSet::new();
    for (addon, release) in package::managed(case.target, workload) {
        for desired in &release.objects {
            let uid = package::find(workload, addon, desired).map(|found| found.revision.uid.clone());
            wanted.insert(AppliedObject { uid, ..AppliedObject::of(addon, desired) });
        }
    }
    for (entry, found) in left(case, workload) {
        wanted.insert(AppliedObject { uid: Some(found.revision.uid.clone()), ..entry.clone() });
    }
    wanted
}

/// What is on record, still there, and no part of the release.
fn left<'a>(
    case: &Case<'a>,
    workload: &Reachable<'a>,
) -> impl Iterator<Item = (&'a AppliedObject, &'a AddonObject)> + use<'a> {
    let (target, workload) = (case.target, *workload);
    let on_record = workload.applied.into_iter().flat_map(|applied| &applied.objects);
    on_record.filter_map(move |entry| {
        let found = workload.addons.get(&entry.addon)?.iter().find(|found| entry.is(&found.live))?;
        let is_it = entry.uid.as_ref().is_none_or(|uid| *uid == found.revision.uid);
        (is_it && !package::is_wanted(target, &found.live)).then_some((entry, found))
    })
}

/// Whether an object is on record as it was seen, so that it is removed in its time.
pub(super) fn is_to_go(workload: &Reachable<'_>, found: &AddonObject) -> bool {
    let is_kept = found.live["kind"].as_str().is_some_and(|kind| KEPT.contains(&kind));
    package::is_on_record(workload, found) && !is_kept
}

/// The objects that are to go now. What is bound to a distribution goes with its nodes, and not by the record.
pub(super) fn prunable(case: &Case<'_>, workload: &Reachable<'_>) -> Vec<Step> {
    let all_new = case.is_settled()
        && workload.nodes.iter().all(|node| node.distribution.as_ref() == Some(&case.target.release.distribution));
    let objects = left(case, workload).map(|(_, found)| found);
    let objects = objects.filter(|found| distribution_of(&found.live).is_none() && is_to_go(workload, found));
    let has_kind = |found: &AddonObject| package::has_kind(case.target, &found.live);
    objects
        .filter_map(|found| match (has_kind(found), all_new) {
            (false, _) => Some(delete(found, format!("{} has no such kind", case.target.release.kubernetes))),
            (true, true) => Some(delete(found, format!("it is no part of {}", case.target.release.distribution))),
            (true, false) => None,
        })
        .collect()
}

/// Deletes an object in the state that was seen.
pub(super) fn delete(found: &AddonObject, why: String) -> Step {
    let text = |pointer: &str| found.live.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Step {
        stage: Stage::Packages,
        role: role::STALE.to_owned(),
        place: Place::Workload,
        action: Action::Delete {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
            expect: found.revision.clone(),
        },
        why,
    }
}
