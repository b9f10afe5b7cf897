//! Where in an object a field is.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::list;

/// Where in an object a field is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

/// One step into an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// Into the field of this name.
    Field(String),
    /// Into the element of a list that has these keys: names, and values as JSON.
    Element(Vec<(String, String)>),
}

impl Path {
    /// The path with one more field.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.then(Segment::Field(name.to_owned()))
    }

    /// The path with one more step.
    #[must_use]
    pub fn then(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }

    /// Whether the other path is this one, or leads further into it.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The last two steps.
    pub(super) fn parent_and_last(&self) -> Option<(&Segment, &Segment)> {
        match self.0.as_slice() {
            [.., parent, last] => Some((parent, last)),
            _ => None,
        }
    }

    /// The last step.
    pub fn last(&self) -> Option<&Segment> {
        self.0.last()
    }

    /// The names of the fields on the way, whichever elements of lists are on it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Element(_) => None,
        })
    }

    /// The same as text: `spec.template.spec.containers.image`. Rules about what a field does are about this.
    pub fn fields(&self) -> String {
        self.names().collect::<Vec<_>>().join(".")
    }

    /// What is there.
    pub fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, segment| match segment {
            Segment::Field(name) => value.get(name),
            Segment::Element(keys) => value.as_array()?.iter().find(|element| list::has_keys(element, keys)),
        })
    }

    /// Puts a value there, and makes what is missing on the way.
    pub(super) fn set(&self, object: &mut Value, value: Value) {
        set(object, &self.0, value);
    }

    /// Removes what is there.
    pub(super) fn remove(&self, object: &mut Value) {
        let Some((last, parents)) = self.0.split_last() else { return };
        let parent = parents.iter().try_fold(object, |value, segment| match segment {
            Segment::Field(name) => value.get_mut(name),
            Segment::Element(keys) => value.as_array_mut()?.iter_mut().find(|element| list::has_keys(element, keys)),
        });
        match (last, parent) {
            (Segment::Field(name), Some(Value::Object(fields))) => {
                fields.remove(name);
            }
            (Segment::Element(keys), Some(Value::Array(elements))) => {
                elements.retain(|element| !list::has_keys(element, keys));
            }
            _ => {}
        }
    }
}

fn set(into: &mut Value, path: &[Segment], value: Value) {
    let Some((segment, rest)) = path.split_first() else {
        *into = value;
        return;
    };
    match segment {
        Segment::Field(name) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            if let Some(fields) = into.as_object_mut() {
                set(fields.entry(name.clone()).or_insert(Value::Null), rest, value);
            }
        }
        Segment::Element(keys) => {
            if !into.is_array() {
                *into = Value::Array(Vec::new());
            }
            if let Some(elements) = into.as_array_mut() {
                if let Some(element) = elements.iter_mut().find(|element| list::has_keys(element, keys)) {
                    set(element, rest, value);
                } else {
                    let mut element = Value::Null;
                    set(&mut element, rest, value);
                    elements.push(element);
                }
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                // Dots inside of a name would look like steps.
                Segment::Field(name) if name.contains(['.', '[', ' ']) => write!(f, "[{name}]")?,
                Segment::Field(name) if index == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Element(keys) => {
                    let keys: Vec<String> =
                        keys.iter().map(|(name, value)| format!("{name}={}", value.trim_matches('"'))).collect();
                    write!(f, "[{}]", keys.join(","))?;
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
