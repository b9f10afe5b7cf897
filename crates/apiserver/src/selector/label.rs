//! Label selectors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;
use crate::field::FieldError;

mod parse;

/// The requirements that an object's labels must all meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(Option<Vec<Requirement>>);

/// A selector that was not given selects everything.
impl Default for LabelSelector {
    fn default() -> Self {
        Self::everything()
    }
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// How it relates to the values.
    pub operator: Operator,
    /// The values.
    pub values: Vec<String>,
}

/// How a label relates to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`: another value, or no such label.
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`: another value, or no such label.
    NotEquals,
    /// `key>1`: a number that is greater.
    GreaterThan,
    /// `key<1`: a number that is less.
    LessThan,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
}

/// Something that has labels.
pub trait Labels {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// `metadata.labels`; anything but an object has no labels.
impl Labels for Value {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl<T: Labels + ?Sized> Labels for &T {
    fn label(&self, key: &str) -> Option<&str> {
        (**self).label(key)
    }
}

/// Absent labels are no labels.
impl<T: Labels> Labels for Option<T> {
    fn label(&self, key: &str) -> Option<&str> {
        self.as_ref().and_then(|labels| labels.label(key))
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| k.as_ref() == key).map(|(_, v)| v.as_ref())
    }
}

impl LabelSelector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self(Some(Vec::new()))
    }

    /// Selects no object: what an absent `LabelSelector` object means.
    pub fn nothing() -> Self {
        Self(None)
    }

    /// Reads the form of the query string: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.is_empty() {
            return Ok(Self::everything());
        }
        parse::requirements(text).map(Self::from_requirements).map_err(SelectorError)
    }

    /// Reads a `LabelSelector` object; `None` or null selects nothing, an empty object everything.
    pub fn from_object(object: Option<&Value>) -> Result<Self, SelectorError> {
        let Some(object) = object.filter(|o| !o.is_null()) else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let values = vec![text_of(value)?.to_owned()];
            requirements.push(Requirement::new(key.clone(), Operator::Equals, values).map_err(SelectorError)?);
        }
        for expression in object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            requirements.push(Requirement::from_object(expression)?);
        }
        Ok(Self::from_requirements(requirements))
    }

    fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self(Some(requirements))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.0.as_ref().is_some_and(|all| all.iter().all(|one| one.matches(labels)))
    }

    /// Whether no object can be left out.
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements, sorted by key. Empty for a selector of everything and for one of nothing.
    pub fn requirements(&self) -> &[Requirement] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The only value that the label may have, when there is only one.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let first = self.requirements().iter().find(|r| r.key == key)?;
        match (first.operator, first.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [only]) => Some(only),
            _ => None,
        }
    }
}

/// The form of the query string. A selector of nothing has none, and reads as an empty text.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

fn text_of(value: &Value) -> Result<&str, SelectorError> {
    value.as_str().ok_or_else(|| SelectorError(format!("{value} is not a valid label value")))
}

impl Requirement {
    /// A requirement that makes sense, or all that is wrong with it.
    pub fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut problems = Vec::new();
        let wrong = key_problems(&key);
        if !wrong.is_empty() {
            problems.push(FieldError::invalid("key", key.as_str(), wrong.join("; ")).to_string());
        }
        if let Some(problem) = operator.count_problem(values.len()) {
            // An empty list of Go is written as null.
            let shown = if values.is_empty() { Value::Null } else { Value::from(values.clone()) };
            problems.push(FieldError::invalid("values", shown, problem).to_string());
        }
        for (i, value) in values.iter().enumerate() {
            if matches!(operator, Operator::GreaterThan | Operator::LessThan) && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                problems.push(FieldError::invalid(format!("values[{i}]"), value.as_str(), why).to_string());
            }
        }
        for (i, value) in values.iter().enumerate() {
            let wrong = value_problems(value);
            if !wrong.is_empty() {
                let path = format!("values[{i}][{key}]");
                problems.push(FieldError::invalid(path, value.as_str(), wrong.join("; ")).to_string());
            }
        }
        match problems.len() {
            0 => Ok(Self { key, operator, values }),
            1 => Err(problems.remove(0)),
            _ => Err(format!("[{}]", problems.join(", "))),
        }
    }

    fn from_object(expression: &Value) -> Result<Self, SelectorError> {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let operator = expression.get("operator").and_then(Value::as_str).unwrap_or_default();
        let operator = match operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(SelectorError(format!("{other:?} is not a valid label selector operator"))),
        };
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.map(|v| text_of(v).map(str::to_owned)).collect::<Result<_, _>>()?;
        Self::new(key.to_owned(), operator, values).map_err(SelectorError)
    }

    /// Whether the labels meet it.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let value = labels.label(&self.key);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(|v| self.has(v)),
            Operator::NotIn | Operator::NotEquals => value.is_none_or(|v| !self.has(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.bound(value).is_some_and(|(value, bound)| value > bound),
            Operator::LessThan => self.bound(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values.iter().any(|v| v == value)
    }

    fn bound(&self, value: Option<&str>) -> Option<(i64, i64)> {
        match self.values.as_slice() {
            [bound] => Some((value?.parse().ok()?, bound.parse().ok()?)),
            _ => None,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Cow<'_, [String]> = Cow::Borrowed(&self.values);
        if !values.is_sorted() {
            values.to_mut().sort();
        }
        let values = values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl Operator {
    fn count_problem(self, count: usize) -> Option<&'static str> {
        let (right, problem) = match self {
            Self::In | Self::NotIn => (count > 0, "for 'in', 'notin' operators, values set can't be empty"),
            Self::Equals | Self::DoubleEquals | Self::NotEquals => {
                (count == 1, "exact-match compatibility requires one single value")
            }
            Self::Exists | Self::DoesNotExist => (count == 0, "values set must be empty for exists and does not exist"),
            Self::GreaterThan | Self::LessThan => {
                (count == 1, "for 'Gt', 'Lt' operators, exactly one value is required")
            }
        };
        (!right).then_some(problem)
    }
}

const NAME_FORMAT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN_FORMAT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
     or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_FORMAT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The longest name part of a label key, and the longest label value.
const NAME_BYTES_MAX: usize = 63;
/// The longest prefix of a label key.
const PREFIX_BYTES_MAX: usize = 253;

/// What is wrong with a label's key: `[prefix/]name`.
pub fn key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > PREFIX_BYTES_MAX {
                    problems.push(format!("prefix part must be no more than {PREFIX_BYTES_MAX} bytes"));
                }
                if !is_subdomain(prefix) {
                    problems.push(format!("prefix part {SUBDOMAIN_FORMAT}"));
                }
            }
            *name
        }
        _ => {
            let prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME_FORMAT} {prefix}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_BYTES_MAX {
        problems.push(format!("name part must be no more than {NAME_BYTES_MAX} bytes"));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME_FORMAT}"));
    }
    problems
}

/// What is wrong with a label's value.
pub fn value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > NAME_BYTES_MAX {
        problems.push(format!("must be no more than {NAME_BYTES_MAX} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE_FORMAT.to_owned());
    }
    problems
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|b| plain(*b))
            && bytes.last().is_some_and(|b| plain(*b))
            && bytes.iter().all(|b| plain(*b) || *b == b'-')
    })
}

#[cfg(test)]
mod tests;
