//! The table of built-in kinds against its schemas, and against what a kube-apiserver v1.36.3 stored and printed.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn every_row_has_a_schema_that_says_the_same_kind() {
    let schemas: Value = serde_json::from_str(OPENAPI).unwrap();
    for row in all() {
        let gvk = json!({ "group": row.group, "version": row.version, "kind": row.kind });
        assert_eq!(schemas[row.definition]["x-kubernetes-group-version-kind"], json!([gvk]), "{}", row.definition);
        let has_status = schemas[row.definition]["properties"].get("status").is_some();
        assert_eq!(row.status, has_status && row.verbs != Verbs::CreateOnly, "{}", row.plural);
        assert_eq!(row.singular, row.kind.to_lowercase());
    }
}

#[test]
fn no_two_rows_answer_to_the_same_name() {
    let mut seen = BTreeSet::new();
    for row in all() {
        for name in [row.plural, row.singular].iter().chain(row.short_names) {
            assert!(*name == row.plural && row.plural == row.singular || seen.insert((row.group, *name)), "{name}");
        }
    }
}

#[test]
fn the_schemas_refer_to_nothing_that_is_missing() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    match inner.as_str() {
                        Some(target) if key == "$ref" => {
                            found.insert(target.trim_start_matches("#/components/schemas/"));
                        }
                        _ => references(inner, found),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|inner| references(inner, found)),
            _ => {}
        }
    }
    let schemas: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut found = BTreeSet::new();
    references(&schemas, &mut found);
    assert!(found.len() > 300);
    for target in found {
        assert!(schemas.get(target).is_some(), "{target}");
    }
}

#[test]
fn a_row_has_a_cell_for_every_column() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    for row in all() {
        for object in [json!(null), json!({}), json!({ "metadata": [], "spec": 3, "status": "x" })] {
            assert_eq!((row.row)(&object, now).len(), row.columns.len(), "{} {object}", row.plural);
        }
    }
}

/// What a request sent and what the server stored, one on a line. Left out there: what depends on other objects (addresses
/// and ports of services), on controllers (finalizers and taints that one of them takes off), and on the request itself.
const CREATED: &str = include_str!("created.jsonl");

fn row_of(object: &Value) -> &'static Builtin {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let wanted = |row: &&Builtin| row.group == group && row.version == version && row.kind == object["kind"];
    all().iter().find(wanted).unwrap()
}

/// An object as the server takes it in before it looks at the kind.
fn received(sent: &Value) -> Value {
    let row = row_of(sent);
    let mut object = sent.clone();
    if row.status && !row.status_on_create {
        object.as_object_mut().unwrap().remove("status");
    }
    object["metadata"]["uid"] = "the-uid".into();
    object["metadata"]["creationTimestamp"] = "2026-11-15T09:00:00Z".into();
    if row.namespaced {
        object["metadata"]["namespace"] = "default".into();
    }
    object
}

#[test]
fn created_objects_are_stored_as_kubernetes_stores_them() {
    for line in CREATED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let row = row_of(&case["sent"]);
        let mut object = received(&case["sent"]);
        (row.default)(&mut object);
        (row.prepare)(&mut object, None);
        let (ours, theirs) =
            (serde_json::to_string_pretty(&object).unwrap(), serde_json::to_string_pretty(&case["stored"]).unwrap());
        let diff = similar::TextDiff::from_lines(&theirs, &ours);
        assert!(object == case["stored"], "{} {}\n{}", row.kind, case["sent"]["metadata"]["name"], diff.unified_diff());
    }
}

#[test]
fn an_unchanged_update_changes_nothing() {
    for line in CREATED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (row, stored) = (row_of(&case["sent"]), &case["stored"]);
        let mut object = stored.clone();
        (row.default)(&mut object);
        (row.prepare)(&mut object, Some(stored));
        assert_eq!(object, *stored, "{}", row.kind);
        assert!(!row.is_new_generation(&object, stored));
    }
}
