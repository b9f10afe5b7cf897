//! Request bodies in protobuf.
//!
//! kubectl and client-go send built-in kinds this way, and do not try JSON when they are refused. The messages are a table
//! ([`table`]); what they say becomes the JSON that the same client would have sent. Nothing is written in protobuf.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

mod table;
mod wire;

use table::{Field, Label, Message, TABLE, Type};
use wire::{Payload, Wire};

/// The bytes that every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The deepest nesting that is followed; objects of Kubernetes stay below twenty, schemas of custom resources can go deeper.
const DEPTH_MAX: usize = 100;

/// Why a body was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// A kind without a protobuf form here; JSON would do.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// The `apiVersion`.
        api_version: String,
        /// The `kind`.
        kind: String,
    },
    /// The bytes do not make sense.
    #[error("{0}")]
    Malformed(String),
}

fn malformed(why: impl Into<String>) -> ProtobufError {
    ProtobufError::Malformed(why.into())
}

/// Decodes a body: the envelope, then the object that it says is in it.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let Some(envelope) = bytes.strip_prefix(MAGIC) else {
        let why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(malformed(if bytes.is_empty() { "empty data" } else { why }));
    };
    let (mut api_version, mut kind, mut raw) = ("", "", &[][..]);
    for field in Wire::new(envelope) {
        match field? {
            (1, Payload::Bytes(type_meta)) => {
                for field in Wire::new(type_meta) {
                    match field? {
                        (1, Payload::Bytes(text)) => api_version = utf8(text)?,
                        (2, Payload::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Payload::Bytes(object)) => raw = object,
            (3, Payload::Bytes([_, ..])) => return Err(malformed("the content encoding is not supported")),
            _ => {}
        }
    }
    let Some(message) = TABLE.kind(api_version, kind) else {
        return Err(ProtobufError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
    };
    let mut object = Map::new();
    fields(raw, message, &mut object, DEPTH_MAX)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

fn utf8(bytes: &[u8]) -> Result<&str, ProtobufError> {
    std::str::from_utf8(bytes).map_err(|_| malformed("a string is not UTF-8"))
}

/// Decodes the fields of a message into an object. What the table does not know is skipped.
fn fields(bytes: &[u8], message: &Message, object: &mut Map<String, Value>, depth: usize) -> Result<(), ProtobufError> {
    let depth = depth.checked_sub(1).ok_or_else(|| malformed("exceeded max depth"))?;
    for field in Wire::new(bytes) {
        let (number, payload) = field?;
        if let Some(field) = message.field(number) {
            field_value(field, payload, object, depth)?;
        }
    }
    Ok(())
}

fn field_value(
    field: &Field,
    payload: Payload<'_>,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    match field.label {
        Label::Inline => {
            if let Type::Message(inner) = field.type_ {
                fields(payload.bytes()?, TABLE.message(inner), object, depth)?;
            }
        }
        Label::Repeated => {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(list) = list else { return Ok(()) };
            match (field.type_, payload) {
                // Numbers may come packed.
                (Type::Integer, Payload::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        list.push(wire::varint(&mut packed)?.cast_signed().into());
                    }
                }
                (type_, payload) => list.push(value(type_, payload, depth)?.unwrap_or(Value::Null)),
            }
        }
        Label::Map => {
            let (key, value) = map_entry(field.type_, payload.bytes()?, depth)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
        Label::Dropped | Label::Kept => {
            let value = value(field.type_, payload, depth)?;
            // A client that writes JSON leaves out what is zero, and would not notice the difference.
            if let Some(value) = value.filter(|v| field.label == Label::Kept || !is_zero(v)) {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn map_entry(type_: Type, bytes: &[u8], depth: usize) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut found) = (String::new(), None);
    for field in Wire::new(bytes) {
        match field? {
            (1, Payload::Bytes(text)) => utf8(text)?.clone_into(&mut key),
            (2, payload) => found = value(type_, payload, depth)?,
            _ => {}
        }
    }
    let zero = match type_ {
        Type::String | Type::Bytes | Type::Quantity => Value::from(""),
        _ => Value::Null,
    };
    Ok((key, found.unwrap_or(zero)))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Decodes one value; `None` when it says "not set".
fn value(type_: Type, payload: Payload<'_>, depth: usize) -> Result<Option<Value>, ProtobufError> {
    Ok(Some(match type_ {
        Type::String => utf8(payload.bytes()?)?.into(),
        Type::Boolean => (payload.varint()? != 0).into(),
        Type::Integer => payload.varint()?.cast_signed().into(),
        Type::Double => payload.double()?.into(),
        Type::Bytes => STANDARD.encode(payload.bytes()?).into(),
        Type::Quantity => utf8(only_bytes(payload.bytes()?)?)?.into(),
        Type::Json => match only_bytes(payload.bytes()?)? {
            [] => return Ok(None),
            raw => serde_json::from_slice(raw).map_err(|e| malformed(format!("raw JSON: {e}")))?,
        },
        Type::Time => return time(payload.bytes()?, "%Y-%m-%dT%H:%M:%SZ"),
        Type::MicroTime => return time(payload.bytes()?, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        Type::IntOrString => int_or_string(payload.bytes()?)?,
        Type::Message(index) => {
            let message = TABLE.message(index);
            let mut object = Map::new();
            fields(payload.bytes()?, message, &mut object, depth)?;
            if !message.transparent {
                return Ok(Some(Value::Object(object)));
            }
            let last = message.fields.iter().rev().find_map(|f| object.remove(f.name));
            return Ok(last.or_else(|| (message.fields.len() == 1).then(|| Value::Array(Vec::new()))));
        }
    }))
}

/// The first field of a message that has only one, of bytes.
fn only_bytes(message: &[u8]) -> Result<&[u8], ProtobufError> {
    let mut found = &[][..];
    for field in Wire::new(message) {
        if let (1, Payload::Bytes(bytes)) = field? {
            found = bytes;
        }
    }
    Ok(found)
}

fn time(message: &[u8], format: &str) -> Result<Option<Value>, ProtobufError> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Wire::new(message) {
        match field? {
            (1, Payload::Varint(varint)) => seconds = varint.cast_signed(),
            (2, Payload::Varint(varint)) => nanos = i32::try_from(varint.cast_signed()).unwrap_or(i32::MAX),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(None);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| malformed("a time is out of range"))?;
    Ok(Some(time.strftime(format).to_string().into()))
}

fn int_or_string(message: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for field in Wire::new(message) {
        match field? {
            (1, Payload::Varint(varint)) => is_text = varint != 0,
            (2, Payload::Varint(varint)) => number = varint.cast_signed(),
            (3, Payload::Bytes(bytes)) => text = utf8(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

#[cfg(test)]
mod tests;
