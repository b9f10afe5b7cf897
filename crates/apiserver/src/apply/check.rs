//! Whether a configuration fits its schema well enough to be merged: worded as Kubernetes words it, Go's way of printing
//! values included.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::element::{Element, shown_number};
use super::shape::{Kind, Place};
use crate::field::quote;
use crate::schema::{Schema, Shape};

/// What does not fit, and where.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Misfits(Vec<(String, String)>);

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(path, message): &(String, String)| match path.as_str() {
            "" => message.clone(),
            path => format!("{path}: {message}"),
        };
        match &self.0[..] {
            [one] => f.write_str(&line(one)),
            all => {
                f.write_str("errors:")?;
                all.iter().try_for_each(|misfit| write!(f, "\n  {}", line(misfit)))
            }
        }
    }
}

/// Refuses a configuration that has unknown fields, values of the wrong kind, or list elements that cannot be told apart.
pub(super) fn check(place: Place<'_>, value: &Value) -> Result<(), Misfits> {
    let mut misfits = Vec::new();
    node(place, value, &mut misfits);
    // They were noted from the inside out, with the innermost step first.
    if misfits.is_empty() {
        return Ok(());
    }
    let spelled = |misfit: Misfit| {
        let path: String = misfit.steps.iter().rev().map(ToString::to_string).collect();
        (path, misfit.message)
    };
    Err(Misfits(misfits.into_iter().map(spelled).collect()))
}

/// One misfit on its way up from the value to the root.
struct Misfit {
    /// The innermost step first.
    steps: Vec<Element>,
    message: String,
}

impl Misfit {
    fn new(message: String) -> Self {
        Self { steps: Vec::new(), message }
    }
}

fn node(place: Place<'_>, value: &Value, out: &mut Vec<Misfit>) {
    match (place.kind(Some(value)), value) {
        (_, Value::Null) | (Kind::Unknown, _) => {}
        (Kind::Scalar, value) => out.extend(place.schema().and_then(|schema| scalar(schema, value)).map(Misfit::new)),
        (Kind::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let inside = place.inside(name);
                let first = out.len();
                if inside.declared {
                    node(inside.place, value, out);
                } else {
                    out.push(Misfit::new("field not declared in schema".into()));
                }
                add_step(out, first, || Element::Field(name.clone()));
                if !inside.declared {
                    return;
                }
            }
        }
        (Kind::List, Value::Array(list)) => elements(place, list, out),
        (Kind::Map, other) => out.push(Misfit::new(format!("expected map, got &{{{}}}", Plain(other)))),
        (Kind::List, other) => out.push(Misfit::new(format!("expected list, got &{{{}}}", Plain(other)))),
    }
}

fn elements(place: Place<'_>, list: &[Value], out: &mut Vec<Misfit>) {
    let mut seen = BTreeSet::new();
    for (i, value) in list.iter().enumerate() {
        let first = out.len();
        if place.is_atomic_list() {
            node(place.items(), value, out);
            add_step(out, first, || Element::Index(i64::try_from(i).unwrap_or(i64::MAX)));
            continue;
        }
        let step = match place.step(value) {
            Ok(step) => step,
            Err(why) => {
                out.push(Misfit::new(format!("element {i}: {why}")));
                return;
            }
        };
        let element = || Element::parse(&step).ok().flatten().unwrap_or_else(|| Element::Field(step.clone()));
        let duplicate = seen.contains(&step).then(|| Misfit::new(format!("duplicate entries for key {}", element())));
        node(place.items(), value, out);
        add_step(out, first, element);
        // The duplicate is said of the list, before what is wrong inside the element.
        if let Some(duplicate) = duplicate {
            out.insert(first, duplicate);
        }
        seen.insert(step);
    }
}

fn add_step(misfits: &mut [Misfit], first: usize, step: impl Fn() -> Element) {
    for misfit in misfits.iter_mut().skip(first) {
        misfit.steps.push(step());
    }
}

fn scalar(schema: &Schema, value: &Value) -> Option<String> {
    let format = schema.rules.as_ref().and_then(|rules| rules.format.as_deref()).unwrap_or_default();
    match &schema.shape {
        // Text of a certain format may be written otherwise: a number for an int-or-string, for one.
        Shape::String if format.is_empty() || format == "byte" => (!value.is_string())
            .then(|| format!("expected string, got &value.valueUnstructured{{Value:{}}}", Syntax(value))),
        Shape::Integer | Shape::Number => {
            (!value.is_number()).then(|| format!("expected numeric (int or float), got {}", type_name(value)))
        }
        Shape::Boolean => (!value.is_boolean()).then(|| format!("expected boolean, got &{{{}}}", Plain(value))),
        Shape::String | Shape::Any | Shape::IntOrString | Shape::Object(_) | Shape::Array(_) => {
            let composite = value.is_array() || value.is_object();
            composite.then(|| format!("expected any scalar, got &{{{}}}", Plain(value)))
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it with `%v`.
struct Plain<'a>(&'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(n) => f.write_str(&shown_number(n)),
            Value::String(s) => f.write_str(s),
            Value::Array(list) => {
                f.write_str("[")?;
                for (i, value) in list.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { " " }, Plain(value))?;
                }
                f.write_str("]")
            }
            Value::Object(fields) => {
                f.write_str("map[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}:{}", if i == 0 { "" } else { " " }, Plain(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// A value as Go prints it with `%#v`.
struct Syntax<'a>(&'a Value);

impl fmt::Display for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("interface {}(nil)"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(n) => f.write_str(&shown_number(n)),
            Value::String(s) => f.write_str(&quote(s)),
            Value::Array(list) => {
                f.write_str("[]interface {}{")?;
                for (i, value) in list.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, Syntax(value))?;
                }
                f.write_str("}")
            }
            Value::Object(fields) => {
                f.write_str("map[string]interface {}{")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{}:{}", if i == 0 { "" } else { ", " }, quote(name), Syntax(value))?;
                }
                f.write_str("}")
            }
        }
    }
}
