//! One write for the packages of a cluster.

use serde_json::Value;
use windlass_api::name::NamespacedName;

use crate::step::{Place, Revision};

/// An object, by what it is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// The version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, where it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// One write, and which API it goes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which API.
    pub place: Place,
    /// What is written.
    pub write: Write,
    /// Where it fails, those after it are made all the same: packages that were added do not wait for each other. Steps of one
    /// package have the same word here, and the first failure ends them.
    pub alone: Option<String>,
    /// Why, in a sentence for people.
    pub why: String,
}

/// What is written. Whoever executes it makes no choices.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// POST. Where there is one of that name, it is left as it is.
    Create {
        /// The whole object.
        object: Value,
    },
    /// Server-side apply, forced, of exactly these fields.
    Apply {
        /// The fields.
        object: Value,
    },
    /// A Secret with what another one says. What that is, is not known here.
    CopySecret {
        /// The one that is copied, in the management cluster.
        from: NamespacedName,
        /// The copy, without data.
        object: Value,
    },
    /// A merge patch of the object in this state.
    Patch {
        /// The object.
        object: Object,
        /// What changes.
        patch: Value,
        /// The state that the decision was made on.
        expect: Revision,
    },
    /// A merge patch of its status.
    PatchStatus {
        /// The object.
        object: Object,
        /// What changes.
        patch: Value,
        /// The state that the decision was made on.
        expect: Revision,
    },
    /// Deletes the object in this state.
    Delete {
        /// The object.
        object: Object,
        /// The state that the decision was made on.
        expect: Revision,
    },
}

impl Step {
    /// A write that those after it build on.
    pub(super) fn new(place: Place, write: Write, why: impl Into<String>) -> Self {
        Self { place, write, alone: None, why: why.into() }
    }

    /// The same for a package that others do not wait for.
    pub(super) fn of(self, package: Option<&str>) -> Self {
        Self { alone: package.map(str::to_owned), ..self }
    }
}
