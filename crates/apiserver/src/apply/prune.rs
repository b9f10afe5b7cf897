//! What an applier no longer mentions goes, unless somebody else owns it.

use serde_json::Value;

use super::managed::Managers;
use super::owned::{fields, remove, with_parents};
use super::set::FieldSet;
use super::shape::Place;

/// Removes from `merged` what the applier owned (`last`), does not own any more (`now`), and no other manager owns.
///
/// Removing a field removes everything in it, also what the applier never owned. So it is done in three steps, each from
/// the merged object: remove all that the applier owned; add back what anybody owns; add back what nobody ever owned.
pub(super) fn prune(place: Place<'_>, merged: Value, last: &FieldSet, now: &FieldSet, others: &Managers) -> Value {
    let mut dropped = last.clone();
    dropped.subtract(now);
    if dropped.is_empty() {
        return merged;
    }
    let last = with_parents(place, last);
    let all = with_parents(place, &fields(place, &merged));

    let mut pruned = merged.clone();
    remove(place, &mut pruned, &last);

    let mut gone = all.clone();
    gone.subtract(&with_parents(place, &fields(place, &pruned)));
    for owned in others.0.iter().map(|entry| &entry.fields).chain([now]) {
        gone.subtract(&with_parents(place, owned));
    }
    pruned.clone_from(&merged);
    remove(place, &mut pruned, &gone);

    let mut gone = all;
    gone.subtract(&with_parents(place, &fields(place, &pruned)));
    let mut out = merged;
    remove(place, &mut out, &gone.intersection(&last));
    out
}
