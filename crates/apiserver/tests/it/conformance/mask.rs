//! Makes two runs of a case comparable: what differs by nature (uids, times, resource versions, generated names, the case's own namespace)
//! is replaced by a placeholder. Equal values get equal placeholders, so that "a no-op keeps the resource version" can be seen.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

static UID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// Times before 2020 are a test's own.
static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"20[2-9][0-9]-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z"));
/// Resource versions in messages.
static VERSION_IN_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?P<before>current: |resource version: [0-9]+ \(|in the precondition \(|in record \()[0-9]+")
});

/// A refused patch quotes the whole object in Go's words.
static QUOTED_OBJECT: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"Invalid value: "(\{\\"apiVersion.*\}|map\[.*\])": "#));

static HASH: LazyLock<Regex> = LazyLock::new(|| regex("hash=[0-9A-Fa-f]+"));

/// The placeholders of one case.
#[derive(Default)]
pub struct Mask {
    literals: Vec<(String, String)>,
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
    generated: usize,
}

impl Mask {
    /// Shows `actual` as `shown` from now on.
    pub fn literal(&mut self, actual: &str, shown: &str) {
        if !self.literals.iter().any(|(known, _)| known == actual) {
            self.literals.push((actual.to_owned(), shown.to_owned()));
        }
    }

    /// Replaces what differs between runs.
    pub fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        self.generated_name(map);
        ages(map);
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
        if (kind.ends_with("List") && map.contains_key("items")) || kind == "Table" || is_bookmark(map) {
            list_version(map);
        }
        for (key, mut value) in std::mem::take(map) {
            match (key.as_str(), value.as_str()) {
                ("resourceVersion", Some(version)) if !matches!(version, "" | "0" | "<rv>") => {
                    let next = self.versions.len() + 1;
                    let number = self.versions.entry(version.to_owned()).or_insert(next);
                    value = format!("<rv:{number}>").into();
                }
                ("continue", Some(token)) if !token.is_empty() => value = "<continue>".into(),
                ("storageVersionHash", Some(_)) => value = "<hash>".into(),
                _ => self.value(&mut value),
            }
            map.insert(self.text(&key), value);
        }
    }

    fn generated_name(&mut self, map: &Map<String, Value>) {
        let Some(meta) = map.get("metadata") else { return };
        let (Some(prefix), Some(name)) = (meta["generateName"].as_str(), meta["name"].as_str()) else { return };
        // A long prefix is cut before the five characters are added.
        let kept = &name[..name.len().saturating_sub(5)];
        if prefix.starts_with(kept) && !kept.is_empty() && name != prefix && !self.literals.iter().any(|l| l.0 == name)
        {
            self.generated += 1;
            let shown = format!("{kept}<generated:{}>", self.generated);
            self.literal(name, &shown);
        }
    }

    /// Replaces what differs between runs inside a string.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (actual, shown) in &self.literals {
            if text.contains(actual.as_str()) {
                text = text.replace(actual.as_str(), shown);
            }
        }
        let uids = &mut self.uids;
        let text = UID.replace_all(&text, |found: &Captures<'_>| {
            let next = uids.len() + 1;
            format!("<uid:{}>", uids.entry(found[0].to_owned()).or_insert(next))
        });
        let text = TIME.replace_all(
            &text,
            |found: &Captures<'_>| {
                if found.get(1).is_some() { "<microtime>" } else { "<time>" }
            },
        );
        let text = HASH.replace_all(&text, "hash=<hash>");
        let text = QUOTED_OBJECT.replace_all(&text, "Invalid value: \"<object>\": ");
        VERSION_IN_TEXT.replace_all(&text, "${before}<rv>").into_owned()
    }
}

/// A bookmark has a kind and a version and no name.
fn is_bookmark(map: &Map<String, Value>) -> bool {
    map.contains_key("kind") && map.get("metadata").is_some_and(|meta| meta.get("name").is_none())
}

/// A list's own version moves with every write to the server, also by other cases.
fn list_version(map: &mut Map<String, Value>) {
    if let Some(version) = map.get_mut("metadata").and_then(|meta| meta.get_mut("resourceVersion"))
        && version.as_str().is_some_and(|version| !version.is_empty() && version != "0")
    {
        *version = "<rv>".into();
    }
}

/// A table says how old things are. In a watch only the first one has columns.
fn ages(map: &mut Map<String, Value>) {
    if map.get("kind").is_none_or(|kind| kind != "Table") {
        return;
    }
    for row in map.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            let seconds = cell.as_str().and_then(|age| age.strip_suffix('s'));
            if seconds.is_some_and(|seconds| seconds.parse::<u8>().is_ok()) {
                *cell = "<age>".into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut value: Value, expected: &Value) {
        let mut mask = Mask::default();
        mask.literal("case-001", "$NS");
        mask.value(&mut value);
        assert_eq!(&value, expected);
    }

    #[test]
    fn equal_values_get_equal_placeholders() {
        check(
            json!([{"resourceVersion": "7"}, {"resourceVersion": "9"}, {"resourceVersion": "7"}, {"resourceVersion": "0"}]),
            &json!([{"resourceVersion": "<rv:1>"}, {"resourceVersion": "<rv:2>"}, {"resourceVersion": "<rv:1>"}, {"resourceVersion": "0"}]),
        );
        let (one, two) = ("0a0a0a0a-0000-4000-8000-000000000001", "0a0a0a0a-0000-4000-8000-000000000002");
        check(
            json!({"a": one, "b": two, "c": format!("uid {one}")}),
            &json!({"a": "<uid:1>", "b": "<uid:2>", "c": "uid <uid:1>"}),
        );
    }

    #[test]
    fn keys_and_messages_are_masked_too() {
        let uid = "0a0a0a0a-0000-4000-8000-000000000001";
        check(
            json!({"f:owners": {format!("k:{{\"uid\":\"{uid}\"}}"): 1}}),
            &json!({"f:owners": {"k:{\"uid\":\"<uid:1>\"}": 1}}),
        );
        check(
            json!("Too large resource version: 99, current: 12"),
            &json!("Too large resource version: 99, current: <rv>"),
        );
        check(json!("pods \"a\" in case-001"), &json!("pods \"a\" in $NS"));
    }

    #[test]
    fn an_object_in_a_message_is_masked() {
        let message =
            r#"patch: Invalid value: "{\"apiVersion\":\"v1\",\"x\":{}}": strict decoding error: unknown field "x""#;
        let expected = r#"patch: Invalid value: "<object>": strict decoding error: unknown field "x""#;
        check(json!(message), &json!(expected));
    }

    #[test]
    fn times_of_the_run_are_masked_and_times_of_the_test_are_not() {
        check(
            json!(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000001Z", "2001-01-01T00:00:00Z"]),
            &json!(["<time>", "<microtime>", "2001-01-01T00:00:00Z"]),
        );
    }

    #[test]
    fn a_list_has_a_version_of_its_own() {
        check(
            json!({"kind": "PodList", "metadata": {"resourceVersion": "5", "continue": "x"}, "items": [{"metadata": {"resourceVersion": "5"}}]}),
            &json!({"kind": "PodList", "metadata": {"resourceVersion": "<rv>", "continue": "<continue>"}, "items": [{"metadata": {"resourceVersion": "<rv:1>"}}]}),
        );
    }

    #[test]
    fn a_generated_name_is_known_again() {
        let mut mask = Mask::default();
        mask.value(&mut json!({"metadata": {"generateName": "web-", "name": "web-x7k2p"}}));
        assert_eq!(mask.text("pods \"web-x7k2p\" not found"), "pods \"web-<generated:1>\" not found");
    }
}
