//! How an answer is printed: YAML-like, a value on one line when it fits. It is read by people and compared as text; it is never parsed.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const WIDTH: usize = 120;

/// Named values, one below the other.
pub fn entries<'a>(entries: impl IntoIterator<Item = (&'a str, Option<&'a Value>)>) -> String {
    let mut out = String::new();
    for (name, value) in entries {
        match value {
            Some(value) => entry(name, value, 0, &mut out),
            None => writeln!(out, "{name}: (absent)").unwrap(),
        }
    }
    trimmed(out)
}

/// A whole value.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    trimmed(out)
}

/// Named values on one line.
pub fn line<'a>(entries: impl IntoIterator<Item = (&'a str, Option<&'a Value>)>) -> String {
    let words: Vec<String> = entries
        .into_iter()
        .map(|(name, value)| format!("{name}: {}", value.map_or_else(|| "(absent)".to_owned(), flow)))
        .collect();
    words.join("  ")
}

fn trimmed(mut out: String) -> String {
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// A value in lines of its own: an object or a list is broken up.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                entry(&text(key), value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let inline = flow(item);
                if indent + 2 + inline.len() <= WIDTH {
                    writeln!(out, "{:indent$}- {inline}", "").unwrap();
                } else {
                    let mut nested = String::new();
                    block(item, indent + 2, &mut nested);
                    writeln!(out, "{:indent$}- {}", "", nested.trim()).unwrap();
                }
            }
        }
        Value::String(text) if plain_line(text) => writeln!(out, "{:indent$}{text}", "").unwrap(),
        _ => writeln!(out, "{:indent$}{}", "", flow(value)).unwrap(),
    }
}

fn entry(name: &str, value: &Value, indent: usize, out: &mut String) {
    let inline = match value {
        Value::String(text) if plain_line(text) => text.clone(),
        _ => flow(value),
    };
    let fits = indent + name.len() + 2 + inline.len() <= WIDTH;
    if fits || !(value.is_object() || value.is_array()) {
        writeln!(out, "{:indent$}{name}: {inline}", "").unwrap();
    } else {
        writeln!(out, "{:indent$}{name}:", "").unwrap();
        block(value, indent + 2, out);
    }
}

/// A value on one line.
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => format!("{{{}}}", pairs(map).join(", ")),
        other => other.to_string(),
    }
}

fn pairs(map: &Map<String, Value>) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{}: {}", text(key), flow(value))).collect()
}

/// A string inside other values: quoted when it could be mistaken for something else.
fn text(string: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_./<>$*~-@+()=: ".contains(c);
    let plain = plain_line(string) && string.chars().all(safe) && !string.contains(": ") && !string.ends_with(':');
    if plain { string.to_owned() } else { Value::String(string.to_owned()).to_string() }
}

/// Whether a string that stands alone on the rest of its line can be told from other values.
fn plain_line(string: &str) -> bool {
    let odd_edge = string.starts_with([' ', '"', '[', '{', '(']) || string.ends_with(' ') || string.is_empty();
    !odd_edge && !string.chars().any(char::is_control) && !looks_typed(string)
}

fn looks_typed(string: &str) -> bool {
    matches!(string, "true" | "false" | "null") || string.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_only_where_they_could_be_misread() {
        let check = |value: Value, expected: &str| assert_eq!(super::value(&value), expected);
        check(json!({"a": "1", "b": 1, "c": "true", "d": ""}), "a: \"1\"\nb: 1\nc: \"true\"\nd: \"\"");
        check(json!({"message": "pods \"a\" not found"}), "message: pods \"a\" not found");
        check(json!({"list": ["a", "b, c", "<rv:1>"]}), "list: [a, \"b, c\", <rv:1>]");
        check(json!({"lines": "a\nb"}), "lines: \"a\\nb\"");
        check(json!([]), "[]");
        check(json!({"empty": {}, "none": []}), "empty: {}\nnone: []");
    }

    #[test]
    fn long_values_are_broken_into_lines() {
        let word = "w".repeat(60);
        let value = json!({"spec": {"items": [{"name": "a", "one": word, "two": word}, {"name": "b"}]}});
        let expected =
            format!("spec:\n  items:\n    - name: a\n      one: {word}\n      two: {word}\n    - {{name: b}}");
        assert_eq!(super::value(&value), expected);
    }

    #[test]
    fn a_missing_value_is_said_to_be_absent() {
        assert_eq!(entries([(".a", Some(&json!({"x": 1}))), (".b", None)]), ".a: {x: 1}\n.b: (absent)");
        assert_eq!(line([(".a", Some(&json!("x, y"))), (".b", None)]), ".a: \"x, y\"  .b: (absent)");
    }
}
