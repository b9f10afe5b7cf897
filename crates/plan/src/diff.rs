//! What applying objects would change about the ones that are there, field by field.
//!
//! Only fields are compared that we own or would own: what others put beside them is theirs, and survives byte for byte. For
//! each field that differs it is said to whom it belongs by rule ([`FieldOwner`]), who owns it now, and what our apply
//! would do about it. What is secret is shown as a hash and a length, whichever end of a change it is on.

mod compare;
mod list;
mod managed;
mod ownership;
mod path;
pub(crate) mod secret;
mod text;

use serde::Serialize;
use serde_json::Value;

pub use ownership::Ownership;
pub use path::{Path, Segment};
pub use secret::redacted;

pub(crate) use compare::{Difference, agrees, differences};

use crate::release::{FieldOwner, FieldPath};
use managed::Managers;

/// Who owns which field of an object.
pub(crate) struct Owners(Managers);

impl Owners {
    /// Those of an object, which is read whole.
    pub(crate) fn of(live: &Value) -> Self {
        Self(Managers::of(live))
    }

    /// Whether a field, or something in it, belongs to whoever writes under this name.
    pub(crate) fn has(&self, manager: &str, field: &FieldPath) -> bool {
        let path = field.parts().fold(Path::default(), |path, part| path.field(part));
        self.0.owners(&path).iter().any(|owner| owner == manager)
    }
}

/// What applying a set of objects would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[must_use = "a difference is to be shown"]
pub struct Diff {
    /// The objects, in the order in which they would be applied.
    pub objects: Vec<ObjectDiff>,
}

/// What applying an object would change.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[must_use = "a difference is to be shown"]
pub struct ObjectDiff {
    /// The version of its kind, with the group.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Whether it is there already.
    pub state: ObjectState,
    /// The fields that would be written with another value, or removed.
    pub changes: Vec<FieldDiff>,
    /// The fields that differ and would be left as they are.
    pub kept: Vec<FieldDiff>,
    /// The object as it is and as it would be, without what is secret.
    #[serde(skip)]
    sides: [Option<Value>; 2],
}

/// Whether an object is there, and as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObjectState {
    /// It is not there.
    New,
    /// Fields of it would change.
    Changed,
    /// Nothing would change.
    Same,
}

/// A field that differs. Its values are shown without what is secret.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldDiff {
    /// Where it is.
    #[schemars(with = "String")]
    pub path: Path,
    /// What it is; nothing if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What we would have it be; nothing if it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// To whom it belongs by rule.
    pub owner: FieldOwner,
    /// Who owns it now, as far as the object says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// What our apply would do about it.
    pub outcome: FieldOutcome,
}

/// What our apply does about a field that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FieldOutcome {
    /// It is not there, and is set.
    Added,
    /// It is ours, or nobody's, and is set.
    Changed,
    /// It is somebody else's, and is taken from them: our apply is forced.
    Taken,
    /// It was ours alone, we want it no more, and it goes.
    Removed,
    /// It is left as it is.
    Kept,
}

/// Compares an object as it should be with the one that is there, which is read whole, `managedFields` included. Without
/// them it is not known who owns what. `manager` is the name that we apply under.
pub fn object(desired: &Value, live: Option<&Value>, ownership: &Ownership, manager: &str) -> ObjectDiff {
    let found = found(desired, live, ownership, manager);
    let before = live.map(without_managed_fields);
    let after = after(desired, before.as_ref(), &found.changes);
    let sides = [before.map(|value| redacted(&value)), Some(redacted(&after))];
    // What we would not write is in neither side: it is looked up in what we would like to have.
    let wish = redacted(desired);
    let of_side = |difference: Difference, outcome| {
        let path = difference.path;
        let before = sides[0].as_ref().and_then(|side| path.get(side)).cloned();
        let after = match outcome {
            FieldOutcome::Kept => path.get(&wish),
            FieldOutcome::Added | FieldOutcome::Changed | FieldOutcome::Taken | FieldOutcome::Removed => {
                sides[1].as_ref().and_then(|side| path.get(side))
            }
        };
        let after = after.cloned();
        let owners = found.managers.owners(&path);
        FieldDiff { before, after, owner: ownership.of(&path), owners, outcome, path }
    };
    let outcome = |difference: &Difference| match (&difference.live, &difference.desired) {
        (_, None) => FieldOutcome::Removed,
        (None | Some(Value::Null), _) => FieldOutcome::Added,
        _ if found.managers.others_own(&difference.path, manager) => FieldOutcome::Taken,
        _ => FieldOutcome::Changed,
    };
    let changes: Vec<FieldDiff> = found.changes.iter().map(|it| of_side(it.clone(), outcome(it))).collect();
    let kept = found.kept.iter().map(|it| of_side(it.clone(), FieldOutcome::Kept)).collect();
    let text = |pointer: &str| desired.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ObjectDiff {
        api_version: text("/apiVersion").unwrap_or_default(),
        kind: text("/kind").unwrap_or_default(),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name").unwrap_or_default(),
        state: match (live, changes.is_empty()) {
            (None, _) => ObjectState::New,
            (Some(_), true) => ObjectState::Same,
            (Some(_), false) => ObjectState::Changed,
        },
        changes,
        kept,
        sides,
    }
}

/// What an object would be after our apply, all that is secret included: for whoever writes, and not to be shown.
pub fn merged(desired: &Value, live: Option<&Value>, ownership: &Ownership, manager: &str) -> Value {
    after(desired, live, &found(desired, live, ownership, manager).changes)
}

/// The differences between an object and what we would like it to be.
struct Found {
    changes: Vec<Difference>,
    kept: Vec<Difference>,
    managers: Managers,
}

fn found(desired: &Value, live: Option<&Value>, ownership: &Ownership, manager: &str) -> Found {
    let Some(live) = live else {
        return Found { changes: Vec::new(), kept: Vec::new(), managers: Managers::default() };
    };
    let managers = Managers::of(live);
    let (mut changes, kept): (Vec<_>, Vec<_>) = compare::owned(desired, live, ownership)
        .into_iter()
        .partition(|difference| ownership::writes(ownership.of(&difference.path), difference.live.as_ref()));
    changes.extend(managers.given_up(desired, live, manager));
    changes.sort_by(|left, right| left.path.cmp(&right.path));
    Found { changes, kept, managers }
}

fn after(desired: &Value, live: Option<&Value>, changes: &[Difference]) -> Value {
    let Some(live) = live else { return desired.clone() };
    let mut after = live.clone();
    for change in changes {
        match &change.desired {
            Some(value) => change.path.set(&mut after, value.clone()),
            None => change.path.remove(&mut after),
        }
    }
    after
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

impl ObjectDiff {
    /// The object as `Kind/namespace/name`.
    pub fn object(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{namespace}/{}", self.kind, self.name),
            None => format!("{}/{}", self.kind, self.name),
        }
    }

    /// What would change as a unified diff of YAML, in the manner of `kubectl diff`; empty if nothing would.
    pub fn text(&self) -> String {
        match self.state {
            ObjectState::Same => String::new(),
            ObjectState::New | ObjectState::Changed => text::unified(self),
        }
    }

    /// The whole in one line.
    pub fn summary(&self) -> String {
        let kept = match self.kept.len() {
            0 => String::new(),
            count => format!(", {} as they are", counted(count, "field stays", "fields stay")),
        };
        let what = match self.state {
            ObjectState::New => "new".to_owned(),
            ObjectState::Same => "the same".to_owned(),
            ObjectState::Changed => {
                format!("{}{}", counted(self.changes.len(), "field changes", "fields change"), taken(&self.changes))
            }
        };
        format!("{}: {what}{kept}", self.object())
    }
}

/// How many fields are taken from whom.
fn taken<'f>(changes: impl IntoIterator<Item = &'f FieldDiff>) -> String {
    let taken: Vec<&FieldDiff> = changes.into_iter().filter(|it| it.outcome == FieldOutcome::Taken).collect();
    let mut owners: Vec<&str> = taken.iter().flat_map(|field| &field.owners).map(String::as_str).collect();
    owners.sort_unstable();
    owners.dedup();
    match taken.len() {
        0 => String::new(),
        count => format!(" ({count} taken from {})", owners.join(", ")),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Diff {
    /// Whether anything would change.
    pub fn changes(&self) -> bool {
        self.objects.iter().any(|object| object.state != ObjectState::Same)
    }

    /// Unified diffs of all objects that would change, one after the other.
    pub fn text(&self) -> String {
        self.objects.iter().map(ObjectDiff::text).collect()
    }

    /// The whole in one line.
    pub fn summary(&self) -> String {
        let count = |state| self.objects.iter().filter(|object| object.state == state).count();
        let fields = || self.objects.iter().flat_map(|object| &object.changes);
        let kept: usize = self.objects.iter().map(|object| object.kept.len()).sum();
        format!(
            "{}: {} new, {} changed, {} the same; {}{}; {} as they are.",
            counted(self.objects.len(), "object", "objects"),
            count(ObjectState::New),
            count(ObjectState::Changed),
            count(ObjectState::Same),
            counted(fields().count(), "field changes", "fields change"),
            taken(fields()),
            counted(kept, "field stays", "fields stay"),
        )
    }
}

#[cfg(test)]
mod tests;
