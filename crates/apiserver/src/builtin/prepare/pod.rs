//! Pods: their first status, and what admission gives every pod.

use serde_json::{Value, json};

use crate::builtin::fill::{Fields, child_or_new, fill, list, text, unset};
use crate::quantity::Quantity;

/// How long a pod stays on a node that has gone.
const TOLERATION_SECONDS: i64 = 300;

/// `Pod`.
pub(in crate::builtin) fn pod(object: &mut Value, old: Option<&Value>) {
    let created = object["metadata"]["creationTimestamp"].clone();
    let Some(fields) = object.as_object_mut() else { return };
    let Some(spec) = child_or_new(fields, "spec") else { return };
    tolerate_lost_nodes(spec);
    if let Some(old) = old {
        for name in ["priority", "preemptionPolicy"] {
            if unset(spec, name)
                && let Some(kept) = old["spec"].get(name)
            {
                spec.insert(name.to_owned(), kept.clone());
            }
        }
        return;
    }
    if text(spec, "priorityClassName").is_empty() {
        fill(spec, "priority", 0);
        fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    let mut status = json!({ "phase": "Pending", "qosClass": quality(spec) });
    if !list(spec, "schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": created,
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    fields.insert("status".into(), status);
}

/// A pod that says nothing else leaves a lost node after five minutes.
fn tolerate_lost_nodes(spec: &mut Fields) {
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list(spec, "tolerations").iter().any(|toleration| {
            let is = |field: &str, wanted: &str| {
                let given = toleration[field].as_str().unwrap_or_default();
                given.is_empty() || given == wanted
            };
            is("key", taint) && is("effect", "NoExecute")
        });
        if tolerated {
            continue;
        }
        fill(spec, "tolerations", json!([]));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// The resources that count for the quality of service.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The quality of service that a pod's requests and limits amount to.
fn quality(spec: &Fields) -> &'static str {
    let of_pod = spec.get("resources").filter(|resources| resources.is_object());
    let of_containers = ["containers", "initContainers"];
    let mut all: Vec<&Value> = Vec::new();
    match of_pod {
        Some(resources) => all.push(resources),
        None => {
            all.extend(of_containers.iter().flat_map(|name| list(spec, name)).map(|container| &container["resources"]));
        }
    }
    let mut sums: [[Option<Quantity>; 2]; 2] = Default::default();
    let mut guaranteed = true;
    for resources in all {
        for (index, resource) in COUNTED.iter().enumerate() {
            let request = positive(&resources["requests"][resource]);
            let limit = positive(&resources["limits"][resource]);
            // Limits of the pod as a whole that are not there at all do not count against it.
            guaranteed &= limit.is_some() || (of_pod.is_some() && crate::builtin::empty(&resources["limits"]));
            for (kind, amount) in [request, limit].into_iter().enumerate() {
                let Some(amount) = amount else { continue };
                let sum = &mut sums[kind][index];
                *sum = Some(sum.map_or(amount, |sum| sum.plus(amount)));
            }
        }
    }
    let [requests, limits] = sums;
    match (requests, limits) {
        ([None, None], [None, None]) => "BestEffort",
        (requests, limits) if guaranteed && requests == limits => "Guaranteed",
        _ => "Burstable",
    }
}

fn positive(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str()?).ok().filter(|quantity| quantity.is_positive())
}
