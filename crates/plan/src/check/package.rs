//! Whether the packages of a release are in a cluster and well, found out in another way than the planner does: each field is
//! looked up by its path.

use serde_json::Value;

use crate::inventory::Inventory;
use crate::target::Target;

/// What is wrong with the packages of the target; `None` if nothing is.
pub(super) fn trouble(target: &Target, inventory: &Inventory) -> Option<String> {
    let Some(workload) = inventory.reachable() else { return Some("the packages cannot be seen".to_owned()) };
    let found: Vec<&Value> = workload.addons.values().flatten().map(|object| &object.live).collect();
    let wanted = target.release.addons.values().flat_map(|addon| &addon.objects);
    let mut troubles = wanted.filter_map(|wanted| {
        let name = wanted.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(live) = found.iter().find(|live| is_same(wanted, live)) else {
            return Some(format!("{name} is not there"));
        };
        let mut leaves = Vec::new();
        leaves_of(wanted, String::new(), &mut leaves);
        let wrong = leaves.iter().find(|(path, value)| live.pointer(path) != Some(*value));
        wrong
            .map(|(path, _)| format!("{name} is another at {path}"))
            .or_else(|| unwell(live).map(|why| format!("{name} {why}")))
    });
    troubles.next()
}

fn is_same(wanted: &Value, live: &Value) -> bool {
    ["/kind", "/metadata/name", "/metadata/namespace"].iter().all(|path| wanted.pointer(path) == live.pointer(path))
}

/// The scalars in a value, by their JSON pointers.
fn leaves_of<'v>(value: &'v Value, path: String, leaves: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves_of(field, format!("{path}/{key}"), leaves);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                leaves_of(element, format!("{path}/{index}"), leaves);
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => leaves.push((path, value)),
    }
}

fn unwell(live: &Value) -> Option<String> {
    let number = |path: &str| live.pointer(path).and_then(Value::as_i64);
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    let (wanted, there) = match live["kind"].as_str()? {
        "DaemonSet" => (status("desiredNumberScheduled"), status("numberReady")),
        "Deployment" => (number("/spec/replicas").unwrap_or(1), status("availableReplicas")),
        _ => return None,
    };
    if number("/metadata/generation").unwrap_or(0) > status("observedGeneration") {
        return Some("has not been looked at since it was changed".to_owned());
    }
    (there < wanted).then(|| format!("has {there} of {wanted} pods"))
}
