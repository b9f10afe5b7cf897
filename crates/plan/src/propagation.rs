//! Classes of clusters, in the namespaces that need them.
//!
//! A `ClusterClass` and the templates that it refers to are kept in one namespace, the source, and copied to others: to those that
//! are labelled, and to those in which a Cluster names a class without saying that it is elsewhere. A copy is marked as one, equal to
//! its source, and goes when its source goes or nobody needs it any more, unless a Cluster still uses it. What is not marked was made
//! by somebody else, and is left alone.
//!
//! A class comes after what it refers to and goes after it, so that a crash in between leaves nothing that would not be found.

mod mirror;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use windlass_api::label;

use crate::bootstrap::{Object, Step, Write, revision};
use crate::step::Place;

/// The kind whose objects are copied with all that they refer to.
const CLASS: &str = "ClusterClass";
/// Where a reference to a template is in a class, at whatever depth.
const TEMPLATE_REFERENCE: &str = "templateRef";

/// A template, by what a class calls it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// What an object is called.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            name: text(&object["metadata"]["name"]),
        }
    }

    /// The same kind and name; versions of a kind are ways to read one object.
    fn key(&self) -> (String, String) {
        (self.kind.clone(), self.name.clone())
    }
}

/// The templates that a class refers to, each once.
pub fn references(class: &Value) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    collect(&class["spec"], &mut found);
    found
}

fn collect(value: &Value, found: &mut BTreeSet<Reference>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == TEMPLATE_REFERENCE {
                    let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
                    found.insert(Reference { api_version: text("apiVersion"), kind: text("kind"), name: text("name") });
                } else {
                    collect(field, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// A namespace that classes may be copied to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub namespace: String,
    /// It is labelled as one that has all classes.
    pub labelled: bool,
    /// The classes that its Clusters name without saying that they are elsewhere, with the Clusters.
    pub named: BTreeMap<String, Vec<String>>,
}

impl Target {
    /// Whether a class should be here.
    pub fn needs(&self, class: &str) -> bool {
        self.labelled || self.named.contains_key(class)
    }
}

/// What there is to decide on.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The namespace that is copied from.
    pub source: String,
    /// The one that is copied to.
    pub target: Target,
    /// The classes of the source, and the templates that they refer to, as they are.
    pub sources: Vec<Value>,
    /// What the target has of the same names, and all in it that is marked as a copy.
    pub here: Vec<Value>,
}

/// Why something is not copied, or not taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// Somebody else made an object of that name, and it says something else.
    Foreign {
        /// The object that is in the way.
        object: Object,
    },
    /// A class refers to what is not there.
    Incomplete {
        /// The class.
        class: Object,
        /// The template.
        template: Box<Reference>,
    },
    /// A copy is used, and its source is gone.
    InUse {
        /// The copy.
        class: Object,
        /// Who uses it.
        clusters: Vec<String>,
    },
}

impl Blocked {
    /// In one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Foreign { .. } => "NotACopy",
            Self::Incomplete { .. } => "SourceIncomplete",
            Self::InUse { .. } => "CopyInUse",
        }
    }

    /// What somebody can do about it.
    pub fn way_out(&self) -> String {
        match self {
            Self::Foreign { object } => format!("delete or rename {object} to have the copy"),
            Self::Incomplete { template, .. } => format!("create the {} {}", template.kind, template.name),
            Self::InUse { clusters, .. } => {
                format!("bring the class back, or delete or rebase {}", clusters.join(", "))
            }
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { object } => {
                write!(f, "{object} was made by somebody else and differs from the one that would be copied")
            }
            Self::Incomplete { class, template } => {
                write!(
                    f,
                    "{class} is not copied: it refers to the {} {}, which is not there",
                    template.kind, template.name
                )
            }
            Self::InUse { class, clusters } => {
                write!(f, "{class} is a copy whose source is gone; it stays, because {} use it", clusters.join(", "))
            }
        }
    }
}

/// What is written next, in order, and what is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Propagation {
    /// The writes.
    pub steps: Vec<Step>,
    /// Why there are not more.
    pub blocked: Vec<Blocked>,
}

/// What keeps the classes of a namespace equal to their sources.
pub fn propagate(observed: &Observed) -> Propagation {
    let mut propagation = Propagation::default();
    let mut kept = BTreeSet::new();
    let is_class = |object: &&Value| object["kind"] == CLASS;
    for class in observed.sources.iter().filter(is_class) {
        let reference = Reference::of(class);
        if !observed.target.needs(&reference.name) || is_going(class) {
            continue;
        }
        kept.insert(reference.key());
        kept.extend(references(class).iter().map(Reference::key));
        match observed.copy(class) {
            Ok(steps) => propagation.steps.extend(steps),
            Err(blocked) => propagation.blocked.push(blocked),
        }
    }
    observed.take_away(&kept, &mut propagation);
    propagation
}

impl Observed {
    fn source_of(&self, reference: &Reference) -> Option<&Value> {
        self.sources.iter().find(|object| Reference::of(object).key() == reference.key())
    }

    fn found(&self, reference: &Reference) -> Option<&Value> {
        self.here.iter().find(|object| Reference::of(object).key() == reference.key())
    }

    /// The writes that make a class and its templates equal to their sources.
    fn copy(&self, class: &Value) -> Result<Vec<Step>, Blocked> {
        // With somebody else's class there is nothing that would use our templates.
        let class_step = self.mirror(class)?;
        let mut steps = Vec::new();
        for template in references(class) {
            let class = || named(&Reference::of(class), &self.source);
            let incomplete = || Blocked::Incomplete { class: class(), template: Box::new(template.clone()) };
            steps.extend(self.mirror(self.source_of(&template).ok_or_else(incomplete)?)?);
        }
        steps.extend(class_step);
        Ok(steps)
    }

    /// The write that makes one copy equal to its source.
    fn mirror(&self, source: &Value) -> Result<Option<Step>, Blocked> {
        let wanted = mirror::copy(source, &self.source, &self.target.namespace);
        let reference = Reference::of(source);
        let object = named(&reference, &self.target.namespace);
        let Some(live) = self.found(&reference) else {
            let why = format!("{object} is copied from {}", self.source);
            return Ok(Some(step(Write::Create { object: wanted }, why)));
        };
        let change = mirror::change(live, &wanted);
        match (is_copy(live, &self.source), change) {
            (_, None) => Ok(None),
            (false, Some(change)) if change.get("spec").is_none() => Ok(None),
            (false, Some(_)) => Err(Blocked::Foreign { object }),
            // One that goes is made again when it is gone.
            (true, Some(_)) if is_going(live) => Ok(None),
            (true, Some(patch)) => {
                let why = format!("{object} is made equal to the one in {}", self.source);
                let expect = revision(&live["metadata"]);
                Ok(expect.map(|expect| step(Write::Patch { object, patch, expect }, why)))
            }
        }
    }

    /// Deletes the copies that are not kept: of each class its templates first, so that the class tells of them until the end.
    fn take_away(&self, kept: &BTreeSet<(String, String)>, propagation: &mut Propagation) {
        let ours = || self.here.iter().filter(|object| is_copy(object, &self.source));
        let mut kept = kept.clone();
        for class in ours().filter(|object| object["kind"] == CLASS) {
            let reference = Reference::of(class);
            let used = self.target.named.get(&reference.name).filter(|_| !kept.contains(&reference.key()));
            if let Some(clusters) = used {
                kept.insert(reference.key());
                let class_object = named(&reference, &self.target.namespace);
                propagation.blocked.push(Blocked::InUse { class: class_object, clusters: clusters.clone() });
            }
            // What the class refers to now goes only when it does not any more.
            if kept.contains(&reference.key()) {
                kept.extend(references(class).iter().map(Reference::key));
            }
        }
        let left = ours().filter(|object| !kept.contains(&Reference::of(object).key()) && !is_going(object));
        let (classes, templates): (Vec<&Value>, Vec<&Value>) = left.partition(|object| object["kind"] == CLASS);
        propagation.steps.extend(templates.into_iter().chain(classes).filter_map(|live| {
            let object = named(&Reference::of(live), &self.target.namespace);
            let why = format!("{object} is a copy that nobody needs");
            Some(step(Write::Delete { object, expect: revision(&live["metadata"])? }, why))
        }));
    }
}

fn named(reference: &Reference, namespace: &str) -> Object {
    let Reference { api_version, kind, name } = reference.clone();
    Object { api_version, kind, namespace: Some(namespace.to_owned()), name }
}

fn step(write: Write, why: String) -> Step {
    Step { place: Place::Management, write, alone: None, why }
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether an object is a copy of one in this namespace.
fn is_copy(object: &Value, source: &str) -> bool {
    object["metadata"]["labels"][label::COPIED_FROM.name] == source
}
