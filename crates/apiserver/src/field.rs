//! Complaints about one field of an object, worded as Kubernetes words them.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// A reference to something that does not exist.
    NotFound,
    /// A value that must be there is not.
    Required,
    /// A value that must be unique stands twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value that may not be set here, or may not change.
    Forbidden,
    /// A string that is too long.
    TooLong,
    /// A list that is too long.
    TooMany,
    /// A value of the wrong type.
    TypeInvalid,
}

impl Problem {
    /// The words that open the message.
    fn label(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// One complaint about one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub problem: Problem,
    /// Where: `spec.template.spec.containers[0].name`.
    pub path: String,
    /// The value found there.
    pub value: Value,
    /// More, in words.
    pub detail: String,
    /// The value as the message shows it, where that is not its JSON with sorted keys. Nothing: the value is not shown.
    pub shown: Option<String>,
    /// It was so before, and is only mentioned.
    pub is_old: bool,
}

impl FieldError {
    /// A complaint that shows the value.
    pub fn new(problem: Problem, path: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        Self { problem, path: path.into(), value, detail: detail.into(), shown: None, is_old: false }
    }

    /// A malformed value.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Invalid, path, value.into(), detail)
    }

    /// A missing value.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Required, path, Value::String(String::new()), detail)
    }

    /// A value that may not be set here, or may not change.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Forbidden, path, Value::String(String::new()), detail)
    }

    /// A value outside an enumeration.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, allowed: &[&str]) -> Self {
        let quoted: Vec<String> = allowed.iter().map(|v| format!("{v:?}")).collect();
        Self::new(Problem::NotSupported, path, value.into(), format!("supported values: {}", quoted.join(", ")))
    }

    /// A value that stands twice.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Problem::Duplicate, path, value.into(), "")
    }

    /// The same complaint, showing the value in words of its own: Kubernetes prints some of its structs field by field.
    #[must_use]
    pub fn showing(mut self, text: impl Into<String>) -> Self {
        self.shown = Some(text.into());
        self
    }

    /// The complaint without the path: the `message` of a cause in a Status.
    pub fn body(&self) -> String {
        let mut text = self.problem.label().to_owned();
        match self.problem {
            Problem::Required | Problem::Forbidden | Problem::TooLong => {}
            Problem::NotFound
            | Problem::Duplicate
            | Problem::Invalid
            | Problem::NotSupported
            | Problem::TypeInvalid
            | Problem::TooMany => {
                if self.shown.as_deref() != Some("") {
                    text += ": ";
                }
                text += &match (&self.shown, &self.value) {
                    (Some(shown), _) => shown.clone(),
                    (None, Value::String(s)) => quote(s),
                    (None, Value::Number(n)) if n.is_f64() => go_float(n.as_f64().unwrap_or_default()),
                    (None, other) => other.to_string(),
                };
            }
        }
        if !self.detail.is_empty() {
            text += ": ";
            text += &self.detail;
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Whether a character can be printed: letters, marks, numbers, punctuation, symbols and the plain space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // The standard library knows the categories, and tells only when it escapes; behind another character, a mark is printed.
    let mut pair = [0; 5];
    pair[0] = b'a';
    let length = c.encode_utf8(&mut pair[1..]).len();
    std::str::from_utf8(&pair[..=length]).is_ok_and(|pair| pair.escape_debug().count() == 2)
}

/// A string in double quotes, with the escapes that Kubernetes' messages have: those of JSON without `\u` for what can be printed.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_printable(c) => out.push(c),
            c => {
                let escape = match u32::from(c) {
                    code @ 0..0x80 => format!("\\x{code:02x}"),
                    code @ 0x80..0x1_0000 => format!("\\u{code:04x}"),
                    code => format!("\\U{code:08x}"),
                };
                out.push_str(&escape);
            }
        }
    }
    out.push('"');
    out
}

/// A value as Go marshals it: whole floats without a fraction, and nothing that a browser could take for a tag.
pub(crate) fn go_json(value: &Value) -> String {
    fn whole_floats(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                let float = number.as_f64().unwrap_or_default();
                if let Some(whole) = format!("{float}").parse::<i64>().ok().filter(|_| float.fract() == 0.0) {
                    *number = whole.into();
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(whole_floats),
            Value::Object(fields) => fields.values_mut().for_each(whole_floats),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = value.clone();
    whole_floats(&mut value);
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A float as Go's `%v` prints it: `1.5`, `2` for a whole number, `1e+06` for a large one.
pub fn go_float(number: f64) -> String {
    let magnitude = number.abs();
    if number == 0.0 || (1e-4..1e6).contains(&magnitude) {
        return number.to_string();
    }
    let scientific = format!("{number:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => scientific,
    }
}
