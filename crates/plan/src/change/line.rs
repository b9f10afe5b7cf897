//! Changes as lines for people: one for each object whose machines are replaced, one for each other change of it.

use super::{Effect, FieldChange, Origin};

/// What will change, in the order in which objects come. What does nothing is not told.
pub(crate) fn lines(changes: &[FieldChange]) -> Vec<String> {
    let mut lines = Vec::new();
    for of_role in changes.chunk_by(|left, right| left.role == right.role) {
        let role = of_role.first().map(|change| change.role.as_str()).unwrap_or_default();
        let with = |effect: Effect| of_role.iter().filter(move |change| change.effect == effect);
        if with(Effect::Adds).next().is_some() {
            lines.push(format!("{role}: new"));
        }
        lines.extend(replacement(role, with(Effect::Replaces)));
        lines.extend(with(Effect::InPlace).map(|change| format!("{role}: {}", difference(change))));
        lines.extend(
            with(Effect::Refused).map(|change| format!("{role}: {}, refused: {}", difference(change), change.why)),
        );
    }
    lines
}

/// One line for all that makes machines others than they are, and which fields are guilty.
fn replacement<'c>(role: &str, changes: impl Iterator<Item = &'c FieldChange>) -> Option<String> {
    let (mut differences, mut guilty): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for change in changes {
        differences.push(difference(change));
        guilty.push(short(change));
    }
    differences.dedup();
    guilty.dedup();
    (!guilty.is_empty())
        .then(|| format!("{role}: {}, forces replacement: {}", differences.join(", "), guilty.join(", ")))
}

/// A change in few words. What a machine is told is too long for a line; where nobody but we asked for it, the field is
/// named, because whoever reads it will ask.
fn difference(change: &FieldChange) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let told = is_told(change);
    let by_default = match change.origin {
        Origin::Windlass if told => format!(" ({}: {})", Origin::Windlass.as_str(), change.field),
        Origin::Windlass => format!(" ({})", Origin::Windlass.as_str()),
        Origin::Owner | Origin::Release => String::new(),
    };
    if told {
        return format!("another bootstrap configuration{by_default}");
    }
    format!("{} {} -> {}{by_default}", word(change), value(&change.from), value(&change.to))
}

/// Whether a field is part of what a machine reads when it first boots.
fn is_told(change: &FieldChange) -> bool {
    let configures = change.kind.starts_with("KubeadmConfig") || change.field.starts_with("spec.kubeadmConfigSpec");
    configures && change.effect == Effect::Replaces
}

/// The field by the name that people use for it.
fn word(change: &FieldChange) -> &str {
    match short(change) {
        "imageName" => "image",
        "className" | "vmClass" => "class",
        "storageClass" => "storage class",
        name => name,
    }
}

/// The field by the last part of its name.
fn short(change: &FieldChange) -> &str {
    if is_told(change) {
        return "bootstrap";
    }
    change.field.rsplit('.').next().unwrap_or(&change.field)
}
