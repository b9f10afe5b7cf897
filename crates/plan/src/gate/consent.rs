//! What needs somebody's agreement is not begun without it.
//!
//! Whoever installs a newer Windlass did not ask for a fleet to be rolled. What a cluster's owner, or a release, asks for is
//! another matter: then machines are replaced anyway, and are made as Windlass makes them now. Where a namespace wants its updates
//! approved, that has to be agreed to as well. Both is agreed to in the same way: by the digest of the envelope, so that an agreement
//! to another update is worth nothing.

use super::Blocked;
use crate::change::{self, Effect, FieldChange, Origin};
use crate::inventory::Inventory;
use crate::target::{Drive, Target};

/// Refuses to begin an update whose only cause is this Windlass, until somebody has agreed to just that. Where Cluster API rolls
/// the control plane, others wrote what we would lay ours over, and asked for it by asking for us.
pub fn consent(target: &Target, inventory: &Inventory, envelope: impl FnOnce() -> String) -> Option<Blocked> {
    if target.drive != Drive::Machines {
        return None;
    }
    let changes = change::classify(target, inventory).changes;
    let replacing: Vec<FieldChange> =
        changes.into_iter().filter(|change| matches!(change.effect, Effect::Replaces | Effect::Refused)).collect();
    let first = replacing.first()?;
    if replacing.iter().any(|change| change.origin != Origin::Windlass) {
        return None;
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let shown = format!("{} {} -> {}", first.field, value(&first.from), value(&first.to));
    unless_agreed(target, inventory, envelope(), |digest| Blocked::ConsentNeeded {
        cluster: target.cluster.name.clone(),
        digest,
        first: shown,
        changes: decisions(&replacing),
        roles: roles(&replacing),
    })
}

/// Refuses to begin an update where that has to be approved, until it is.
pub fn approval(target: &Target, inventory: &Inventory, envelope: impl FnOnce() -> String) -> Option<Blocked> {
    if !inventory.orders.approval.is_required {
        return None;
    }
    unless_agreed(target, inventory, envelope(), |digest| Blocked::ApprovalNeeded {
        kind: target.kind(),
        cluster: target.cluster.name.clone(),
        digest,
        to: target.release.distribution.clone(),
    })
}

fn unless_agreed(
    target: &Target,
    inventory: &Inventory,
    digest: String,
    needed: impl FnOnce(String) -> Blocked,
) -> Option<Blocked> {
    if inventory.consent.as_ref() == Some(&digest) {
        return None;
    }
    let rejected = inventory.orders.approval.rejected.as_ref().filter(|rejection| rejection.digest == digest);
    Some(match rejected {
        Some(rejection) => Blocked::Rejected {
            kind: target.kind(),
            cluster: target.cluster.name.clone(),
            digest,
            by: rejection.by.clone(),
            because: rejection.because.clone(),
        },
        None => needed(digest),
    })
}

/// Whose machines they are, in the order in which changes come.
fn roles(replacing: &[FieldChange]) -> Vec<String> {
    let mut roles: Vec<String> = replacing.iter().map(|change| change.role.clone()).collect();
    roles.dedup();
    roles
}

/// How much is decided otherwise, each once: of which kind of object, which field, and what it would be.
fn decisions(replacing: &[FieldChange]) -> usize {
    let mut decided: Vec<_> =
        replacing.iter().map(|change| (change.kind.as_str(), change.field.as_str(), change.to.as_deref())).collect();
    decided.sort_unstable();
    decided.dedup();
    decided.len()
}
