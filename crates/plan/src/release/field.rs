//! A field of an object, by its path.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::error::quoted;

/// The path of a field: `spec.template.spec.version`, and `spec.labels[a.b/c]` where a part has more in it than letters, digits,
/// `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<String>);

/// A text that is no path of a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}; accepted are names with dots between them, and [name] where there is a dot in a name")]
pub struct FieldPathError {
    why: String,
}

impl FieldPath {
    /// The path of these parts. It has at least one, and none is empty.
    pub(super) fn new(parts: Vec<String>) -> Self {
        Self(parts)
    }

    /// The path of these parts, which are written down in this program.
    pub(crate) fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|part| (*part).to_owned()).collect())
    }

    /// Whether it can be a part of a path: the key of a label has at most 253 and 63 characters, with a slash between them.
    pub(super) fn is_part(text: &str) -> bool {
        const PART_MAX: usize = 317;
        let is_odd = |character: char| character.is_control() || "[]".contains(character);
        !text.is_empty() && text.len() <= PART_MAX && !text.contains(is_odd)
    }

    /// Its parts.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether the other is this field, or one within it.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The value there, unless there is none. `null` is none.
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let found = self.0.iter().try_fold(object, |place, part| place.get(part))?;
        (!found.is_null()).then_some(found)
    }

    /// Puts a value there. What is on the way and is no mapping becomes one.
    pub fn put(&self, object: &mut Value, value: Value) {
        let mut place = object;
        for part in &self.0 {
            if !place.is_object() {
                *place = Value::Object(serde_json::Map::new());
            }
            place = &mut place[part.as_str()];
        }
        *place = value;
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.0.iter().enumerate() {
            match (is_plain(part), position) {
                (true, 0) => f.write_str(part)?,
                (true, _) => write!(f, ".{part}")?,
                (false, _) => write!(f, "[{part}]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for FieldPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        let error = |why: &str| Err(FieldPathError { why: why.to_owned() });
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(bracketed) = rest.strip_prefix('[') {
                let Some((part, after)) = bracketed.split_once(']') else { return error("a \"[\" is not closed") };
                if !Self::is_part(part) {
                    return error("there is no name between \"[\" and \"]\"");
                }
                parts.push(part.to_owned());
                rest = after;
                continue;
            }
            if !parts.is_empty() {
                let Some(after) = rest.strip_prefix('.') else { return error("a \".\" is missing after \"]\"") };
                rest = after;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if part.is_empty() {
                return error("a name is missing");
            }
            if !is_plain(part) || !Self::is_part(part) {
                return error(&format!("{} is no name", quoted(part)));
            }
            parts.push(part.to_owned());
            rest = after;
        }
        if parts.is_empty() { error("it is empty") } else { Ok(Self(parts)) }
    }
}

fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for text in ["spec", "spec.version", "spec.labels[a.b/c]", "[a.b].c[d.e][f.g]", "spec.node_x.y-z"] {
            assert_eq!(text.parse::<FieldPath>().unwrap().to_string(), text);
        }
        let parts: Vec<String> = "spec[a.b/c].d".parse::<FieldPath>().unwrap().parts().map(str::to_owned).collect();
        assert_eq!(parts, ["spec", "a.b/c", "d"]);
    }

    #[test]
    fn what_is_no_path_is_refused_with_the_reason() {
        let check = |text: &str, why: &str| {
            let error = text.parse::<FieldPath>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        };
        check("", "it is empty");
        check(".", "a name is missing");
        check("spec..version", "a name is missing");
        check("spec.", "a name is missing");
        check("spec[a", "a \"[\" is not closed");
        check("spec[]", "there is no name between");
        check("spec[a]b", "a \".\" is missing after \"]\"");
        check("spec.a/b", "\"a/b\" is no name");
        check("spec.*", "\"*\" is no name");
    }

    #[test]
    fn a_field_is_put_where_it_is_found_again() {
        let path: FieldPath = "spec.labels[a.b/c]".parse().unwrap();
        let mut object = json!({"spec": {"labels": null, "replicas": 3}});
        assert_eq!(path.get(&object), None);
        path.put(&mut object, json!("x"));
        assert_eq!(object, json!({"spec": {"labels": {"a.b/c": "x"}, "replicas": 3}}));
        assert_eq!(path.get(&object), Some(&json!("x")));
        let within: FieldPath = "spec.labels".parse().unwrap();
        assert!(within.contains(&path) && !path.contains(&within));
    }
}
