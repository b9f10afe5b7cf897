//! One step of a field path, and how it is spelled: `f:spec` in a set of fields, `.spec` in a message.
//!
//! A set of fields holds the first spelling as plain text, so equal steps must be spelled equally: everything that becomes
//! a step is written by this file. [`Element`] itself is only needed where a step is read again: to check a set that a
//! client wrote, and to sort and print conflicts.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use serde_json::{Map, Number, Value};

use crate::field::quote;

/// One step from a value to something inside it.
#[derive(Debug, Clone)]
pub(super) enum Element {
    /// A field of an object, or a key of a map: `f:name`.
    Field(String),
    /// The element of a list whose fields have these values, sorted by name: `k:{"name":"a"}`.
    Key(Vec<(String, Value)>),
    /// The element of a list of scalars: `v:"a"`.
    Item(Value),
    /// The n-th element of a list: `i:0`. Never written by a server, but read.
    Index(i64),
}

impl Element {
    /// Reads `f:name` and the like. `Ok(None)` is a kind of step that a later version may know.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".into());
        };
        if !kind.ends_with(':') {
            return Err(format!("missing colon: {text}"));
        }
        match kind {
            "f:" => Ok(Some(Self::Field(rest.to_owned()))),
            "v:" => serde_json::from_str(rest).map(|v| Some(Self::Item(v))).map_err(|e| e.to_string()),
            "k:" => match serde_json::from_str::<Map<String, Value>>(rest) {
                Ok(fields) => Ok(Some(Self::Key(fields.into_iter().collect()))),
                Err(e) => Err(e.to_string()),
            },
            "i:" => rest.parse().map(|i| Some(Self::Index(i))).map_err(|e| format!("{e}: {rest}")),
            _ => Ok(None),
        }
    }

    /// The spelling in a set of fields.
    pub(super) fn spelled(&self) -> String {
        match self {
            Self::Field(name) => field(name),
            Self::Key(fields) => {
                let mut out = String::from("k:");
                write_key(&mut out, fields.iter().map(|(name, value)| (name.as_str(), value)));
                out
            }
            Self::Item(value) => item(value),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Item(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_char('[')?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", Shown(value))?;
                }
                f.write_char(']')
            }
            Self::Item(value) => write!(f, "[={}]", Shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Item(a), Self::Item(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b).map(|((n, v), (m, w))| n.cmp(m).then_with(|| compare(v, w)));
                pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            (Self::Field(_) | Self::Key(_) | Self::Item(_) | Self::Index(_), _) => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

/// The spelling of a field: `f:name`.
pub(super) fn field(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push_str("f:");
    out.push_str(name);
    out
}

/// The spelling of an element of a list of scalars: `v:"a"`.
pub(super) fn item(value: &Value) -> String {
    let mut out = spelling("v:");
    write_value(&mut out, value);
    out
}

/// The spelling of an element that is told apart by fields, which must be sorted by name.
pub(super) fn key<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let mut out = spelling("k:");
    write_key(&mut out, fields);
    out
}

/// Room for a typical step, so that it is allocated once.
fn spelling(kind: &str) -> String {
    let mut out = String::with_capacity(48);
    out.push_str(kind);
    out
}

fn write_key<'a>(out: &mut String, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    out.push('{');
    for (i, (name, value)) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, name, false);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => write_number(out, n),
        Value::String(s) => write_string(out, s, true),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => write_key(out, fields.iter().map(|(name, value)| (name.as_str(), value))),
    }
}

/// Numbers that are equal are spelled equally, whether they were written `1`, `1.0` or `1e0`.
fn write_number(out: &mut String, number: &Number) {
    if let Some(n) = number.as_i64() {
        // Writing to a String cannot fail.
        write!(out, "{n}").ok();
        return;
    }
    let n = number.as_f64().unwrap_or_default();
    if n != 0.0 && !(1e-6..1e21).contains(&n.abs()) {
        out.push_str(&exponential(n, 1));
    } else if n == 0.0 {
        out.push('0');
    } else {
        write!(out, "{n}").ok();
    }
}

/// `1e+21`, `1.5e-7`: the exponent has a sign, and at least so many digits.
fn exponential(n: f64, digits: usize) -> String {
    let text = format!("{n:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{mantissa}e{sign}{exponent:0>digits$}")
}

/// A JSON string; `html` also escapes what could end a script in a page, as Go's encoder does for values.
fn write_string(out: &mut String, text: &str, html: bool) {
    out.push('"');
    // Most text has nothing to escape.
    if text.bytes().all(|b| b >= b' ' && b.is_ascii() && !matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&')) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' if html => push_escaped(out, c),
            '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => push_escaped(out, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, c: char) {
    write!(out, "\\u{:04x}", u32::from(c)).ok();
}

/// A value as it reads in a path.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(n) => f.write_str(&shown_number(n)),
            Value::String(s) => f.write_str(&quote(s)),
            Value::Array(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { "," }, Shown(item))?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| write!(f, "{name}={}", Shown(value))),
        }
    }
}

/// A number as it reads in messages.
pub(super) fn shown_number(number: &Number) -> String {
    if let Some(n) = number.as_i64() {
        return n.to_string();
    }
    let n = number.as_f64().unwrap_or_default();
    if n == 0.0 {
        "0".to_owned()
    } else if (1e-4..1e21).contains(&n.abs()) {
        n.to_string()
    } else {
        exponential(n, 2)
    }
}

/// Whether two values are the same. `1` and `1.0` are.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && equal(a, b))
        }
        _ => a == b,
    }
}

/// An order over all values: numbers, strings, booleans, lists, objects, null.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|((n, v), (m, w))| n.cmp(m).then_with(|| compare(v, w)));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}
