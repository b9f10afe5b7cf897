//! Pods that are up to date stay so in a World.
//!
//! The controllers of a workload cluster know by a hash which pods are of the newest template. A World has a hash of its own, and a
//! template without what is secret has another: without this, a rehearsal would begin with a roll of everything that runs.
//! What is in the middle of a roll is left as it is, and begins it anew.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_sim::workload::template_hash;

use crate::snapshot::place;

const TEMPLATE_HASH: &str = "pod-template-hash";
const REVISION_HASH: &str = "controller-revision-hash";

/// Gives the newest templates, and what is of them, the hashes that a World has for them.
pub(super) fn align(objects: &mut [Value]) {
    let by_owner = by_owner(objects);
    let owned = |objects: &[Value], owner: usize, kind: &str| -> Vec<usize> {
        let uid = text(&objects[owner]["metadata"]["uid"]);
        let all = by_owner.get(uid).cloned().unwrap_or_default();
        all.into_iter().filter(|index| objects[*index]["kind"] == kind).collect()
    };
    for owner in 0..objects.len() {
        let [group, kind, _, name] = place(&objects[owner]);
        if group != "apps" {
            continue;
        }
        let hash = template_hash(&objects[owner]["spec"]["template"]);
        match kind {
            "Deployment" => {
                let (set_name, sets) = (format!("{name}-{hash}"), owned(objects, owner, "ReplicaSet"));
                let newest = sets.into_iter().find(|set| same_template(&objects[owner], &objects[*set]));
                let Some(set) = newest.filter(|set| objects[*set]["metadata"]["name"] != *set_name) else { continue };
                let pods = owned(objects, set, "Pod");
                rename_set(&mut objects[set], &set_name, &hash);
                for pod in pods {
                    label(&mut objects[pod], TEMPLATE_HASH, &hash);
                    rename_owner(&mut objects[pod], &set_name);
                }
            }
            "DaemonSet" if is_at_rest(&objects[owner], "updatedNumberScheduled", "desiredNumberScheduled") => {
                for pod in owned(objects, owner, "Pod") {
                    label(&mut objects[pod], REVISION_HASH, &hash);
                }
            }
            "StatefulSet" if is_at_rest(&objects[owner], "currentRevision", "updateRevision") => {
                let revision = format!("{name}-{hash}");
                for pod in owned(objects, owner, "Pod") {
                    label(&mut objects[pod], REVISION_HASH, &revision);
                }
                for field in ["currentRevision", "updateRevision"] {
                    objects[owner]["status"][field] = revision.as_str().into();
                }
            }
            _ => {}
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where the objects are that have a controller, by its uid.
fn by_owner(objects: &[Value]) -> BTreeMap<String, Vec<usize>> {
    let mut by_owner: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        if let Some(owner) = owners.into_iter().find(|owner| owner["controller"] == true) {
            by_owner.entry(text(&owner["uid"]).to_owned()).or_default().push(index);
        }
    }
    by_owner
}

/// Whether a set is of the template that its deployment has now, by which Kubernetes knows it, too.
fn same_template(deployment: &Value, set: &Value) -> bool {
    let mut template = set["spec"]["template"].clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(TEMPLATE_HASH);
    }
    template == deployment["spec"]["template"]
}

/// Whether all pods are of the newest template, as the controller has seen it.
fn is_at_rest(set: &Value, has: &str, wanted: &str) -> bool {
    let status = &set["status"];
    let seen = status["observedGeneration"] == set["metadata"]["generation"];
    seen && !status[wanted].is_null() && status[has] == status[wanted]
}

fn label(object: &mut Value, key: &str, value: &str) {
    if object["metadata"]["labels"].is_object() {
        object["metadata"]["labels"][key] = value.into();
    }
}

fn rename_set(set: &mut Value, name: &str, hash: &str) {
    set["metadata"]["name"] = name.into();
    label(set, TEMPLATE_HASH, hash);
    label(&mut set["spec"]["template"], TEMPLATE_HASH, hash);
    if set["spec"]["selector"]["matchLabels"].is_object() {
        set["spec"]["selector"]["matchLabels"][TEMPLATE_HASH] = hash.into();
    }
}

fn rename_owner(pod: &mut Value, name: &str) {
    let owners = pod["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
    for owner in owners.filter(|owner| owner["controller"] == true) {
        owner["name"] = name.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, owner: &str, labels: &Value) -> Value {
        let owners = json!([{"kind": "Any", "name": owner, "uid": owner, "controller": true}]);
        let group = if kind == "Pod" { "v1" } else { "apps/v1" };
        let metadata = json!({"name": name, "uid": name, "generation": 1, "labels": labels, "ownerReferences": owners});
        json!({"apiVersion": group, "kind": kind, "metadata": metadata})
    }

    #[test]
    fn pods_that_are_up_to_date_have_the_hashes_of_a_world() {
        let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {}});
        let hash = template_hash(&template);
        let mut deployment = object("Deployment", "a", "", &json!({}));
        deployment["spec"]["template"] = template.clone();
        let mut set = object("ReplicaSet", "a-real", "a", &json!({"app": "a", TEMPLATE_HASH: "real"}));
        set["spec"] = json!({"selector": {"matchLabels": {"app": "a", TEMPLATE_HASH: "real"}}, "template": template});
        set["spec"]["template"]["metadata"]["labels"][TEMPLATE_HASH] = "real".into();
        let mut older = set.clone();
        older["metadata"]["name"] = "a-older".into();
        older["spec"]["template"]["spec"]["x"] = 1.into();
        let pod = object("Pod", "p", "a-real", &json!({TEMPLATE_HASH: "real"}));
        let mut daemons = object("DaemonSet", "d", "", &json!({}));
        daemons["spec"]["template"] = template;
        daemons["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1});
        let daemon = object("Pod", "q", "d", &json!({REVISION_HASH: "real"}));
        let mut objects = [deployment, set, older.clone(), pod, daemons, daemon];
        align(&mut objects);
        let name = format!("a-{hash}");
        assert_eq!(objects[1]["metadata"]["name"], *name);
        assert_eq!(objects[1]["spec"]["selector"]["matchLabels"][TEMPLATE_HASH], *hash);
        assert_eq!(objects[2], older, "what is of an older template stays");
        let owner = &objects[3]["metadata"]["ownerReferences"][0]["name"];
        assert_eq!((owner, &objects[3]["metadata"]["labels"][TEMPLATE_HASH]), (&json!(name), &json!(hash)));
        assert_eq!(objects[5]["metadata"]["labels"][REVISION_HASH], *hash);

        let [.., daemons, daemon] = &mut objects;
        daemons["status"]["updatedNumberScheduled"] = 0.into();
        daemon["metadata"]["labels"][REVISION_HASH] = "real".into();
        align(&mut objects);
        assert_eq!(objects[5]["metadata"]["labels"][REVISION_HASH], "real", "it is in the middle of a roll");
    }
}
