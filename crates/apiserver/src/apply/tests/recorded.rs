//! Sequences of writes with the answers of kube-apiserver v1.36.3: ours must be the same, managers to the byte.

use serde_json::{Value, json};

use super::schema;
use crate::apply::{Request, apply, keep_times, managed_fields, put_managed_fields, take_managed_fields, update};
use crate::schema::Schema;
use crate::status::ApiError;

/// One recorded kind: its schema, what its endpoints reset, and the sequences.
struct Recording<'a> {
    schema: Schema,
    source: &'a Value,
}

#[test]
fn writes_to_custom_resources_are_tracked_as_by_a_real_server() {
    replay(include_str!("../recorded/custom.json"));
}

#[test]
fn writes_to_built_in_kinds_are_tracked_as_by_a_real_server() {
    replay(include_str!("../recorded/builtin.json"));
}

#[test]
fn new_objects_of_built_in_kinds_start_with_what_their_structs_always_have() {
    replay(include_str!("../recorded/kinds.json"));
}

fn replay(text: &str) {
    let recordings: Value = serde_json::from_str(text).unwrap();
    let mut steps = 0;
    for source in recordings.as_array().unwrap() {
        let recording = Recording { schema: schema(&source["schema"]), source };
        for sequence in source["sequences"].as_array().unwrap() {
            steps += recording.sequence(sequence);
        }
    }
    assert!(steps > 20, "only {steps} steps were recorded");
}

impl Recording<'_> {
    fn sequence(&self, sequence: &Value) -> usize {
        let mut live: Option<&Value> = None;
        let steps = sequence["steps"].as_array().unwrap();
        for (i, step) in steps.iter().enumerate() {
            let what = format!("{} step {i}", sequence["name"]);
            let subresource = step["subresource"].as_str().unwrap_or_default();
            let reset: Vec<Vec<String>> = serde_json::from_value(self.source["reset"][subresource].clone()).unwrap();
            let reset: Vec<Vec<&str>> = reset.iter().map(|path| path.iter().map(String::as_str).collect()).collect();
            let reset: Vec<&[&str]> = reset.iter().map(Vec::as_slice).collect();
            let req = Request {
                schema: &self.schema,
                kind: sequence["kind"].as_str().unwrap(),
                api_version: sequence["apiVersion"].as_str().unwrap(),
                manager: step["manager"].as_str().unwrap(),
                subresource,
                now: latest_time(&step["result"]),
                reset: &reset,
            };
            match step["op"].as_str().unwrap() {
                "apply" => check_apply(&what, &req, live, step),
                _ => check_update(&what, &req, live, step),
            }
            live = step.get("result").or(live);
        }
        steps.len()
    }
}

/// Every step was recorded in a second of its own, so the latest time in its answer is its own, if it changed anything.
fn latest_time(result: &Value) -> jiff::Timestamp {
    let times = managed_fields(result).unwrap_or_default().iter().filter_map(|entry| entry["time"].as_str());
    times.max().unwrap_or("2026-01-01T00:00:00Z").parse().unwrap()
}

fn check_update(what: &str, req: &Request<'_>, live: Option<&Value>, step: &Value) {
    let Some(expected) = step.get("result") else { return };
    let mut after = expected.clone();
    take_managed_fields(&mut after);
    let sent = match step.get("sent") {
        Some(Value::String(_)) => live.and_then(|live| live["metadata"].get("managedFields")),
        other => other,
    };
    put_managed_fields(&mut after, sent.cloned());
    if req.kind == "Service" && live.is_none() {
        after["spec"].as_object_mut().unwrap().retain(|key, _| !ALLOCATED.contains(&key.as_str()));
    }
    update(req, live, &mut after);
    for key in ALLOCATED.iter().filter(|_| req.kind == "Service") {
        after["spec"][key] = expected["spec"][key].clone();
    }
    assert_same(what, &after, expected);
}

fn check_apply(what: &str, req: &Request<'_>, live: Option<&Value>, step: &Value) {
    let force = step["force"].as_bool().unwrap_or_default();
    let outcome = apply(req, live, step["config"].clone(), force);
    match (outcome, step.get("result")) {
        (Ok(mut ours), Some(expected)) => {
            finish(&mut ours, expected, req.subresource);
            if let Some(live) = live {
                keep_times(live, &mut ours);
            }
            assert_same(what, &ours, expected);
        }
        (Err(error), None) => {
            let status = in_order(ApiError::from(error).to_value());
            let expected = in_order(step["error"].clone());
            for key in ["code", "message", "reason", "details"] {
                assert_eq!(status.get(key), expected.get(key), "{what}: {key}");
            }
        }
        // Validation comes later.
        (Ok(_), None) => assert_eq!(step["error"]["code"], 422, "{what}: {}", step["error"]),
        (Err(error), Some(_)) => panic!("{what}: {error}"),
    }
}

/// A real server lists the owners in any order.
fn in_order(mut status: Value) -> Value {
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(ToString::to_string);
    }
    status
}

/// Does what the server does to an object after the apply: defaults, and fields that the server or the endpoint decides.
fn finish(ours: &mut Value, expected: &Value, subresource: &str) {
    for port in ours.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            port.entry("protocol").or_insert_with(|| json!("TCP"));
        }
    }
    let managers = take_managed_fields(ours);
    let mut finished = expected.clone();
    take_managed_fields(&mut finished);
    // The defaults of built-in kinds are not tested here: theirs are taken from the answer.
    match (expected["kind"].as_str().unwrap(), subresource) {
        ("Widget", "status") => finished["status"] = ours["status"].take(),
        ("Widget", _) => {
            finished["spec"] = ours["spec"].take();
            for key in ["labels", "annotations", "finalizers"] {
                finished["metadata"].as_object_mut().unwrap().remove(key);
                finished["metadata"][key] = ours["metadata"][key].take();
            }
            // Metadata goes through a Go struct, which does not keep what is empty.
            let empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
            for pointer in ["/metadata", "/spec/template/metadata"] {
                if let Some(metadata) = finished.pointer_mut(pointer).and_then(Value::as_object_mut) {
                    metadata.retain(|_, value| !empty(value));
                }
            }
        }
        ("ConfigMap", _) => {
            finished["data"] = ours["data"].take();
            for value in finished["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
                // So does the data, which are strings there.
                if value.is_null() {
                    *value = json!("");
                }
            }
        }
        _ => {}
    }
    finished.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    *ours = finished;
    put_managed_fields(ours, managers.map(Value::Array));
}

/// What the server fills in after it has recorded who wrote what.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

fn assert_same(what: &str, ours: &Value, expected: &Value) {
    let managers = |object: &Value| {
        let lines: Vec<String> = managed_fields(object).unwrap_or_default().iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let (ours_text, expected_text) = (managers(ours), managers(expected));
    assert!(ours_text == expected_text, "{what}: managers\nours:\n{ours_text}\nexpected:\n{expected_text}");
    for key in ["spec", "data", "metadata", "status"] {
        assert_eq!(ours.get(key), expected.get(key), "{what}: {key}");
    }
}
