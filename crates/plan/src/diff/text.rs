//! A difference as text, in the manner of `kubectl diff`: a unified diff of the object as YAML, as it is and as it would be.

use serde_json::Value;
use similar::TextDiff;

use super::ObjectDiff;

/// How many lines are shown around each change, as `diff -u` does.
const CONTEXT_LINES: usize = 3;

pub(super) fn unified(object: &ObjectDiff) -> String {
    let name = file_name(object);
    let [live, merged] = ["LIVE", "MERGED"].map(|side| format!("{side}/{name}"));
    let [before, after] = &object.sides;
    let [before, after] = [yaml(before.as_ref()), yaml(after.as_ref())];
    let lines = TextDiff::from_lines(&before, &after);
    let hunks = lines.unified_diff().context_radius(CONTEXT_LINES).header(&live, &merged).to_string();
    format!("diff -u -N {live} {merged}\n{hunks}")
}

/// `apps.v1.Deployment.kube-system.coredns`
fn file_name(object: &ObjectDiff) -> String {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    format!("{}.{}.{namespace}.{}", object.api_version.replace('/', "."), object.kind, object.name)
}

/// Keys are sorted: two spellings of the same object are the same text.
fn yaml(value: Option<&Value>) -> String {
    // A value that came from JSON is always YAML, too; one that is not shown shows nothing secret.
    value.map(|value| serde_saphyr::to_string(&sorted(value)).unwrap_or_default()).unwrap_or_default()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
