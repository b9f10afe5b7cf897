//! Values as Go prints them: they appear in refusals.

use serde_json::{Map, Value};

/// The type that a value has in Go.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => go_list(items),
        Value::Object(fields) => go_map(fields),
        scalar => scalar.to_string(),
    }
}

/// `[a b]`
pub(super) fn go_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" "))
}

/// `map[a:1 b:2]`
pub(super) fn go_map(fields: &Map<String, Value>) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", go_value(value))).collect();
    format!("map[{}]", fields.join(" "))
}

/// What is said when a tree of values does not fit a Go type, made of what is said when JSON text does not.
pub(crate) fn unrestored(why: String) -> String {
    let parts = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
        let (found, rest) = rest.split_once(" into Go ")?;
        Some((found, rest.rsplit_once(" of type ")?.1))
    });
    let Some((found, wanted)) = parts else { return why };
    let found = match found {
        "array" => "slice",
        "object" => "map",
        "number" => "int64",
        number if number.starts_with("number ") => "float64",
        other => other,
    };
    match (found, wanted) {
        ("int64", "string") | ("float64", "string" | "int32" | "int64") => {
            format!("cannot convert {found} to {wanted}")
        }
        (_, "string" | "bool" | "int32" | "int64" | "float64") => format!("unrecognized type: {wanted}"),
        (_, map) if map.starts_with("map[") => format!("cannot restore map from {found}"),
        (_, slice) if slice.starts_with("[]") => format!("cannot restore slice from {found}"),
        _ => format!("cannot restore struct from: {found}"),
    }
}
