//! Paths into an answer: `.metadata.labels["a/b"]`, `.items[0].spec`, `.items[].metadata.name`.

use serde_json::Value;

#[derive(Debug, PartialEq)]
enum Part {
    Key(String),
    Index(usize),
    Each,
}

/// The value at a path. With `[]` in it: the list of the values at its end, without those that are absent.
pub fn get(value: &Value, path: &str) -> Result<Option<Value>, String> {
    let parts = parse(path).ok_or_else(|| format!("not a path: {path:?}"))?;
    Ok(walk(value, &parts))
}

fn walk(value: &Value, parts: &[Part]) -> Option<Value> {
    let Some((first, rest)) = parts.split_first() else { return Some(value.clone()) };
    match first {
        Part::Key(key) => walk(value.get(key)?, rest),
        Part::Index(index) => walk(value.get(index)?, rest),
        Part::Each => Some(value.as_array()?.iter().filter_map(|item| walk(item, rest)).collect()),
    }
}

fn parse(path: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = path;
    if rest == "." {
        return Some(parts);
    }
    while !rest.is_empty() {
        if let Some(key) = rest.strip_prefix('.') {
            let end = key.find(['.', '[']).unwrap_or(key.len());
            parts.push(Part::Key(key.get(..end).filter(|key| !key.is_empty())?.to_owned()));
            rest = &key[end..];
        } else if let Some(quoted) = rest.strip_prefix("[\"") {
            let (key, after) = quoted.split_once("\"]")?;
            parts.push(Part::Key(key.to_owned()));
            rest = after;
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            parts.push(if index.is_empty() { Part::Each } else { Part::Index(index.parse().ok()?) });
            rest = after;
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_keys_indexes_and_lists() {
        let value = json!({"a": {"b/c": 1, "d": [{"e": 1}, {}, {"e": 3}]}});
        let check = |path: &str, expected: Option<Value>| assert_eq!(get(&value, path).unwrap(), expected, "{path}");
        check(".", Some(value.clone()));
        check(".a[\"b/c\"]", Some(json!(1)));
        check(".a.d[2].e", Some(json!(3)));
        check(".a.d[].e", Some(json!([1, 3])));
        check(".a.x", None);
        check(".a.d[7]", None);
        for wrong in ["a", "..", ".a[", ".a[x]"] {
            assert!(get(&value, wrong).is_err(), "{wrong}");
        }
    }
}
