//! To whom fields belong.

use serde_json::Value;

use super::compare::is_empty;
use super::path::Path;
use crate::release::{FieldOwner, FieldPath, KindDefaults};

/// Whether a field that is there, or not, would be written.
pub(super) fn writes(owner: FieldOwner, live: Option<&Value>) -> bool {
    match owner {
        FieldOwner::Release => true,
        FieldOwner::SetIfEmpty => live.is_none_or(is_empty),
        FieldOwner::User => false,
    }
}

/// To whom the fields of an object belong. What no rule names is the release's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ownership(Vec<(FieldPath, FieldOwner)>);

impl Ownership {
    /// Rules about fields, each with all that is in it. A rule about a field inside of another's counts more. Elements of
    /// lists are not told apart.
    pub fn new(rules: impl IntoIterator<Item = (FieldPath, FieldOwner)>) -> Self {
        Self(rules.into_iter().collect())
    }

    /// What a release says about objects of a kind.
    pub fn of_release(defaults: &KindDefaults) -> Self {
        Self::new(defaults.fields.iter().map(|(field, default)| (field.clone(), default.owner)))
    }

    /// To whom a field belongs.
    pub fn of(&self, path: &Path) -> FieldOwner {
        let rules = self.0.iter().filter(|(rule, _)| starts_with(path.names(), rule.parts()));
        let closest = rules.max_by_key(|(rule, _)| rule.parts().count());
        closest.map_or(FieldOwner::Release, |(_, owner)| *owner)
    }

    /// Whether a rule is about something inside of a field.
    pub(super) fn is_divided_below(&self, path: &Path) -> bool {
        let length = path.names().count();
        self.0.iter().any(|(rule, _)| rule.parts().count() > length && starts_with(rule.parts(), path.names()))
    }
}

fn starts_with<'n>(mut names: impl Iterator<Item = &'n str>, beginning: impl Iterator<Item = &'n str>) -> bool {
    { beginning }.all(|name| names.next() == Some(name))
}
