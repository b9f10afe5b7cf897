//! Label selectors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;
use crate::field::FieldError;
use crate::meta::format;

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
        let wrong = format::is_qualified_name(&key);
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
            let wrong = format::is_label_value(value);
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

#[cfg(test)]
mod tests;
