//! From a JSON value to one that expressions see: typed by the schema, with names that can be written in the language.

use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::{Map as Fields, Value};

use super::functions;
use crate::schema::{ObjectShape, Schema, Shape};

/// Words of the language that cannot be names.
const RESERVED: [&str; 19] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
];

/// The words around a name that is written otherwise.
const ESCAPES: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// A field's name as expressions write it; `None` when none can.
pub(super) fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    'next: while let Some(first) = rest.chars().next() {
        for (text, word) in ESCAPES {
            if let Some(after) = rest.strip_prefix(text) {
                out.push_str(word);
                rest = after;
                continue 'next;
            }
        }
        if !(first.is_ascii_alphanumeric() || first == '_') {
            return None;
        }
        out.push(first);
        rest = &rest[1..];
    }
    (!out.starts_with(|c: char| c.is_ascii_digit())).then_some(out)
}

/// A value as expressions see it.
pub(super) fn typed(value: &Value, schema: &Schema) -> Cel {
    match (value, &schema.shape) {
        (Value::Number(number), Shape::Number) => Cel::Float(number.as_f64().unwrap_or_default()),
        (Value::String(text), Shape::String) => {
            formatted(text, schema.rules.as_ref().and_then(|r| r.format.as_deref()))
        }
        (Value::Array(elements), Shape::Array(shape)) => {
            Cel::List(Arc::new(elements.iter().map(|element| typed(element, &shape.items)).collect()))
        }
        (Value::Object(fields), Shape::Object(shape)) => object(fields, shape, schema),
        _ => untyped(value),
    }
}

fn object(fields: &Fields<String, Value>, shape: &ObjectShape, schema: &Schema) -> Cel {
    let entries = fields.iter().filter_map(|(name, value)| match (shape.properties.get(name), &shape.additional) {
        // Of the metadata only the names are promised to stay as they are.
        (Some(known), _) if name == "metadata" && is_resource(schema, shape) => {
            Some((text_key(name), names(value, known)))
        }
        (Some(known), _) => Some((text_key(&escaped(name)?), typed(value, known))),
        (None, Some(additional)) => Some((text_key(name), typed(value, additional))),
        // What the schema does not know is kept, but not shown.
        (None, None) => None,
    });
    Cel::Map(Map { map: Arc::new(entries.collect()) })
}

/// The object as a whole, or one inside of it that is one by itself.
fn is_resource(schema: &Schema, shape: &ObjectShape) -> bool {
    schema.embedded_resource || shape.properties.contains_key("apiVersion") && shape.properties.contains_key("kind")
}

fn names(metadata: &Value, schema: &Schema) -> Cel {
    let fields = ["name", "generateName"].into_iter().filter_map(|name| Some((name, metadata.get(name)?)));
    let entries = fields.map(|(name, value)| (text_key(name), typed(value, schema)));
    Cel::Map(Map { map: Arc::new(entries.collect()) })
}

fn formatted(text: &str, format: Option<&str>) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    match format {
        Some("byte") => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            decoded.map_or_else(|_| plain(), |bytes| Cel::Bytes(Arc::new(bytes)))
        }
        Some("date-time") => called("timestamp(text)", text).unwrap_or_else(plain),
        Some("date") => called("timestamp(text + 'T00:00:00Z')", text).unwrap_or_else(plain),
        Some("duration") => called("duration(text)", text).unwrap_or_else(plain),
        _ => plain(),
    }
}

/// What a function of the language makes of a text.
fn called(expression: &str, text: &str) -> Option<Cel> {
    let mut context: Context<'_> = functions();
    context.add_variable_from_value("text", text.to_owned());
    Program::compile(expression).ok()?.execute(&context).ok()
}

/// A value of which nothing is known but itself.
pub(super) fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Cel::Int(integer),
            (None, Some(large)) => Cel::UInt(large),
            (None, None) => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(elements) => Cel::List(Arc::new(elements.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let entries = fields.iter().map(|(name, value)| (text_key(name), untyped(value)));
            Cel::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

fn text_key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_kubernetes_escapes_them() {
        for (name, expected) in [
            ("plain", Some("plain")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("x__y", Some("x__underscores__y")),
            ("int", Some("int")),
            ("1a", None),
            ("a b", None),
        ] {
            assert_eq!(escaped(name).as_deref(), expected, "{name}");
        }
    }
}
