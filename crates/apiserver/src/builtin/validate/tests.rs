//! What kube-apiserver v1.36.3 answered to each of these objects, and what we answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::meta;
use crate::status::ApiError;

/// One line each: the object as it is after defaulting, the stored object if it is an update, and the answer.
const ANSWERS: &str = include_str!("answers.jsonl");

const CLUSTER_SCOPED: [&str; 11] = [
    "Namespace",
    "Node",
    "PersistentVolume",
    "StorageClass",
    "VolumeAttachment",
    "ClusterRole",
    "ClusterRoleBinding",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "IngressClass",
];

fn answer(new: &Value, old: Option<&Value>, subresource: &str) -> String {
    let kind = new.text("kind");
    let group = new.text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let namespaced = !CLUSTER_SCOPED.contains(&kind);
    let rule = if old.is_some() { meta::NameRule::PathSegment } else { name_rule(group, kind) };
    let mut errors = meta::validate(new.at("metadata"), namespaced, rule);
    if let Some(old) = old {
        errors.extend(meta::validate_update(new.at("metadata"), old.at("metadata")));
    }
    let checks = if subresource == "status" { status::of(group, kind) } else { of(group, kind) };
    errors.extend(checks(new, old));
    if errors.is_empty() {
        return String::new();
    }
    // Events of both groups are one kind inside Kubernetes, and refusals name it.
    let group = if kind == "Event" { "" } else { group };
    ApiError::invalid(kind, group, new.at("metadata").text("name"), &errors).message
}

/// The answer without the differences between Go structs that Kubernetes prints line by line.
fn without_differences(answer: &str) -> String {
    let mut text = String::new();
    for line in answer.split_inclusive('\n') {
        let of_difference = [" ", "-", "+", "@@"].iter().any(|start| line.starts_with(start));
        if !of_difference && line != "\n" {
            text += line.trim_end();
        }
    }
    text
}

#[test]
fn kubernetes_says_the_same() {
    let mut differ = Vec::new();
    for line in ANSWERS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let ours = answer(case.at("new"), case.get("old"), case.text("subresource"));
        if without_differences(&ours) != without_differences(case.text("said")) {
            differ.push(format!("theirs: {}\n  ours: {ours}\n", case.text("said")));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), ANSWERS.lines().count(), differ.join("\n"));
}

#[test]
fn wrong_types_do_not_panic() {
    // Every value in a few objects of each kind is replaced by values of all types, one at a time.
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    for line in ANSWERS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let count = tried.entry(case.at("new").text("kind").to_owned()).or_default();
        *count += 1;
        if *count > 3 {
            continue;
        }
        for pointer in pointers(case.at("new")) {
            for wrong in [json!(null), json!([7, "x", {}]), json!({"a": []}), json!(""), json!(-1), json!(true)] {
                let mut object = case.at("new").clone();
                *object.pointer_mut(&pointer).unwrap() = wrong;
                let old = Some(case.at("new"));
                for said in [answer(&object, None, ""), answer(&object, old, ""), answer(&object, old, "status")] {
                    assert!(said.len() < 1_000_000);
                }
            }
        }
    }
}

fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    let mut all = vec![String::new()];
    for (step, child) in children {
        all.extend(pointers(child).into_iter().map(|rest| format!("/{step}{rest}")));
    }
    all
}
