//! One object as a copy of another.

use serde_json::{Map, Value, json};
use windlass_api::label;

/// Labels and annotations that say whose the source is, and are not true of a copy: with those of kapp, a package would take the
/// copy for its own and remove it.
const NOT_COPIED: [&str; 2] = ["kapp.k14s.io/", "kubectl.kubernetes.io/"];

/// The copy of an object: without owners, and with its namespace where the source has its own.
pub(super) fn copy(source: &Value, from: &str, to: &str) -> Value {
    let kept = |part: &str| -> Map<String, Value> {
        let all = source["metadata"][part].as_object().cloned().unwrap_or_default();
        all.into_iter().filter(|(key, _)| !NOT_COPIED.iter().any(|prefix| key.starts_with(prefix))).collect()
    };
    let mut labels = kept("labels");
    labels.insert(label::COPIED_FROM.name.to_owned(), from.into());
    let mut spec = source["spec"].clone();
    renamed(&mut spec, from, to);
    json!({
        "apiVersion": source["apiVersion"],
        "kind": source["kind"],
        "metadata": {
            "name": source["metadata"]["name"], "namespace": to, "labels": labels, "annotations": kept("annotations"),
        },
        "spec": spec,
    })
}

/// Puts another namespace wherever a field of that name has the source's. Other texts may mean it as it is.
fn renamed(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "namespace" && *field == from {
                    *field = to.into();
                } else {
                    renamed(field, from, to);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| renamed(item, from, to)),
        _ => {}
    }
}

/// The merge patch that makes a live object what it should be; nothing if it is. Labels and annotations of others stay.
pub(super) fn change(live: &Value, wanted: &Value) -> Option<Value> {
    let mut patch = Map::new();
    let mut metadata = Map::new();
    for part in ["labels", "annotations"] {
        let wanted = wanted["metadata"][part].as_object().into_iter().flatten();
        let differs = wanted.filter(|(key, value)| live["metadata"][part].get(key.as_str()) != Some(value));
        let differs: Map<String, Value> = differs.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !differs.is_empty() {
            metadata.insert(part.to_owned(), differs.into());
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    if let Some(spec) = difference(&live["spec"], &wanted["spec"]) {
        patch.insert("spec".to_owned(), spec);
    }
    (!patch.is_empty()).then(|| patch.into())
}

/// The merge patch that makes one value of another; nothing if they are equal.
fn difference(live: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (live, wanted) else {
        return (live != wanted).then(|| wanted.clone());
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let other = after.iter().filter_map(|(key, value)| {
        let found = before.get(key).unwrap_or(&Value::Null);
        Some((key.clone(), difference(found, value)?))
    });
    let patch: Map<String, Value> = gone.chain(other).collect();
    (!patch.is_empty()).then(|| patch.into())
}
