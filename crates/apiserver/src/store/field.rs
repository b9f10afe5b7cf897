//! One field of an object, read from its bytes without making a tree of the rest.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Reads the value at the names that are left, which dots separate; nothing where there is none.
pub(super) struct At<'p>(pub(super) &'p str);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.is_empty() {
            serde::Deserialize::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let (wanted, rest) = self.0.split_once('.').unwrap_or((self.0, ""));
        let mut found = Value::Null;
        while let Some(is_wanted) = fields.next_key_seed(Is(wanted))? {
            if is_wanted {
                found = fields.next_value_seed(At(rest))?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// Whether a name is this one.
struct Is<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_what_the_tree_has_there() {
        let object =
            json!({"a": {"b": {"c": "x", "d": [1, {"c": 2}]}, "n": null}, "b": 7, "t": "text", "e\"f": {"g": true}});
        let text = object.to_string();
        for path in
            ["a", "a.b", "a.b.c", "a.b.d", "a.b.d.c", "a.n", "a.n.x", "b", "b.x", "t.x", "e\"f.g", "x", "x.y", ""]
        {
            let names = path.split('.').filter(|name| !name.is_empty());
            let expected = names.fold(&object, |value, name| &value[name]);
            let mut reader = serde_json::Deserializer::from_str(&text);
            assert_eq!(&At(path).deserialize(&mut reader).unwrap(), expected, "{path}");
            reader.end().unwrap();
        }
    }
}
