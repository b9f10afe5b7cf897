//! Label selectors in one line.

use serde_json::Value;

use super::{NONE, list, text};

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(map: &Value) -> String {
    let pairs: Vec<String> =
        map.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value))).collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// `a=b,c in (d,e),!f`, or `<none>`.
pub(super) fn selector(selector: &Value) -> String {
    match requirements(selector) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => NONE.to_owned(),
        Some(text) => text,
    }
}

/// The requirements in the order of their keys; `None` when one makes no sense.
pub(super) fn requirements(selector: &Value) -> Option<String> {
    let mut all: Vec<(&str, String)> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), format!("{key}={}", text(value))))
        .collect();
    for expression in list(&selector["matchExpressions"]) {
        let key = text(&expression["key"]);
        let mut values: Vec<&str> = list(&expression["values"]).iter().map(text).collect();
        values.sort_unstable();
        let written = match (text(&expression["operator"]), values.is_empty()) {
            ("In", false) => format!("{key} in ({})", values.join(",")),
            ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
            ("Exists", true) => key.to_owned(),
            ("DoesNotExist", true) => format!("!{key}"),
            _ => return None,
        };
        all.push((key, written));
    }
    all.sort_by_key(|(key, _)| *key);
    Some(all.into_iter().map(|(_, written)| written).collect::<Vec<_>>().join(","))
}
