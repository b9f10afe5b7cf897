//! A set of fields, kept in the very form in which `managedFields` holds it.
//!
//! FieldsV1 is a tree of JSON objects: each key is a step ([`super::element`]), and a node is itself in the set when it is
//! empty or has the member `"."`. Since every server writes steps in one spelling, the algebra needs no other
//! representation: reading a set from an object is a move, and taking a few fields from a large set looks only at those.
//!
//! Invariant: every node is an object, and none is there without a reason (a node that holds nothing is a member).

use serde_json::{Map, Value};

use super::element::{self, Element};

/// The mark of a node that is in the set and has others below it.
const SELF: &str = ".";

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FieldSet(Map<String, Value>);

impl FieldSet {
    /// Takes a set that this server has written.
    pub(super) fn stored(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Takes a set that anybody may have written: checks every step, and spells it our way.
    pub(super) fn written(fields: &Value) -> Result<Self, String> {
        let mut set = Self::default();
        match fields {
            Value::Null => {}
            Value::Object(nodes) => {
                read(nodes, &mut set.0)?;
            }
            other => return Err(format!("expected an object of fields, got {other}")),
        }
        Ok(set)
    }

    /// The set of these paths of field names.
    pub(super) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let one = path.iter().rev().fold(Self::default(), |below, name| {
                let mut parent = Self::default();
                parent.put(element::field(name), below.is_empty(), below);
                parent
            });
            set.union(one);
        }
        set
    }

    /// The FieldsV1 form.
    pub(super) fn into_fields(self) -> Map<String, Value> {
        self.0
    }

    /// The tree itself, to walk along a value.
    pub(super) fn nodes(&self) -> &Map<String, Value> {
        &self.0
    }

    /// See [`Self::nodes`].
    pub(super) fn nodes_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// Whether nothing is in the set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a step with what is below it; nothing happens when the step is not a member and nothing is below.
    pub(super) fn put(&mut self, step: String, member: bool, below: Self) {
        put(&mut self.0, step, member, below);
    }

    /// Everything that is in either.
    pub(super) fn union(&mut self, other: Self) {
        union(&mut self.0, other.0);
    }

    /// Takes away what is in `other`; what is below those paths stays.
    pub(super) fn subtract(&mut self, other: &Self) {
        subtract(&mut self.0, &other.0);
    }

    /// Takes away what is in `other`, and everything below.
    pub(super) fn subtract_below(&mut self, other: &Self) {
        subtract_below(&mut self.0, &other.0);
    }

    /// What is in both.
    #[must_use]
    pub(super) fn intersection(&self, other: &Self) -> Self {
        Self(intersection(&self.0, &other.0))
    }

    /// All paths: at each level the members come first, then what is below each step.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut out = Vec::new();
        list(&self.0, &mut Vec::new(), &mut out);
        out
    }
}

/// Whether a node is itself in the set.
pub(super) fn is_member(node: &Value) -> bool {
    node.as_object().is_none_or(|below| below.is_empty() || below.contains_key(SELF))
}

/// Whether there is anything below a node.
pub(super) fn has_below(node: &Value) -> bool {
    node.as_object().is_some_and(|below| match below.len() {
        0 => false,
        1 => !below.contains_key(SELF),
        _ => true,
    })
}

/// The steps of a node, without the mark of the node itself.
pub(super) fn steps(nodes: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    nodes.iter().filter(|(step, _)| *step != SELF)
}

/// Makes a node a member.
pub(super) fn mark(node: &mut Value) {
    if let Value::Object(below) = node
        && !below.is_empty()
    {
        below.entry(SELF).or_insert_with(|| Value::Object(Map::new()));
    }
}

fn put(nodes: &mut Map<String, Value>, step: String, member: bool, below: FieldSet) {
    if !member && below.is_empty() {
        return;
    }
    let mut node = Value::Object(below.0);
    if member {
        mark(&mut node);
    }
    nodes.insert(step, node);
}

fn read(nodes: &Map<String, Value>, out: &mut Map<String, Value>) -> Result<(), String> {
    for (step, node) in steps(nodes) {
        let Some(element) = Element::parse(step)? else { continue };
        let mut below = Map::new();
        let member = match node {
            Value::Null => true,
            Value::Object(nodes) => {
                read(nodes, &mut below)?;
                below.is_empty() || nodes.contains_key(SELF)
            }
            other => return Err(format!("expected an object of fields, got {other}")),
        };
        let mut one = Map::new();
        put(&mut one, element.spelled(), member, FieldSet(below));
        union(out, one);
    }
    Ok(())
}

fn union(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (step, node) in from {
        match into.get_mut(&step) {
            None => {
                into.insert(step, node);
            }
            Some(present) => {
                let member = is_member(present) || is_member(&node);
                if let (Value::Object(present), Value::Object(node)) = (&mut *present, node) {
                    union(present, node);
                }
                if member {
                    mark(present);
                }
            }
        }
    }
}

fn subtract(from: &mut Map<String, Value>, what: &Map<String, Value>) {
    for (step, gone) in steps(what) {
        let Some(present) = from.get_mut(step) else { continue };
        let member = is_member(present) && !is_member(gone);
        if let (Value::Object(present), Value::Object(gone)) = (&mut *present, gone) {
            present.remove(SELF);
            subtract(present, gone);
        }
        settle(from, step, member);
    }
}

fn subtract_below(from: &mut Map<String, Value>, what: &Map<String, Value>) {
    for (step, gone) in steps(what) {
        let Some(present) = from.get_mut(step) else { continue };
        if is_member(gone) {
            from.remove(step);
            continue;
        }
        let member = is_member(present);
        if let (Value::Object(present), Value::Object(gone)) = (&mut *present, gone) {
            present.remove(SELF);
            subtract_below(present, gone);
        }
        settle(from, step, member);
    }
}

/// Restores the invariant for a node whose mark was taken off and whose inside may have shrunk.
fn settle(nodes: &mut Map<String, Value>, step: &str, member: bool) {
    let Some(node) = nodes.get_mut(step) else { return };
    if member {
        mark(node);
    } else if !has_below(node) {
        nodes.remove(step);
    }
}

fn intersection(a: &Map<String, Value>, b: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (step, node) in steps(a) {
        let Some(other) = b.get(step) else { continue };
        let below = match (node, other) {
            (Value::Object(a), Value::Object(b)) => intersection(a, b),
            _ => Map::new(),
        };
        put(&mut out, step.clone(), is_member(node) && is_member(other), FieldSet(below));
    }
    out
}

fn list(nodes: &Map<String, Value>, prefix: &mut Vec<Element>, out: &mut Vec<Vec<Element>>) {
    let mut sorted: Vec<(Element, &Value)> =
        steps(nodes).filter_map(|(step, node)| Some((Element::parse(step).ok()??, node))).collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (element, _) in sorted.iter().filter(|(_, node)| is_member(node)) {
        out.push(prefix.iter().chain([element]).cloned().collect());
    }
    for (element, node) in sorted {
        if let Value::Object(below) = node {
            prefix.push(element);
            list(below, prefix, out);
            prefix.pop();
        }
    }
}
