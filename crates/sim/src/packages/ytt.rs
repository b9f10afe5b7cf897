//! How the files of a package become objects: plain YAML, and as much of ytt as packages need to take their values.
//!
//! A document that begins with `#@data/values` or `#@data/values-schema` says which values there are, and what they are unless
//! somebody says otherwise; `key: #@ data.values.path` puts a value into an object. Everything else that ytt can do is a
//! language of its own, and refused by name: a World that guessed would be worse than one that says so.

use serde_json::Value;

/// Files that cannot be rendered, as ytt would say it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("ytt: Error: {0}")]
pub(super) struct YttError(String);

/// Where a document is said to be one of values.
const VALUES: [&str; 2] = ["#@data/values", "#@data/values-schema"];
/// What a value is put in by.
const PLACE: &str = "#@ data.values.";

/// The objects in files, with these values, of which later ones win.
pub(super) fn render(files: &[(String, String)], given: &[Value]) -> Result<Vec<Value>, YttError> {
    let documents: Vec<(&str, Vec<&str>)> =
        files.iter().flat_map(|(path, text)| split(text).into_iter().map(|lines| (path.as_str(), lines))).collect();
    let (declared, templates): (Vec<_>, Vec<_>) = documents.into_iter().partition(|(_, lines)| is_values(lines));
    let mut values = Value::Object(serde_json::Map::new());
    for (path, lines) in &declared {
        merge(&mut values, parse(path, &lines.join("\n"))?);
    }
    let schema = values.clone();
    for value in given {
        declares(&schema, value, "")?;
        merge(&mut values, value.clone());
    }
    let mut objects = Vec::new();
    for (path, lines) in templates {
        let text = filled(path, &lines, &values)?;
        match parse(path, &text)? {
            Value::Null => {}
            object => objects.push(object),
        }
    }
    Ok(objects)
}

/// The documents of a file, as lines.
fn split(text: &str) -> Vec<Vec<&str>> {
    let mut documents = vec![Vec::new()];
    for line in text.lines() {
        match (line.trim_end(), documents.last_mut()) {
            // What ytt says about a document stands before the dashes.
            ("---", Some(last)) if last.iter().all(|line: &&str| line.trim().is_empty() || line.starts_with('#')) => {}
            ("---", _) => documents.push(Vec::new()),
            (_, Some(last)) => {
                if VALUES.contains(&line.trim_end()) && !last.iter().all(|line| line.trim().is_empty()) {
                    documents.push(vec![line]);
                } else {
                    last.push(line);
                }
            }
            (_, None) => {}
        }
    }
    documents.retain(|lines| lines.iter().any(|line| !line.trim().is_empty()));
    documents
}

fn is_values(lines: &[&str]) -> bool {
    lines.iter().any(|line| VALUES.contains(&line.trim_end()))
}

/// A template with its values.
fn filled(path: &str, lines: &[&str], values: &Value) -> Result<String, YttError> {
    let fill = |(index, line): (usize, &&str)| {
        let Some(at) = line.find("#@") else { return Ok((*line).to_owned()) };
        let (before, code) = line.split_at(at);
        if code.starts_with("#@ load(") && before.trim().is_empty() {
            return Ok(String::new());
        }
        let place = code.strip_prefix(PLACE).map(str::trim).filter(|place| is_path(place));
        let place = place.filter(|_| before.trim_end().ends_with(':') || before.trim_end().ends_with('-'));
        let here = || format!("{path}:{}: {}", index + 1, code.trim());
        let place =
            place.ok_or_else(|| YttError(format!("{}: of ytt only 'key: {PLACE}path' is known to a World", here())))?;
        let mut value = values;
        for name in place.split('.') {
            value = value
                .get(name)
                .ok_or_else(|| YttError(format!("{}: struct has no .{name} field or method", here())))?;
        }
        Ok(format!("{before}{value}"))
    };
    Ok(lines.iter().enumerate().map(fill).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
    };
    text.split('.').all(is_name)
}

fn parse(path: &str, text: &str) -> Result<Value, YttError> {
    serde_saphyr::from_str(text).map_err(|error| YttError(format!("Unmarshaling YAML template '{path}': {error}")))
}

/// Whether all values are ones that the package has. What is nothing, or has no fields, may be given anything.
fn declares(schema: &Value, given: &Value, path: &str) -> Result<(), YttError> {
    let (Value::Object(schema), Value::Object(given)) = (schema, given) else { return Ok(()) };
    if schema.is_empty() && !path.is_empty() {
        return Ok(());
    }
    for (key, value) in given {
        let Some(known) = schema.get(key) else {
            let expected: Vec<&str> = schema.keys().map(String::as_str).collect();
            let found = format!("{path}{key}");
            return Err(YttError(format!(
                "One or more data values were invalid: found: {found}, expected: one of {}",
                expected.join(", ")
            )));
        };
        declares(known, value, &format!("{path}{key}."))?;
    }
    Ok(())
}

/// Puts values over others, map by map.
fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key).or_insert(Value::Null), value);
            }
        }
        // A file of values with nothing but comments in it.
        (Value::Object(_), Value::Null) => {}
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn files(text: &str) -> Vec<(String, String)> {
        vec![("config/all.yaml".to_owned(), text.to_owned())]
    }

    const PACKAGE: &str = "\
#@data/values-schema
---
zone: a
nodeSelector: {}
count: 1
---
#@ load(\"@ytt:data\", \"data\")
kind: A
spec:
  zone: #@ data.values.zone
  nodeSelector: #@ data.values.nodeSelector
---
kind: B
count: #@ data.values.count
list:
- #@ data.values.zone
";

    #[test]
    fn values_are_put_where_they_are_asked_for() {
        let given = [json!({"zone": "b"}), json!({"nodeSelector": {"a/b": "c"}}), Value::Null];
        let objects = render(&files(PACKAGE), &given).unwrap();
        assert_eq!(
            objects,
            [
                json!({"kind": "A", "spec": {"zone": "b", "nodeSelector": {"a/b": "c"}}}),
                json!({"kind": "B", "count": 1, "list": ["b"]}),
            ]
        );
    }

    #[test]
    fn values_that_nobody_gives_are_those_of_the_package() {
        let objects = render(&files(PACKAGE), &[]).unwrap();
        assert_eq!(objects[0], json!({"kind": "A", "spec": {"zone": "a", "nodeSelector": {}}}));
    }

    #[test]
    fn files_without_values_are_what_they_are() {
        let objects = render(&files("kind: A\n---\n\n---\nkind: B # a comment\n"), &[]).unwrap();
        assert_eq!(objects, [json!({"kind": "A"}), json!({"kind": "B"})]);
    }

    fn check_refused(text: &str, given: &Value, why: &str) {
        let error = render(&files(text), std::slice::from_ref(given)).unwrap_err().to_string();
        assert_eq!(error, format!("ytt: Error: {why}"));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        check_refused(
            "kind: A\n#@ if data.values.zone:\nzone: b\n#@ end\n",
            &json!({}),
            "config/all.yaml:2: #@ if data.values.zone:: of ytt only 'key: #@ data.values.path' is known to a World",
        );
        check_refused(
            "kind: #@ data.values.kind\n",
            &json!({}),
            "config/all.yaml:1: #@ data.values.kind: struct has no .kind field or method",
        );
        check_refused(
            PACKAGE,
            &json!({"region": "b"}),
            "One or more data values were invalid: found: region, expected: one of count, nodeSelector, zone",
        );
    }
}
