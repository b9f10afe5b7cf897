//! From the bytes of a request's body to a value: JSON or YAML, with an eye on keys that stand twice.
//!
//! Both functions return the value and what strict decoding says about it, each as a complete sentence. What they refuse
//! they refuse in the words of a Go server, where those are known.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::field::quote;
use crate::schema::path::Path;

/// How deep a body may nest. A JSON parser stops here by itself; a YAML parser can be led further by aliases.
const DEPTH: usize = 127;

/// YAML that may nest deeper than this is read on a stack of its own: its parser takes some 20 KiB for each level.
const SHALLOW: usize = 24;

/// Enough for [`DEPTH`] levels, with a wide margin.
const DEEP_STACK_BYTES: usize = 16 << 20;

/// The most nodes that YAML may have: as many as fit into the largest body that a server takes.
const NODES: usize = 500_000;

/// The most nodes that aliases may stand for, all together. Manifests have a few; a bomb has all it can get.
const ALIASED: usize = 20_000;

/// Reads JSON, in one pass. Of a key that stands twice the last value counts, and `duplicate field "spec.replicas"` is
/// reported, once for each place.
pub fn json(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut strict = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Node { path: &Path::Root, depth: 0, strict: &mut strict }.deserialize(&mut deserializer);
    match value.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok((value, strict)),
        Err(error) => Err(go_words(bytes, &error)),
    }
}

/// Reads YAML, which may also be JSON. Of a key that stands twice the last value counts, and it is reported with its line.
pub fn yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    // Clients that ask for YAML often send JSON, and that is read much faster.
    if bytes.trim_ascii_start().starts_with(b"{")
        && let Ok(read) = json(bytes)
    {
        return Ok(read);
    }
    if nesting_at_most(bytes) > SHALLOW {
        return std::thread::scope(|scope| {
            let reader =
                std::thread::Builder::new().stack_size(DEEP_STACK_BYTES).spawn_scoped(scope, || read_yaml(bytes));
            reader
                .ok()
                .and_then(|reader| reader.join().ok())
                .unwrap_or_else(|| Err("yaml: exceeded max depth".to_owned()))
        });
    }
    read_yaml(bytes)
}

/// A bound on how deep YAML nests: every level needs a bracket, an indentation, a dash or an alias.
fn nesting_at_most(bytes: &[u8]) -> usize {
    let anywhere = bytes.iter().filter(|byte| matches!(byte, b'[' | b'{' | b'*')).count();
    let in_line = |line: &[u8]| line.iter().take_while(|byte| matches!(byte, b' ' | b'-' | b'?' | b':')).count();
    anywhere + bytes.split(|byte| *byte == b'\n').map(in_line).max().unwrap_or_default()
}

fn read_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    use serde_saphyr::{DuplicateKeyPolicy, Error};
    match parse_yaml(bytes, DuplicateKeyPolicy::Error) {
        Ok(value) => Ok((value, Vec::new())),
        Err(error) => match error.without_snippet() {
            Error::DuplicateMappingKey { key, location } => {
                let key = quote(key.as_deref().unwrap_or_default());
                let line = location.line();
                let complaint = format!("yaml: unmarshal errors:\n  line {line}: key {key} already set in map");
                let value = parse_yaml(bytes, DuplicateKeyPolicy::LastWins).map_err(|error| yaml_words(&error))?;
                Ok((value, vec![complaint]))
            }
            other => Err(yaml_words(other)),
        },
    }
}

fn parse_yaml(bytes: &[u8], duplicate_keys: serde_saphyr::DuplicateKeyPolicy) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: DEPTH, max_nodes: NODES, max_events: 3 * NODES, max_recorded_anchor_events: 10 * ALIASED },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED },
    };
    serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |deserializer| {
        let mut unused = Vec::new();
        Node { path: &Path::Root, depth: 0, strict: &mut unused }.deserialize(deserializer)
    })
}

fn yaml_words(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    match error.location() {
        Some(location) => format!("yaml: line {}: {first}", location.line()),
        None => format!("yaml: {first}"),
    }
}

/// A value at a place. It builds what `Value` would, and knows where it is.
struct Node<'a> {
    path: &'a Path<'a>,
    depth: usize,
    strict: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > DEPTH {
            return Err(D::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // As Go writes it: a whole number has no fraction. Up to 2^53 every whole number is exact.
        if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
            return Ok(Value::from(value as i64));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let path = self.path.index(elements.len());
            match access.next_element_seed(Node { path: &path, depth: self.depth + 1, strict: self.strict })? {
                Some(element) => elements.push(element),
                None => return Ok(Value::Array(elements)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let path = self.path.field(&name);
            let value = access.next_value_seed(Node { path: &path, depth: self.depth + 1, strict: self.strict })?;
            match fields.entry(name) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                serde_json::map::Entry::Occupied(mut entry) => {
                    let complaint = format!("duplicate field {}", quote(&self.path.field(entry.key()).dotted()));
                    if !self.strict.contains(&complaint) {
                        self.strict.push(complaint);
                    }
                    entry.insert(value);
                }
            }
        }
        Ok(Value::Object(fields))
    }
}

/// A syntax error as Go's JSON decoder words it.
fn go_words(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let message = error.to_string();
    let place = [
        ("key must be a string", "looking for beginning of object key string"),
        ("trailing comma", "looking for beginning of object key string"),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("trailing characters", "after top-level value"),
        ("expected value", "looking for beginning of value"),
        ("invalid number", "in numeric literal"),
        ("control character", "in string literal"),
        ("invalid escape", "in string escape code"),
    ];
    if message.starts_with("recursion limit exceeded") {
        return "exceeded max depth".to_owned();
    }
    let found = place.iter().find(|(start, _)| message.starts_with(start));
    let line = bytes.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let offending = line.get(error.column().saturating_sub(1)..).and_then(|rest| {
        let end = rest.len().min(4);
        rest.get(..end)?.utf8_chunks().next()?.valid().chars().next()
    });
    match (found, offending) {
        // A comma before the end of a list: what was looked for is an element.
        (Some(("trailing comma", _)), Some(']')) => "invalid character ']' looking for beginning of value".to_owned(),
        (Some((_, place)), Some(character)) => {
            let shown = match character {
                '\'' => "\\'".to_owned(),
                '"' => "\"".to_owned(),
                other => other.escape_debug().to_string(),
            };
            format!("invalid character '{shown}' {place}")
        }
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json as value;

    use super::{json, yaml};

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        assert_eq!(json(text.as_bytes()), Err(expected.to_owned()), "{text}");
    }

    #[test]
    fn json_is_read_as_it_is() {
        let text = r#"{"b": [1, -2, 2.5, 18446744073709551615, null, true], "a": {"c": "\u00e4"}}"#;
        let expected = value!({"a": {"c": "\u{e4}"}, "b": [1, -2, 2.5, 18_446_744_073_709_551_615_u64, null, true]});
        assert_eq!(json(text.as_bytes()), Ok((expected, Vec::new())));
    }

    #[test]
    fn keys_that_stand_twice_are_named_and_the_last_counts() {
        let text = r#"{"spec": {"l": [{"x": 1, "x": 2, "x": 3}], "r": 1}, "m": 1, "m": 2}"#;
        let (read, strict) = json(text.as_bytes()).unwrap();
        assert_eq!(read, value!({"spec": {"l": [{"x": 3}], "r": 1}, "m": 2}));
        assert_eq!(strict, ["duplicate field \"spec.l[0].x\"", "duplicate field \"m\""]);
    }

    #[test]
    fn a_refusal_has_the_words_of_go() {
        check_refused("", "unexpected end of JSON input");
        check_refused(r#"{"apiVersion":"v1","#, "unexpected end of JSON input");
        check_refused(r#"{"apiVersion":"v1",}"#, "invalid character '}' looking for beginning of object key string");
        check_refused(r#"{"apiVersion":"v1" "kind":"X"}"#, "invalid character '\"' after object key:value pair");
        check_refused("hello", "invalid character 'h' looking for beginning of value");
        check_refused("[1 2]", "invalid character '2' after array element");
        check_refused("[1,]", "invalid character ']' looking for beginning of value");
        check_refused(r#"{"a" 1}"#, "invalid character '1' after object key");
        check_refused("{}\n x", "invalid character 'x' after top-level value");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = "[".repeat(100_000);
        assert_eq!(json(deep.as_bytes()), Err("exceeded max depth".to_owned()));
        for depth in [10, 100, 127] {
            let flow = "[".repeat(depth) + &"]".repeat(depth);
            assert!(json(flow.as_bytes()).is_ok(), "{depth}");
            assert!(yaml(flow.as_bytes()).is_ok(), "{depth}");
        }
        for depth in [130, 200, 300, 1_000] {
            let flow = "[".repeat(depth) + &"]".repeat(depth);
            assert_eq!(json(flow.as_bytes()), Err("exceeded max depth".to_owned()));
            assert!(yaml(flow.as_bytes()).is_err(), "{depth}");
            assert!(yaml("- ".repeat(depth).as_bytes()).is_err(), "{depth}");
            let block: Vec<String> = (0..depth).map(|depth| " ".repeat(depth) + "a:\n").collect();
            let block = block.concat();
            assert!(yaml(block.as_bytes()).is_err(), "{depth}");
            let aliases: Vec<String> = (1..depth).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)).collect();
            assert!(yaml(format!("a0: &a0 x\n{}", aliases.concat()).as_bytes()).is_err(), "{depth}");
        }
    }

    #[test]
    fn yaml_is_read_like_json() {
        let text = "a: 1\nb: [x, 'y', 2.5, true, null]\nc:\n  d: 2024-01-01\n  mode: 0644\n";
        let expected = value!({"a": 1, "b": ["x", "y", 2.5, true, null], "c": {"d": "2024-01-01", "mode": 420}});
        assert_eq!(yaml(text.as_bytes()), Ok((expected, Vec::new())));
        let (read, strict) = yaml(b"a: 1\nb: 2\na: 3\n").unwrap();
        assert_eq!(read, value!({"a": 3, "b": 2}));
        assert_eq!(strict, ["yaml: unmarshal errors:\n  line 3: key \"a\" already set in map"]);
        assert!(yaml(b"a: [").unwrap_err().starts_with("yaml: "));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            lines.push(format!("a{level}: &a{level} [{aliases}]"));
        }
        assert!(yaml(lines.join("\n").as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn reading_agrees_with_serde(bytes in proptest::collection::vec(any::<u8>(), 0..40), text in r#"[{}\[\]":,a0-9 tfn.e-]{0,40}"#) {
            for input in [bytes.as_slice(), text.as_bytes()] {
                let ours = json(input).map(|(value, _)| value).ok();
                prop_assert_eq!(ours, serde_json::from_slice(input).ok());
                let _survives = yaml(input).is_ok();
            }
        }
    }
}
