//! What is different about an object that its owner has made, and a release sets fields of.

use serde_json::Value;
use windlass_api::version::KubernetesVersion;

use super::machines::shown;
use super::{Effect, FieldChange, Origin, rule};
use crate::diff::{self, FieldDiff, Ownership};
use crate::render::FIELD_MANAGER;
use crate::render::classic::compared;
use crate::step::Stage;
use crate::target::ObjectFields;

/// The fields that would be written with another value, or that go because the release has no more to say about them. `kind` is
/// the one on the wire; releases name it in lower case.
pub(super) fn object(
    (stage, role): (Stage, &str),
    kind: &str,
    live: &Value,
    fields: &ObjectFields,
) -> Vec<FieldChange> {
    let desired = compared(&kind.to_ascii_lowercase(), live, fields);
    let differences = diff::object(&desired, Some(live), &Ownership::default(), FIELD_MANAGER).changes;
    let of_spec = differences.into_iter().filter(|difference| difference.path.names().next() == Some("spec"));
    of_spec.map(|difference| Place { stage, role, kind }.change(&difference)).collect()
}

/// Whose changes they are.
struct Place<'a> {
    stage: Stage,
    role: &'a str,
    kind: &'a str,
}

impl Place<'_> {
    fn change(&self, difference: &FieldDiff) -> FieldChange {
        let Place { stage, role, kind } = *self;
        let field = difference.path.fields();
        let version = |side: &Option<Value>| side.as_ref()?.as_str()?.parse::<KubernetesVersion>().ok();
        let ordered = version(&difference.before).zip(version(&difference.after));
        let change = ordered
            .filter(|_| field.ends_with("version"))
            .and_then(|(from, to)| FieldChange::ordered(stage, role, (kind, field.as_str()), &from, &to));
        let [from, to] = [&difference.before, &difference.after].map(|side| side.as_ref().map(shown));
        let change = change.unwrap_or_else(|| FieldChange::of(stage, role, rule(kind, &field), &field, from, to));
        // What does nothing to machines is a change of the object all the same, and is made.
        let effect = if change.effect == Effect::Nothing { Effect::InPlace } else { change.effect };
        FieldChange { origin: Origin::Release, effect, ..change }
    }
}
