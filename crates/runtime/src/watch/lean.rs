//! An object as its text, or as a tree without its `metadata.managedFields`: they are up to half of it, and nobody here asks for
//! them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The name that `serde_json` hands a text out under as it stands. Whoever does not know the name reads on as ever.
const AS_TEXT: &str = "$serde_json::private::RawValue";

/// What an object is read from.
pub(super) enum Source<'de> {
    /// The text, where it is at hand.
    Text(Cow<'de, str>),
    /// What was made of it already, as where an event says last what happened.
    Tree(Value),
}

impl<'de> Deserialize<'de> for Source<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AS_TEXT, SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = Source<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut text: A) -> Result<Source<'de>, A::Error> {
        text.next_key::<IgnoredAny>()?;
        text.next_value_seed(Text).map(Source::Text)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inside: D) -> Result<Source<'de>, D::Error> {
        Lean::Object.deserialize(inside).map(Source::Tree)
    }
}

/// The text itself, copied only where it has to be.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The tree of a text that was found to be JSON.
pub(super) fn object(text: &str) -> Value {
    Lean::Object.deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap_or_default()
}

/// Where in an object the reader is.
#[derive(Clone, Copy)]
enum Lean {
    /// At the object itself.
    Object,
    /// At its metadata.
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Lean {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Lean {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(field) = fields.next_key::<String>()? {
            let value = match (self, field.as_str()) {
                (Self::Object, "metadata") => fields.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => fields.next_value()?,
            };
            object.insert(field, value);
        }
        Ok(Value::Object(object))
    }

    // What follows is no object, and will be found not to be readable as one.

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Value, E> {
        Ok(is.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &Value) {
        let mut reader = serde_json::Deserializer::from_str(text);
        assert_eq!(&Lean::Object.deserialize(&mut reader).unwrap(), expected);
        reader.end().unwrap();
    }

    #[test]
    fn only_the_managed_fields_of_the_metadata_are_left_out() {
        check(
            r#"{"metadata":{"name":"a","managedFields":[{"x":{}}]},"managedFields":1,"spec":{"metadata":{"managedFields":2}}}"#,
            &json!({"metadata": {"name": "a"}, "managedFields": 1, "spec": {"metadata": {"managedFields": 2}}}),
        );
        check(r#"{"metadata":7}"#, &json!({"metadata": 7}));
        for other in ["null", "7", "-7", "7.5", "true", r#""text""#, "[1,{}]"] {
            check(other, &serde_json::from_str(other).unwrap());
        }
    }
}
