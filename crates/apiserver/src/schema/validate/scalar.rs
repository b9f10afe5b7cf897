//! The checks on one value alone: its type, its size, its text, its number.

use serde_json::{Number, Value};

use super::Outcome;
use crate::field::{FieldError, Problem, go_float};
use crate::schema::path::Path;
use crate::schema::{Rules, Schema, Shape, format};

/// The name of a value's type, and of the format that Go gives it.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        // What does not fit into an int64 is read as a float64.
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Floats that are whole numbers count as such, up to where a float64 can tell whole numbers apart.
fn whole(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0; // 2^53 - 1
    number.fract() == 0.0 && number.abs() <= LARGEST
}

fn fits(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Any, _)
        | (Shape::String | Shape::IntOrString, Value::String(_))
        | (Shape::Number, Value::Number(_))
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Object(_), Value::Object(_))
        | (Shape::Array(_), Value::Array(_)) => true,
        (Shape::Integer | Shape::IntOrString, Value::Number(number)) => {
            number.is_i64() || number.as_f64().is_some_and(whole)
        }
        _ => false,
    }
}

fn declared(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "",
        Shape::String => "string",
        Shape::Integer => "integer",
        Shape::Number => "number",
        Shape::Boolean => "boolean",
        Shape::IntOrString => "integer,string",
        Shape::Object(_) => "object",
        Shape::Array(_) => "array",
    }
}

impl Outcome {
    fn wrong_type(&mut self, path: &Path<'_>, expected: &str, found: &str) {
        self.push(Problem::TypeInvalid, path, found.into(), |name| {
            format!("{name} in body must be of type {expected}: {found:?}")
        });
    }

    pub(super) fn null(&mut self, schema: &Schema, path: &Path<'_>) {
        let untyped = schema.rules.as_ref().is_some_and(|rules| rules.untyped);
        if schema.nullable || untyped || matches!(schema.shape, Shape::Any) {
            self.matches += 1;
        } else {
            self.wrong_type(path, declared(&schema.shape), "null");
        }
    }

    pub(super) fn declared_type(&mut self, value: &Value, schema: &Schema, path: &Path<'_>) {
        let rules = schema.rules.as_deref();
        if rules.is_some_and(|rules| rules.untyped) {
            return;
        }
        let format = rules.and_then(|rules| rules.format.as_deref());
        if matches!(schema.shape, Shape::Any) && format.is_none() {
            return;
        }
        let textual = matches!(value, Value::String(_) | Value::Array(_));
        let numeric = matches!(schema.shape, Shape::Integer | Shape::Number | Shape::IntOrString);
        // A format on anything but a number waives the type of strings, and of lists too.
        let waived = format.is_some() && textual && !numeric;
        self.matches += 1;
        if waived || (fits(&schema.shape, value) && !matches!(schema.shape, Shape::Any)) {
            self.matches += 1;
        } else {
            let (found, found_format) = type_of(value);
            match format {
                Some(format) if !textual => self.wrong_type(path, format, found_format),
                _ => self.wrong_type(path, declared(&schema.shape), found),
            }
        }
    }

    pub(super) fn own_rules(&mut self, value: &Value, shape: &Shape, rules: &Rules, path: &Path<'_>) {
        match value {
            Value::String(text) => self.string(text, rules, path),
            Value::Number(number) => self.number(number, shape, rules, path),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
        }
    }

    fn string(&mut self, text: &str, rules: &Rules, path: &Path<'_>) {
        let length = || text.chars().count() as u64;
        if let Some(limit) = rules.max_length.filter(|limit| text.len() as u64 > *limit && length() > *limit) {
            let unit = if limit == 1 { "byte" } else { "bytes" };
            self.push(Problem::TooLong, path, text.into(), |_| format!("may not be more than {limit} {unit}"));
        } else if let Some(limit) = rules.min_length.filter(|limit| length() < *limit) {
            self.push(Problem::Invalid, path, text.into(), |name| {
                format!("{name} in body should be at least {limit} chars long")
            });
        } else if let Some((pattern, regex)) = &rules.pattern
            && !regex.is_match(text)
        {
            self.push(Problem::Invalid, path, text.into(), |name| format!("{name} in body should match '{pattern}'"));
        }
        if let Some(format) = &rules.format
            && let Some(matches) = format::matches(format, text)
        {
            self.matches += 1;
            if !matches {
                self.wrong_type(path, format, text);
            }
        }
    }

    fn number(&mut self, number: &Number, shape: &Shape, rules: &Rules, path: &Path<'_>) {
        self.in_range(number, shape, rules.format.as_deref(), "Checked", path);
        if let Some(factor) = rules.multiple_of {
            self.multiple_of(number, factor, shape, rules, path);
        }
        for (bound, label) in [(rules.minimum, "Minimum boundary"), (rules.maximum, "Maximum boundary")] {
            let Some((bound, exclusive)) = bound else { continue };
            let minimum = label.starts_with("Min");
            let sound = Number::from_f64(bound)
                .is_some_and(|bound| self.in_range(&bound, shape, rules.format.as_deref(), label, path));
            // Whole numbers are compared as such, so that large ones are not rounded.
            let (beyond, shown) = if let Some(whole) = number.as_i64().filter(|_| sound) {
                #[expect(clippy::cast_possible_truncation, reason = "saturates, as the bound of a real server does")]
                let bound = bound as i64;
                let order = if minimum { bound.cmp(&whole) } else { whole.cmp(&bound) };
                (order.is_gt() || (exclusive && order.is_eq()), bound.to_string())
            } else {
                let float = number.as_f64().unwrap_or_default();
                let over = if minimum { float < bound } else { float > bound };
                #[expect(clippy::float_cmp, reason = "an exclusive bound is this very number")]
                let on = float == bound;
                (over || (exclusive && on), go_float(bound))
            };
            if beyond {
                let order = match (minimum, exclusive) {
                    (true, true) => "greater than",
                    (true, false) => "greater than or equal to",
                    (false, true) => "less than",
                    (false, false) => "less than or equal to",
                };
                let value = Value::Number(number.clone());
                self.push(Problem::Invalid, path, value, |name| format!("{name} in body should be {order} {shown}"));
            }
        }
    }

    /// Whether the number can be held by the declared type and format.
    pub(super) fn in_range(
        &mut self,
        number: &Number,
        shape: &Shape,
        format: Option<&str>,
        what: &str,
        path: &Path<'_>,
    ) -> bool {
        let float = number.as_f64().unwrap_or_default();
        let (fits, kind) = match (shape, format) {
            (Shape::Integer, Some("int32")) => {
                let whole = float.fract() == 0.0;
                (whole && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float), "integer")
            }
            (Shape::Integer, _) => {
                const EDGE: f64 = 9_223_372_036_854_775_808.0; // 2^63
                (number.is_i64() || (float.fract() == 0.0 && (-EDGE..EDGE).contains(&float)), "integer")
            }
            (Shape::Number, Some("float")) => (float.abs() <= f64::from(f32::MAX), "number"),
            _ => return true,
        };
        if !fits {
            let format = format.map_or_else(|| "(default format)".to_owned(), |f| format!("with format {f}"));
            self.complain(format!("{what} value must be of type {kind} {format} in {}", path.dotted()));
        }
        fits
    }

    fn multiple_of(&mut self, number: &Number, factor: f64, shape: &Shape, rules: &Rules, path: &Path<'_>) {
        let sound = Number::from_f64(factor)
            .is_some_and(|f| self.in_range(&f, shape, rules.format.as_deref(), "MultipleOf", path));
        let (positive, multiple, shown) = if let Some(whole) = number.as_i64().filter(|_| sound) {
            #[expect(clippy::cast_possible_truncation, reason = "saturates, as the factor of a real server does")]
            let factor = factor as i64;
            (factor > 0, whole.checked_rem(factor).is_none_or(|rest| rest == 0), factor.to_string())
        } else {
            let float = number.as_f64().unwrap_or_default();
            let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (factor > 0.0, whole(quotient), go_float(factor))
        };
        let value = Value::Number(number.clone());
        if !positive {
            let detail = |name: &str| format!("factor MultipleOf declared for {name} must be positive: {shown}");
            self.push(Problem::Invalid, path, shown.parse().map_or(Value::Null, Value::Number), detail);
        } else if !multiple {
            self.push(Problem::Invalid, path, value, |name| format!("{name} in body should be a multiple of {shown}"));
        }
    }

    pub(super) fn sizes_of_list(&mut self, value: &Value, rules: &Rules, path: &Path<'_>) {
        let Value::Array(elements) = value else { return };
        let size = elements.len() as u64;
        if let Some(limit) = rules.min_items.filter(|limit| size < *limit) {
            self.push(Problem::Invalid, path, size.into(), |name| {
                format!("{name} in body should have at least {limit} items")
            });
        }
        self.too_many(size, rules.max_items, path);
        if rules.unique_items && elements.iter().enumerate().any(|(i, e)| elements.iter().take(i).any(|o| o == e)) {
            self.push(Problem::Invalid, path, "".into(), |name| format!("{name} in body shouldn't contain duplicates"));
        }
    }

    pub(super) fn sizes_of_object(&mut self, value: &Value, rules: &Rules, path: &Path<'_>) {
        let Value::Object(fields) = value else { return };
        let size = fields.len() as u64;
        if let Some(limit) = rules.min_properties.filter(|limit| size < *limit) {
            self.push(Problem::Invalid, path, size.into(), |name| {
                format!("{name} in body should have at least {limit} properties")
            });
        }
        self.too_many(size, rules.max_properties, path);
    }

    fn too_many(&mut self, size: u64, limit: Option<u64>, path: &Path<'_>) {
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            let unit = if limit == 1 { "item" } else { "items" };
            self.push(Problem::TooMany, path, size.into(), |_| format!("must have at most {limit} {unit}"));
        }
    }

    pub(super) fn allowed(&mut self, value: &Value, rules: &Rules, path: &Path<'_>) {
        let Some(allowed) = &rules.allowed else { return };
        // A null is never among the allowed values, not even when it is listed.
        if !value.is_null() && allowed.iter().any(|allowed| same(value, allowed)) {
            return;
        }
        let shown: Vec<String> =
            allowed.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let mut error = FieldError::not_supported(path.dotted(), value.clone(), &shown);
        if error.path.is_empty() {
            super::NOWHERE.clone_into(&mut error.path);
        }
        self.errors.push(error);
    }
}

/// Whether a value is an allowed one. A number is first made one of the allowed one's type, so that 2.5 passes for 2: that
/// is what a real server does.
fn same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Number(number), Value::Number(allowed)) if number.is_f64() && allowed.is_i64() => {
            number.as_f64().map(f64::trunc) == allowed.as_f64()
        }
        (Value::Number(number), Value::Number(allowed)) => number == allowed || number.as_f64() == allowed.as_f64(),
        _ => value == allowed,
    }
}
