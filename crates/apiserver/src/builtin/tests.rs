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
const CREATED: &str = include_str!("recorded/created.jsonl");

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

/// Objects, a moment, and the cells that the server printed for them then.
const PRINTED: &str = include_str!("recorded/printed.jsonl");
/// The columns that the server printed for each kind: name, type, format and priority.
const COLUMNS: &str = include_str!("recorded/columns.jsonl");

#[test]
fn rows_are_printed_as_kubernetes_prints_them() {
    for line in PRINTED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let object = &case["object"];
        let cells = (row_of(object).row)(object, case["now"].as_str().unwrap().parse().unwrap());
        assert_eq!(Value::Array(cells), case["cells"], "{} {}", object["kind"], object["metadata"]["name"]);
    }
}

#[test]
fn columns_are_those_of_kubernetes() {
    for line in COLUMNS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let columns = row_of(&case).columns.iter();
        let ours: Value = columns.map(|it| json!([it.name, it.type_, it.format, it.priority])).collect();
        assert_eq!(ours, case["columns"], "{}", case["kind"]);
    }
}

/// Objects as stored, updates of them, and what became of them; and whether that was a new generation.
const UPDATED: &str = include_str!("recorded/updated.jsonl");

#[test]
fn updates_keep_what_kubernetes_keeps() {
    for line in UPDATED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (row, stored) = (row_of(&case["sent"]), &case["stored"]);
        let mut object = case["sent"].clone();
        for name in ["uid", "namespace"] {
            if let Some(value) = stored["metadata"].get(name) {
                object["metadata"][name] = value.clone();
            }
        }
        if row.status {
            object["status"] = stored["status"].clone();
        }
        (row.default)(&mut object);
        (row.prepare)(&mut object, Some(stored));
        assert_eq!(object, case["result"], "{}", row.kind);
        assert_eq!(row.is_new_generation(&object, stored), case["moved"] == true, "{}", row.kind);
    }
}

/// How the server lists the kinds in its discovery.
const DISCOVERED: &str = include_str!("recorded/discovered.jsonl");

#[test]
fn kinds_are_discovered_as_in_kubernetes() {
    let mut rows = all().len();
    for line in DISCOVERED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let row = row_of(&case);
        let names: Vec<&str> = [row.plural, row.singular].iter().chain(row.short_names).copied().collect();
        let verbs = match row.verbs {
            Verbs::All => "create delete deletecollection get list patch update watch",
            Verbs::AllButDeleteCollection => "create delete get list patch update watch",
            Verbs::CreateOnly => "create",
        };
        let ours = json!({
            "apiVersion": case["apiVersion"], "kind": row.kind, "names": names, "categories": row.categories,
            "namespaced": row.namespaced, "verbs": verbs, "status": row.status, "scale": row.scale,
        });
        assert_eq!(ours, case);
        rows -= 1;
    }
    assert_eq!(rows, 0);
}

/// Runs everything that a row does, on an object that may be anything.
fn exercise(row: &Builtin, object: &Value, old: &Value) {
    let mut changed = object.clone();
    (row.default)(&mut changed);
    (row.prepare)(&mut changed, Some(old));
    (row.prepare)(&mut changed, None);
    for object in [&changed, object] {
        assert_eq!((row.row)(object, jiff::Timestamp::MAX).len(), row.columns.len());
        for field in row.selectable_fields {
            selectable_text(object, field);
        }
    }
}

fn selectable_text(object: &Value, field: &str) -> String {
    Builtin::selectable_text(field, |path| path.split('.').fold(object, |value, name| &value[name]).clone())
}

/// Puts each of a few values in the place of each value in an object.
fn disturb(object: &mut Value, pointer: &str, check: &mut dyn FnMut(&Value)) {
    let keys: Vec<String> = match object.pointer(pointer) {
        Some(Value::Object(map)) => map.keys().map(|key| key.replace('~', "~0").replace('/', "~1")).collect(),
        Some(Value::Array(list)) => (0..list.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    };
    for key in keys {
        disturb(object, &format!("{pointer}/{key}"), check);
    }
    let odd =
        [json!(null), json!(true), json!(-1), json!(1e300), json!(""), json!("é"), json!([]), json!([[]]), json!({})];
    for value in odd {
        let place = object.pointer_mut(pointer).unwrap();
        let kept = std::mem::replace(place, value);
        check(object);
        *object.pointer_mut(pointer).unwrap() = kept;
    }
}

#[test]
fn odd_values_are_survived_everywhere() {
    for line in CREATED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (row, stored) = (row_of(&case["sent"]), &case["stored"]);
        disturb(&mut stored.clone(), "", &mut |object| exercise(row, object, object));
    }
    for line in PRINTED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let row = row_of(&case["object"]);
        disturb(&mut case["object"].clone(), "", &mut |object| exercise(row, object, object));
    }
}

#[test]
fn field_selectors_see_what_is_absent() {
    let check = |object: Value, field, expected| assert_eq!(selectable_text(&object, field), expected, "{field}");
    check(json!({}), "spec.unschedulable", "false");
    check(json!({ "spec": { "unschedulable": true } }), "spec.unschedulable", "true");
    check(json!({ "status": { "phase": "Running" } }), "status.phase", "Running");
    check(json!({}), "status.phase", "");
    check(json!({ "status": { "succeeded": 2 } }), "status.successful", "2");
    check(json!({}), "status.successful", "0");
    check(json!({ "reportingComponent": "a", "source": {} }), "source", "a");
    check(json!({ "reportingComponent": "a", "source": { "component": "b" } }), "source", "b");
}

#[test]
fn a_scale_shows_what_is_wanted_and_what_is_there() {
    let scale = json!({ "metadata": { "name": "web" }, "spec": { "replicas": 3 }, "status": { "replicas": 2 } });
    let cells = scale_row(&scale, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(cells, [json!("web"), json!(3), json!(2), json!("<unknown>")]);
    assert_eq!(cells.len(), SCALE_COLUMNS.len());
}
