//! Machines are replaced for new defaults of Windlass only with their owner's consent.
//!
//! Whoever installs a newer Windlass did not ask for a fleet to be rolled. What a cluster's owner, or a release, asks for is
//! another matter: then machines are replaced anyway, and are made as Windlass makes them now.

use serde_json::{Value, json};

use super::Blocked;
use crate::change::{self, Effect, FieldChange, Origin};
use crate::digest;
use crate::inventory::Inventory;
use crate::target::{Drive, Target};

/// Refuses to begin an update whose only cause is this Windlass, until somebody has agreed to just that. Where Cluster API rolls
/// the control plane, others wrote what we would lay ours over, and asked for it by asking for us.
pub fn consent(target: &Target, inventory: &Inventory) -> Option<Blocked> {
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
    let digest = digest(&replacing);
    let agreed = inventory.consent.as_ref() == Some(&digest);
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let shown = format!("{} {} -> {}", first.field, value(&first.from), value(&first.to));
    (!agreed).then(|| Blocked::ConsentNeeded {
        cluster: target.cluster.name.clone(),
        digest,
        first: shown,
        changes: decisions(&replacing).len(),
        roles: roles(&replacing),
    })
}

/// Whose machines they are, in the order in which changes come.
fn roles(replacing: &[FieldChange]) -> Vec<String> {
    let mut roles: Vec<String> = replacing.iter().map(|change| change.role.clone()).collect();
    roles.dedup();
    roles
}

/// What is agreed to: fields and what they would be, on whichever machine. The same for all clusters that lack the same.
fn digest(replacing: &[FieldChange]) -> String {
    let decided: Vec<Value> = decisions(replacing).into_iter().map(|decision| json!(decision)).collect();
    digest::of(&decided.into())
}

/// What is decided otherwise, once each: of which kind of object, which field, and what it would be.
fn decisions(replacing: &[FieldChange]) -> Vec<(&str, &str, Option<&str>)> {
    let mut decided: Vec<_> =
        replacing.iter().map(|change| (change.kind.as_str(), change.field.as_str(), change.to.as_deref())).collect();
    decided.sort_unstable();
    decided.dedup();
    decided
}
