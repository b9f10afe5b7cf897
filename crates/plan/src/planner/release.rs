//! The copy of the release that a cluster is to have.
//!
//! It is there before anything is made of the release and before an update to it is on record, so that neither is lost with the
//! image. What the cluster has no more, and no update leads from or to, is removed when all is at rest.

use std::collections::BTreeSet;

use super::case::{Case, Course};
use super::{control_plane, observed, role};
use crate::inventory::{Inventory, KeptRelease};
use crate::render::{self, Scope};
use crate::step::{Action, Place, Stage, Step};

/// Keeps the release of the target, if it is not kept yet.
pub(super) fn keep(case: &Case<'_>) -> Option<Step> {
    let original = case.target.original()?;
    if !case.forbidden.is_empty() || case.inventory.releases.has(original.digest()) {
        return None;
    }
    Some(Step {
        stage: Stage::Packages,
        role: role::RELEASE.to_owned(),
        place: Place::Management,
        action: Action::Create { object: render::release::kept(&case.scope(), original) },
        why: "the release is kept, whatever becomes of its image".to_owned(),
    })
}

/// Whether the release says something else than the one that the cluster has. While machines are still to come it has none yet,
/// and takes what there is.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    let (Some(wanted), Some(in_use)) = (scope.target.original_digest(), &inventory.releases.in_use) else {
        return false;
    };
    let is_made = control_plane::missing(scope, inventory).next().is_none()
        && scope.target.pools.iter().all(|pool| inventory.pools.contains_key(&pool.name));
    wanted != in_use && is_made && observed::end(scope.target, inventory).is_some()
}

/// Removes what is kept and nobody needs.
pub(super) fn tidy(case: &Case<'_>) -> Vec<Step> {
    let at_rest = case.course == Course::Steady && case.held.is_empty() && case.is_settled();
    let Some(wanted) = case.target.original_digest().filter(|_| at_rest) else { return Vec::new() };
    let releases = &case.inventory.releases;
    let needed: BTreeSet<&str> = releases.in_use.as_deref().into_iter().chain([wanted]).collect();
    let step = |kept: &KeptRelease| Step {
        stage: Stage::Packages,
        role: role::EARLIER_RELEASE.to_owned(),
        place: Place::Management,
        action: Action::Delete {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(case.target.cluster.namespace.to_string()),
            name: kept.name.to_string(),
            expect: kept.revision.clone(),
        },
        why: "the cluster has another release".to_owned(),
    };
    releases.kept.iter().filter(|kept| !needed.contains(kept.digest.as_str())).map(step).collect()
}
