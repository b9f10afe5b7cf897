//! In which version of its kind an object was written, and by whom: that much is kept of what programs leave on it.

use serde_json::{Map, Value, json};

use crate::snapshot::MANIFESTS;

/// Where programs keep a copy of all that they applied, besides the manifests: packed, so that nothing of it can be kept.
const COPIES: [&str; 1] = ["objectset.rio.cattle.io/applied"];
/// What is kept of an entry of `managedFields`: all but the fields, whose names may be keys of Secrets.
const KEPT: [&str; 5] = ["manager", "operation", "apiVersion", "time", "subresource"];

/// Leaves of manifests and managed fields what they say about the object as a whole.
pub(super) fn shorten(object: &mut Value) {
    let own = [&object["kind"], &object["metadata"]["name"]].map(Value::clone);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|name, _| !COPIES.contains(&name.as_str()));
        for name in MANIFESTS {
            if let Some(manifest) = annotations.remove(name).and_then(|text| kept(&text, &own)) {
                annotations.insert(name.to_owned(), manifest);
            }
        }
    }
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.retain(|field, value| KEPT.contains(&field.as_str()) && value.is_string());
        }
    }
}

/// The version, kind and name of a manifest, where they are those of an object and it is this one.
fn kept(text: &Value, [kind, name]: &[Value; 2]) -> Option<Value> {
    let manifest: Map<String, Value> = serde_json::from_str(text.as_str()?).ok()?;
    let api_version = manifest.get("apiVersion")?.as_str().filter(|version| is_api_version(version))?;
    if manifest.get("kind")? != kind || manifest.get("metadata")?.get("name")? != name {
        return None;
    }
    Some(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}).to_string().into())
}

/// Whether a text is a version of kinds: `v1`, `batch/v1beta1`. Nothing else is let through.
fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    let is_group = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || ".-".contains(sign);
    let digits = |text: &str| !text.is_empty() && text.len() <= 3 && text.chars().all(|sign| sign.is_ascii_digit());
    let is_version = version.strip_prefix('v').is_some_and(|rest| {
        ["alpha", "beta"]
            .iter()
            .find_map(|stage| rest.split_once(stage))
            .map_or_else(|| digits(rest), |(major, minor)| digits(major) && digits(minor))
    });
    is_version && group.chars().all(is_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_are_taken_for_versions() {
        let check = |text: &str, expected: bool| assert_eq!(is_api_version(text), expected, "{text}");
        check("v1", true);
        check("batch/v1beta1", true);
        check("networking.k8s.io/v1", true);
        check("hunter2", false);
        check("batch/hunter2", false);
        check("v", false);
        check("v1beta", false);
        check("a b/v1", false);
    }

    #[test]
    fn of_a_manifest_its_version_is_left_and_of_managed_fields_who_wrote_when() {
        let object = |manifest: &str, entry: Value| {
            json!({"kind": "CronJob", "metadata": {"name": "nightly",
                "annotations": {MANIFESTS[0]: manifest, "other": "kept"}, "managedFields": [entry]}})
        };
        let manifest = json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "spec": {"password": "x"},
            "metadata": {"name": "nightly", "annotations": {"a": "secret"}}});
        let entry = json!({"manager": "helm", "operation": "Update", "apiVersion": "batch/v1beta1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:db-of-x": {}}}});
        let mut found = object(&manifest.to_string(), entry);
        shorten(&mut found);
        let left = r#"{"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"nightly"}}"#;
        let who = json!({"manager": "helm", "operation": "Update", "apiVersion": "batch/v1beta1",
            "time": "2026-01-01T00:00:00Z"});
        assert_eq!(found, object(left, who));
    }

    #[test]
    fn a_manifest_of_something_else_is_left_out() {
        let check = |manifest: Value| {
            let annotations = json!({MANIFESTS[0]: manifest.to_string()});
            let mut object = json!({"kind": "CronJob", "metadata": {"name": "nightly", "annotations": annotations}});
            shorten(&mut object);
            assert_eq!(object["metadata"]["annotations"], json!({}), "{manifest}");
        };
        check(json!("hunter2"));
        check(json!({"apiVersion": "hunter2", "kind": "CronJob", "metadata": {"name": "nightly"}}));
        check(json!({"apiVersion": "batch/v1", "kind": "hunter2", "metadata": {"name": "nightly"}}));
        check(json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hunter2"}}));
    }
}
