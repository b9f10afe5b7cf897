//! Whether objects have become what they should be: what kapp waits for after it has applied them.

use serde_json::Value;
use windlass_api::kind::packaging::PackageCondition;

use super::deploy::{Object, title};
use super::status::State;

/// Nobody waits for an object that says so.
const DISABLE_WAIT: &str = "kapp.k14s.io/disable-wait";

/// How far objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// And for what, object by object.
    Waiting(Vec<String>),
    /// It will never be, and why.
    Failed(String),
}

/// How far the objects of an App are, as they are in the cluster.
pub(super) fn of(objects: &[Object]) -> Progress {
    let mut waiting = Vec::new();
    for object in objects {
        if !object.body["metadata"]["annotations"][DISABLE_WAIT].is_null() {
            continue;
        }
        match one(&object.kind.kind, &object.kind.group, &object.body) {
            Progress::Done => {}
            Progress::Waiting(why) => waiting.extend(why.iter().map(|why| format!("{}: {why}", title(object)))),
            Progress::Failed(why) => return Progress::Failed(format!("{}: {why}", title(object))),
        }
    }
    if waiting.is_empty() { Progress::Done } else { Progress::Waiting(waiting) }
}

fn one(kind: &str, group: &str, live: &Value) -> Progress {
    match (group, kind) {
        ("apps", "Deployment") => observed(live).unwrap_or_else(|| deployment(live)),
        ("apps", "DaemonSet") => {
            observed(live).unwrap_or_else(|| none_of(&live["status"]["numberUnavailable"], "unavailable pods"))
        }
        ("apps", "StatefulSet") => observed(live).unwrap_or_else(|| stateful_set(live)),
        ("batch", "Job") => job(live),
        ("", "Pod") => pod(live),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => met(live, "Established"),
        ("kappctrl.k14s.io", "App") | ("packaging.carvel.dev", "PackageInstall" | "PackageRepository") => {
            observed(live).unwrap_or_else(|| package(live))
        }
        _ => Progress::Done,
    }
}

/// What nobody has looked at since it was changed.
fn observed(live: &Value) -> Option<Progress> {
    let generation = &live["metadata"]["generation"];
    let seen = &live["status"]["observedGeneration"];
    (generation != seen).then(|| waiting(format!("Waiting for generation {generation} to be observed")))
}

fn deployment(live: &Value) -> Progress {
    if let Some(condition) = condition(live, "Progressing").filter(|condition| condition["status"] == "False") {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        return Progress::Failed(format!(
            "Deployment is not progressing: {} (message: {})",
            text("reason"),
            text("message")
        ));
    }
    none_of(&live["status"]["unavailableReplicas"], "unavailable replicas")
}

/// What its controller has not begun with yet has no counters.
fn stateful_set(live: &Value) -> Progress {
    let wanted = live["spec"]["replicas"].as_u64().unwrap_or(1);
    let ready = live["status"]["readyReplicas"].as_u64().unwrap_or(0);
    let updated = live["status"]["updatedReplicas"].as_u64().unwrap_or(0);
    match wanted.saturating_sub(ready.min(updated)) {
        0 => Progress::Done,
        missing => waiting(format!("Waiting for {missing} replicas to be updated and ready")),
    }
}

fn job(live: &Value) -> Progress {
    let is = |type_: &str| condition(live, type_).is_some_and(|condition| condition["status"] == "True");
    match (is("Complete"), is("Failed")) {
        (true, _) => Progress::Done,
        (false, true) => Progress::Failed("Failed to complete".to_owned()),
        (false, false) => waiting("Waiting to complete".to_owned()),
    }
}

fn pod(live: &Value) -> Progress {
    match live["status"]["phase"].as_str() {
        Some("Succeeded") => Progress::Done,
        Some("Failed") => Progress::Failed("Phase is failed".to_owned()),
        _ => met(live, "Ready"),
    }
}

fn met(live: &Value, type_: &str) -> Progress {
    match condition(live, type_) {
        Some(condition) if condition["status"] == "True" => Progress::Done,
        _ => waiting(format!("Condition {type_} is not set")),
    }
}

fn package(live: &Value) -> Progress {
    let conditions: Vec<PackageCondition> =
        serde_json::from_value(live["status"]["conditions"].clone()).unwrap_or_default();
    match State::of(&conditions) {
        Some(State::Succeeded) => Progress::Done,
        Some(State::Failed(why)) => Progress::Failed(format!("Reconcile failed: {why}")),
        Some(State::DeleteFailed(why)) => Progress::Failed(format!("Delete failed: {why}")),
        Some(State::Reconciling) | None => waiting("Reconciling".to_owned()),
        Some(State::Deleting) => waiting("Deleting".to_owned()),
    }
}

fn none_of(count: &Value, what: &str) -> Progress {
    match count.as_u64().unwrap_or(0) {
        0 => Progress::Done,
        count => waiting(format!("Waiting for {count} {what}")),
    }
}

fn waiting(why: String) -> Progress {
    Progress::Waiting(vec![why])
}

fn condition<'a>(live: &'a Value, type_: &str) -> Option<&'a Value> {
    live["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, group: &str, status: &Value, wanted: &Progress) {
        let live = json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status});
        assert_eq!(&one(kind, group, &live), wanted, "{kind} {status}", status = live["status"]);
    }

    #[test]
    fn what_was_changed_is_waited_for() {
        for kind in ["Deployment", "DaemonSet", "StatefulSet"] {
            let wanted = waiting("Waiting for generation 2 to be observed".to_owned());
            check(kind, "apps", &json!({"observedGeneration": 1}), &wanted);
        }
        check(
            "Deployment",
            "apps",
            &json!({"observedGeneration": 2, "unavailableReplicas": 1}),
            &waiting("Waiting for 1 unavailable replicas".to_owned()),
        );
        check("Deployment", "apps", &json!({"observedGeneration": 2}), &Progress::Done);
        check(
            "StatefulSet",
            "apps",
            &json!({"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1}),
            &waiting("Waiting for 1 replicas to be updated and ready".to_owned()),
        );
        check("Job", "batch", &json!({}), &waiting("Waiting to complete".to_owned()));
        check("ConfigMap", "", &json!({}), &Progress::Done);
    }

    #[test]
    fn a_daemon_set_that_is_replaced_on_delete_is_done_while_its_old_pods_run() {
        let status = json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 0});
        check("DaemonSet", "apps", &status, &Progress::Done);
        let status = json!({"observedGeneration": 2, "numberUnavailable": 1});
        check("DaemonSet", "apps", &status, &waiting("Waiting for 1 unavailable pods".to_owned()));
    }

    #[test]
    fn what_will_never_be_is_a_failure() {
        let stuck = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "too slow"}]);
        check(
            "Deployment",
            "apps",
            &json!({"observedGeneration": 2, "conditions": stuck}),
            &Progress::Failed("Deployment is not progressing: ProgressDeadlineExceeded (message: too slow)".to_owned()),
        );
        let failed = json!([{"type": "Failed", "status": "True"}]);
        check("Job", "batch", &json!({"conditions": failed}), &Progress::Failed("Failed to complete".to_owned()));
    }
}
