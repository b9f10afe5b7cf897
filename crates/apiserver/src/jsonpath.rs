//! The paths of printer columns, scale subresources and selectable fields: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! The part of kubectl's paths that has a meaning in a `CustomResourceDefinition`. What is missing in an object is no
//! error: it is not found.

use std::cmp::Ordering;

use serde_json::Value;

/// A path into an object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Fields(Vec<String>),
    /// From the end when negative.
    Index(i64),
    /// `[start:end:step]`.
    Slice(Option<i64>, Option<i64>, usize),
    Wildcard,
    /// `..`: here and everywhere below.
    Descend,
    Filter(Operand, Option<(Comparison, Operand)>),
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a path is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// A bracket that is not closed.
    #[error("unterminated array")]
    UnclosedBracket,
    /// Between brackets is nothing that selects.
    #[error("invalid array index {0}")]
    Index(String),
    /// A filter that cannot be read.
    #[error("invalid filter {0}")]
    Filter(String),
    /// Something else than a field or a bracket.
    #[error("unrecognized character in action: {0:?}")]
    Unexpected(char),
    /// Filters inside of filters, too many of them.
    #[error("filters nest too deep")]
    TooDeep,
}

/// No path of a sane column has a filter in a filter; the limit keeps reading it from overflowing the stack.
const FILTER_DEPTH: usize = 8;

impl JsonPath {
    /// Reads a path. Braces around it (`{.spec.x}`) and a leading `$` are allowed.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        parse_steps(inner.strip_prefix('$').unwrap_or(inner), FILTER_DEPTH)
    }

    /// The values that the path leads to, in the order of the object.
    pub fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.select(value, &mut next);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn select<'v>(&self, value: &'v Value, found: &mut Vec<&'v Value>) {
        match (self, value) {
            (Step::Fields(names), Value::Object(fields)) => {
                found.extend(names.iter().filter_map(|name| fields.get(name)));
            }
            (Step::Wildcard, Value::Object(fields)) => found.extend(fields.values()),
            (Step::Wildcard, Value::Array(elements)) => found.extend(elements),
            (Step::Index(index), Value::Array(elements)) => {
                found.extend(position(*index, elements.len()).and_then(|at| elements.get(at)));
            }
            (Step::Slice(start, end, step), Value::Array(elements)) => {
                let bound =
                    |bound: i64| position(bound, elements.len()).unwrap_or(if bound < 0 { 0 } else { elements.len() });
                let from = start.map_or(0, bound);
                let to = end.map_or(elements.len(), bound);
                found.extend(elements.get(from..to).unwrap_or_default().iter().step_by((*step).max(1)));
            }
            (Step::Filter(left, rest), Value::Array(elements)) => {
                found.extend(elements.iter().filter(|element| passes(element, left, rest.as_ref())));
            }
            (Step::Descend, value) => descend(value, found),
            _ => {}
        }
    }
}

/// An index into a list of a length; negative ones count from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { index.checked_add(length)? } else { index };
    (0..=length).contains(&at).then(|| usize::try_from(at).ok()).flatten()
}

fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    found.push(value);
    match value {
        Value::Object(fields) => fields.values().for_each(|inner| descend(inner, found)),
        Value::Array(elements) => elements.iter().for_each(|inner| descend(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn passes(element: &Value, left: &Operand, rest: Option<&(Comparison, Operand)>) -> bool {
    let Some(left) = left.value(element) else { return false };
    let Some((comparison, right)) = rest else { return true };
    let Some(right) = right.value(element) else { return false };
    let order = compare(left, right);
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

impl Operand {
    fn value<'v>(&'v self, element: &'v Value) -> Option<&'v Value> {
        match self {
            Operand::Literal(value) => Some(value),
            Operand::Path(path) => path.find(element).first().copied(),
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (left, right) => (left == right).then_some(Ordering::Equal),
    }
}

fn parse_steps(text: &str, depth: usize) -> Result<JsonPath, JsonPathError> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let close = closing(rest).ok_or(JsonPathError::UnclosedBracket)?;
            let inner = rest.get(1..close).unwrap_or_default();
            match quoted_key(inner) {
                Some(key) => steps.extend(parse_steps(&format!(".{key}"), depth)?.steps),
                None => steps.push(parse_bracket(inner, depth)?),
            }
            rest = rest.get(close + 1..).unwrap_or_default();
            continue;
        }
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else if !steps.is_empty() {
            return Err(JsonPathError::Unexpected(first));
        }
        let (name, after) = field_name(rest);
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::Wildcard),
            _ => steps.push(Step::Fields(vec![name])),
        }
        // Without progress there is something that no step can start with.
        if let Some(stuck) = after.chars().next().filter(|c| *c != '.' && *c != '[') {
            return Err(JsonPathError::Unexpected(stuck));
        }
        rest = after;
    }
    Ok(JsonPath { steps })
}

/// A name up to the next dot or bracket; a backslash takes away what the next character means.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' | ']' | ' ' | '{' | '}' | '(' | ')' | '|' => return (name, text.get(at..).unwrap_or_default()),
            c => name.push(c),
        }
    }
    (name, "")
}

/// Where the bracket that opens the text is closed, quotes and inner brackets minded.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            (c, Some(open)) => quote = Some(open).filter(|open| c != *open),
            ('\'' | '"', None) => quote = Some(c),
            ('[', None) => depth += 1,
            (']', None) => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// What is between single quotes, if nothing else is in the bracket. To kubectl it is a path of its own: the dots of
/// `['cluster\.x-k8s\.io/cluster-name']` must be escaped, or they lead to fields of fields.
fn quoted_key(inner: &str) -> Option<&str> {
    let key = inner.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

fn parse_bracket(inner: &str, depth: usize) -> Result<Step, JsonPathError> {
    let text = inner.trim();
    if text == "*" {
        return Ok(Step::Wildcard);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter, depth.checked_sub(1).ok_or(JsonPathError::TooDeep)?);
    }
    if text.starts_with(['\'', '"']) {
        let names = text.split(',').map(|name| Some(unquote(name)?.replace("\\.", ".")));
        let names: Option<Vec<String>> = names.collect();
        return names.map(Step::Fields).ok_or_else(|| JsonPathError::Index(text.to_owned()));
    }
    let wrong = || JsonPathError::Index(text.to_owned());
    let number = |part: &str| part.trim().parse::<i64>().map_err(|_| wrong());
    if !text.contains(':') {
        return number(text).map(Step::Index);
    }
    let bound = |part: Option<&str>| match part.map(str::trim) {
        None | Some("") => Ok(None),
        Some(part) => number(part).map(Some),
    };
    let mut parts = text.split(':');
    let (start, end, step) = (bound(parts.next())?, bound(parts.next())?, bound(parts.next())?);
    let step = usize::try_from(step.unwrap_or(1)).map_err(|_| wrong())?;
    if parts.next().is_some() { Err(wrong()) } else { Ok(Step::Slice(start, end, step)) }
}

fn unquote(text: &str) -> Option<String> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(inner.replace(&format!("\\{quote}"), &quote.to_string()))
}

fn parse_filter(text: &str, depth: usize) -> Result<Step, JsonPathError> {
    const COMPARISONS: [(&str, Comparison); 6] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let found = COMPARISONS.iter().filter_map(|(sign, kind)| Some((outside_quotes(text, sign)?, *sign, *kind)));
    // The first sign counts, and of two at the same place the longer, which is listed first.
    let first = found.min_by_key(|(at, _, _)| *at);
    let Some((at, sign, kind)) = first else { return Ok(Step::Filter(parse_operand(text, depth)?, None)) };
    let (left, right) = (text.get(..at).unwrap_or_default(), text.get(at + sign.len()..).unwrap_or_default());
    Ok(Step::Filter(parse_operand(left, depth)?, Some((kind, parse_operand(right, depth)?))))
}

fn outside_quotes(text: &str, sign: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) => quote = Some(open).filter(|open| c != *open),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if text.get(at..).is_some_and(|rest| rest.starts_with(sign)) => return Some(at),
            None => {}
        }
    }
    None
}

fn parse_operand(text: &str, depth: usize) -> Result<Operand, JsonPathError> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix('@') {
        return parse_steps(path, depth).map(Operand::Path);
    }
    if let Some(string) = unquote(text) {
        return Ok(Operand::Literal(Value::String(string)));
    }
    match serde_json::from_str(text) {
        Ok(literal @ (Value::Bool(_) | Value::Number(_))) => Ok(Operand::Literal(literal)),
        _ => Err(JsonPathError::Filter(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{JsonPath, JsonPathError};

    fn object() -> Value {
        json!({
            "metadata": {"labels": {"a/b": "slash", "c.d": "dot"}},
            "spec": {"replicas": 3, "list": [1, 2, 3, 4]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Synced", "status": "False", "n": 2, "reason": "x"},
            ]},
        })
    }

    #[track_caller]
    fn check(path: &str, expected: &[Value]) {
        let object = object();
        let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_lead_to_values() {
        check(".spec.replicas", &[json!(3)]);
        check("{.spec.replicas}", &[json!(3)]);
        check("$.spec['replicas']", &[json!(3)]);
        check(".spec.missing.deeper", &[]);
        check(".metadata.labels['a/b']", &[json!("slash")]);
        check(".metadata.labels[\"c.d\"]", &[json!("dot")]);
        check(".metadata.labels['c\\.d']", &[json!("dot")]);
        check(".metadata.labels['c.d']", &[]);
        check(".metadata.labels['a/b','c\\.d']", &[json!("slash"), json!("dot")]);
        check(".metadata.labels.c\\.d", &[json!("dot")]);
        check(".spec.list[0]", &[json!(1)]);
        check(".spec.list[-1]", &[json!(4)]);
        check(".spec.list[9]", &[]);
        check(".spec.list[1:3]", &[json!(2), json!(3)]);
        check(".spec.list[-2:]", &[json!(3), json!(4)]);
        check(".spec.list[::2]", &[json!(1), json!(3)]);
        check(".spec.list[*]", &[json!(1), json!(2), json!(3), json!(4)]);
        check(".status.conditions[*].type", &[json!("Ready"), json!("Synced")]);
        check(".status..status", &[json!("True"), json!("False")]);
        check(".spec['replicas','list']", &[json!(3), json!([1, 2, 3, 4])]);
    }

    #[test]
    fn filters_choose_elements() {
        check(".status.conditions[?(@.type==\"Ready\")].status", &[json!("True")]);
        check(".status.conditions[?(@.type=='Ready')].status", &[json!("True")]);
        check(".status.conditions[?(@.type != \"Ready\")].status", &[json!("False")]);
        check(".status.conditions[?(@.n >= 2)].type", &[json!("Synced")]);
        check(".status.conditions[?(@.n<2)].type", &[json!("Ready")]);
        check(".status.conditions[?(@.reason)].type", &[json!("Synced")]);
        check(".status.conditions[?(@['type']==\"a]b==c\")].type", &[]);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        assert_eq!(JsonPath::parse(".a[0"), Err(JsonPathError::UnclosedBracket));
        assert_eq!(JsonPath::parse(".a[x]"), Err(JsonPathError::Index("x".into())));
        assert_eq!(JsonPath::parse(".a[?(x)]"), Err(JsonPathError::Filter("x".into())));
        assert_eq!(JsonPath::parse(".a b"), Err(JsonPathError::Unexpected(' ')));
        let nested = "[?(@".repeat(50_000);
        assert!(JsonPath::parse(&nested).is_err());
        let nested = "[?(@".repeat(100) + &")]".repeat(100);
        assert_eq!(JsonPath::parse(&nested), Err(JsonPathError::TooDeep));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[.a\\[\\]?()@='\"0-9:,*\\\\ -]{0,30}") {
            if let Ok(path) = JsonPath::parse(&text) {
                path.find(&object());
            }
        }
    }
}
