//! Who owns which field of an object: its `managedFields`.

use serde_json::{Map, Value};

use super::compare::Difference;
use super::list;
use super::path::{Path, Segment};

/// Who owns which field of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Managers(Vec<Manager>);

#[derive(Debug, Clone)]
struct Manager {
    name: String,
    /// It owns fields by server-side apply, and of the object itself: what it applies no more, goes.
    applies: bool,
    /// What it owns, with all that is inside.
    leaves: Vec<Path>,
    /// The elements of lists that it has put there.
    elements: Vec<Path>,
}

impl Managers {
    /// Those of an object. Entries that cannot be read say nothing.
    pub(super) fn of(live: &Value) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        Self(entries.into_iter().flatten().filter_map(Manager::of).collect())
    }

    /// Who owns a field, or something in it. Sorted.
    pub(super) fn owners(&self, path: &Path) -> Vec<String> {
        let mut owners: Vec<String> =
            self.0.iter().filter(|manager| manager.owns(path)).map(|manager| manager.name.clone()).collect();
        owners.sort();
        owners.dedup();
        owners
    }

    /// Whether a field belongs to somebody else than us, and not to us.
    pub(super) fn others_own(&self, path: &Path, ours: &str) -> bool {
        let owners = self.owners(path);
        !owners.is_empty() && !owners.iter().any(|owner| owner == ours)
    }

    /// What is there only because we applied it, and what we would not apply any more.
    pub(super) fn given_up(&self, desired: &Value, live: &Value, ours: &str) -> Vec<Difference> {
        let mut given_up: Vec<Difference> = Vec::new();
        let is_ours = |manager: &&Manager| manager.applies && manager.name == ours;
        let shared = |path: &Path| self.0.iter().any(|manager| !is_ours(&manager) && manager.owns(path));
        for manager in self.0.iter().filter(is_ours) {
            // Whole elements first: what is in them goes with them.
            for path in manager.elements.iter().chain(&manager.leaves) {
                let gone = given_up.iter().any(|known| known.path.is_prefix_of(path));
                if gone || is_mentioned(path, desired) || is_key_of_its_element(path) || shared(path) {
                    continue;
                }
                if let Some(value) = path.get(live) {
                    given_up.push(Difference { path: path.clone(), live: Some(value.clone()), desired: None });
                }
            }
        }
        given_up
    }
}

impl Manager {
    fn of(entry: &Value) -> Option<Self> {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut manager = Self {
            name: text("manager").to_owned(),
            applies: text("operation") == "Apply" && text("subresource").is_empty(),
            leaves: Vec::new(),
            elements: Vec::new(),
        };
        manager.read(entry.get("fieldsV1")?.as_object()?, &Path::default());
        Some(manager)
    }

    fn read(&mut self, fields: &Map<String, Value>, path: &Path) {
        for (key, inside) in fields {
            let Some(segment) = segment(key, path.last()) else { continue };
            let path = path.then(segment);
            let none = Map::new();
            let inside = inside.as_object().unwrap_or(&none);
            if inside.is_empty() || inside.keys().any(|key| key.starts_with("v:") || key.starts_with("i:")) {
                self.leaves.push(path);
                continue;
            }
            if inside.contains_key(".") && matches!(path.last(), Some(Segment::Element(_))) {
                self.elements.push(path.clone());
            }
            self.read(inside, &path);
        }
    }

    fn owns(&self, path: &Path) -> bool {
        self.leaves.iter().any(|leaf| leaf.is_prefix_of(path) || path.is_prefix_of(leaf))
    }
}

/// `f:name` is a field and `k:{…}` an element with keys. `v:…` and `i:…`, elements of sets and of plain lists, are part of the
/// list to us.
fn segment(key: &str, list: Option<&Segment>) -> Option<Segment> {
    if let Some(name) = key.strip_prefix("f:") {
        return Some(Segment::Field(name.to_owned()));
    }
    let keys: Map<String, Value> = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
    let keys = keys.into_iter().map(|(name, value)| (name, value.to_string())).collect();
    Some(Segment::Element(list::known_keys(list, keys)))
}

/// Whether we would apply a field, or something in it, or all that it is in.
fn is_mentioned(path: &Path, desired: &Value) -> bool {
    path.get(desired).is_some_and(|value| !value.is_null())
}

/// Whether a field is what its element is known by: it goes only with the element.
fn is_key_of_its_element(path: &Path) -> bool {
    path.parent_and_last().is_some_and(|(parent, field)| list::is_key(parent, field))
}
