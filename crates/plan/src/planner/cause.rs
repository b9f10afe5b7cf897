//! Why an update begins, for its record.

use windlass_api::kind::cluster_update::{Cause, ChangeOrigin, ChangeRecord, UpdateEnd};
use windlass_api::kind::tanzu::Machines;

use super::case::Case;
use super::role;
use crate::change::{self, Effect, FieldChange, Origin};
use crate::step::Stage;

/// How many changes are put on record. The rest is counted.
const CHANGES_MAX: usize = 20;
/// How much of a value is put on record: what a machine is told can be pages.
const VALUE_CHARACTERS_MAX: usize = 120;

/// What differs, who asks for that, and what is replaced for it.
pub(super) fn of(case: &Case<'_>, from: &UpdateEnd, to: &UpdateEnd) -> Cause {
    let changes = change::classify(case.target, case.inventory).changes;
    let mut acting: Vec<&FieldChange> =
        changes.iter().filter(|change| !matches!(change.effect, Effect::Nothing | Effect::Refused)).collect();
    // What makes it an update first, and of the rest what people asked for.
    acting.sort_by_key(|change| (change.effect != Effect::Replaces, change.stage == Stage::Packages));
    let more = acting.len().saturating_sub(CHANGES_MAX);
    let more = if more == 0 { String::new() } else { format!("; {more} more changes") };
    Cause {
        summary: format!("{}{}{more}", asked(from, to, &acting).join(", "), replaced(case, to)),
        changes: acting.into_iter().take(CHANGES_MAX).map(recorded).collect(),
    }
}

/// What is asked for, one item for each thing that people would name.
fn asked(from: &UpdateEnd, to: &UpdateEnd, changes: &[&FieldChange]) -> Vec<String> {
    let mut items = Vec::new();
    if from.distribution != to.distribution {
        items.push(format!("{} -> {} (owner)", from.distribution, to.distribution));
    }
    let parts = [("control plane", &from.control_plane, &to.control_plane), ("workers", &from.workers, &to.workers)];
    for (word, of) in [("class", class as fn(&Machines) -> &str), ("storage class", storage_class)] {
        let different = parts.map(|(part, from, to)| (part, of(from), of(to)));
        let mut different = different.into_iter().filter(|(_, from, to)| from != to && !from.is_empty());
        match (different.next(), different.next()) {
            (Some((_, from, to)), Some(same)) if (from, to) == (same.1, same.2) => {
                items.push(format!("{word} {from} -> {to} (owner)"));
            }
            (first, second) => items.extend(
                first
                    .into_iter()
                    .chain(second)
                    .map(|(part, from, to)| format!("{word} of the {part} {from} -> {to} (owner)")),
            ),
        }
    }
    // The version comes with another image; only where it does not is the image worth a word.
    if from.distribution == to.distribution {
        items.extend(of_release(changes).or_else(|| of_words(from, to)));
    }
    items.extend(of_windlass(changes));
    items
}

/// Another image for the same release.
fn of_release(changes: &[&FieldChange]) -> Option<String> {
    let is_image = |change: &&&FieldChange| change.why == change::IMAGE && change.effect == Effect::Replaces;
    let change = changes.iter().find(is_image)?;
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    Some(format!("image {} -> {} (release)", shown(&change.from), shown(&change.to)))
}

/// The same image, which says something else about the same release.
fn of_words(from: &UpdateEnd, to: &UpdateEnd) -> Option<String> {
    let is_other = from.release.is_some() && to.release.is_some() && from.release != to.release;
    is_other.then(|| format!("the image of {} says something else (release)", to.distribution))
}

/// What nobody but we asked for.
fn of_windlass(changes: &[&FieldChange]) -> Option<String> {
    let ours = |change: &&&FieldChange| change.origin == Origin::Windlass && change.effect == Effect::Replaces;
    let change = changes.iter().find(ours)?;
    Some(format!("another default for {} (windlass)", change.field))
}

/// The machines that will be replaced, as far as the ends tell.
fn replaced(case: &Case<'_>, to: &UpdateEnd) -> String {
    let roles = &case.envelope.replaced;
    let control_plane = roles.iter().filter(|role| role.starts_with(role::CONTROL_PLANE)).count();
    let pools = case.target.pools.iter().filter(|pool| roles.contains(&role::pool(&pool.name)));
    let workers: u32 = pools.map(|pool| pool.machines.count).sum();
    let control_plane = match case.target.drive {
        crate::target::Drive::Machines => u32::try_from(control_plane).unwrap_or(u32::MAX),
        // Where Cluster API rolls it, the control plane is one thing.
        _ if control_plane > 0 => to.control_plane.count,
        _ => 0,
    };
    let parts = [counted(control_plane, "control-plane machine"), counted(workers, "worker")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(" and ")) }
}

fn counted(count: u32, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    }
}

fn class(machines: &Machines) -> &str {
    &machines.class
}

fn storage_class(machines: &Machines) -> &str {
    &machines.storage_class
}

fn recorded(change: &FieldChange) -> ChangeRecord {
    let cut = |value: &Option<String>| {
        let value = value.as_ref()?;
        let mut shown: String = value.chars().take(VALUE_CHARACTERS_MAX).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Some(shown)
    };
    ChangeRecord {
        stage: change.stage.as_str().to_owned(),
        role: change.role.clone(),
        field: change.field.clone(),
        from: cut(&change.from),
        to: cut(&change.to),
        origin: match change.origin {
            Origin::Owner => ChangeOrigin::Owner,
            Origin::Release => ChangeOrigin::Release,
            Origin::Windlass => ChangeOrigin::Windlass,
        },
    }
}
