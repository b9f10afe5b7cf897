//! What becomes of a pod, written into it.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::time;

use super::seen::Template;
use super::write::set_condition;

/// A pod from a template, and who it belongs to.
pub(super) fn from_template(template: &Template, owner: Value) -> Value {
    // The template is a part of an object in the store, which is JSON.
    let mut pod: Value = serde_json::from_str(template.0.get()).unwrap_or_default();
    pod["metadata"]["ownerReferences"] = owner;
    pod["status"] = json!({"phase": "Pending"});
    pod
}

/// Gives it one label more.
pub(super) fn label(pod: &mut Value, key: &str, value: &str) {
    pod["metadata"]["labels"][key] = value.into();
}

/// Binds it to a node.
pub(super) fn bind(pod: &mut Value, node: &str, now: Timestamp) {
    pod["spec"]["nodeName"] = node.into();
    set_condition(pod, "PodScheduled", "True", "", "", now);
}

/// Says that no node fits, and why.
pub(super) fn wait_for_node(pod: &mut Value, why: &str, now: Timestamp) {
    set_condition(pod, "PodScheduled", "False", "Unschedulable", why, now);
}

/// What is written of each container: what was known of it stays, but for its state.
fn set_containers(pod: &mut Value, ready: bool, state: impl Fn(&Value) -> Value) {
    let known = pod["status"]["containerStatuses"].take();
    let status = |(at, container): (usize, &Value)| {
        let known = &known[at];
        let mut status = json!({
            "name": container["name"], "image": container["image"], "imageID": "", "ready": ready, "started": ready,
            "restartCount": known["restartCount"].as_i64().unwrap_or(0), "state": state(container),
        });
        if known["lastState"].is_object() {
            status["lastState"] = known["lastState"].clone();
        }
        status
    };
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let statuses: Vec<Value> = containers.iter().enumerate().map(status).collect();
    pod["status"]["containerStatuses"] = statuses.into();
}

/// Its containers run, and answer.
pub(super) fn run(pod: &mut Value, host: &str, now: Timestamp) {
    let started = time::format(now);
    set_containers(pod, true, |_| json!({"running": {"startedAt": started}}));
    pod["status"]["phase"] = "Running".into();
    pod["status"]["hostIP"] = host.into();
    if !pod["status"]["startTime"].is_string() {
        pod["status"]["startTime"] = started.clone().into();
    }
    for condition in ["Initialized", "ContainersReady", "Ready"] {
        set_condition(pod, condition, "True", "", "", now);
    }
}

/// One of its images cannot be had.
pub(super) fn miss_image(pod: &mut Value, image: &str, now: Timestamp) {
    let message = format!("failed to pull and unpack image \"{image}\": it is not on the node, and in no registry");
    wait_with(pod, image, "ErrImagePull", &message);
    if !pod["status"]["startTime"].is_string() {
        pod["status"]["startTime"] = time::format(now).into();
    }
    set_condition(pod, "Initialized", "True", "", "", now);
    unready(pod, now);
}

/// The image is not asked for any more for a while.
pub(super) fn stop_pulling(pod: &mut Value, image: &str) {
    wait_with(pod, image, "ImagePullBackOff", &format!("Back-off pulling image \"{image}\""));
}

fn wait_with(pod: &mut Value, image: &str, reason: &str, message: &str) {
    set_containers(pod, false, |container| {
        if container["image"] == image {
            json!({"waiting": {"reason": reason, "message": message}})
        } else {
            json!({"waiting": {"reason": "ContainerCreating"}})
        }
    });
    // Whoever asks how far the pod is looks at the first container.
    if let Some(first) = pod["status"]["containerStatuses"].get_mut(0) {
        first["state"] = json!({"waiting": {"reason": reason, "message": message}});
    }
}

/// Its containers have ended, and will not be started again.
pub(super) fn finish(pod: &mut Value, code: i64, now: Timestamp) {
    let ended = terminated(pod, code, now);
    set_containers(pod, false, |_| ended.clone());
    let (phase, reason) = if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    pod["status"]["phase"] = phase.into();
    for condition in ["ContainersReady", "Ready"] {
        set_condition(pod, condition, "False", reason, "", now);
    }
}

/// Its containers have ended, and will be started again after a while.
pub(super) fn crash(pod: &mut Value, code: i64, now: Timestamp) {
    let ended = terminated(pod, code, now);
    set_containers(pod, false, |container| {
        let message =
            format!("back-off restarting failed container {}", container["name"].as_str().unwrap_or_default());
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
    });
    let containers = pod["status"]["containerStatuses"].as_array_mut();
    for container in containers.into_iter().flatten() {
        container["restartCount"] = (container["restartCount"].as_i64().unwrap_or(0) + 1).into();
        container["lastState"] = ended.clone();
    }
    unready(pod, now);
}

fn terminated(pod: &Value, code: i64, now: Timestamp) -> Value {
    let started = &pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"];
    let reason = if code == 0 { "Completed" } else { "Error" };
    let finished = time::format(now);
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}})
}

/// A probe says that its containers are well.
pub(super) fn ready(pod: &mut Value, now: Timestamp) {
    for condition in ["ContainersReady", "Ready"] {
        set_condition(pod, condition, "True", "", "", now);
    }
}

/// A probe says that its containers are not well, or they do not run.
pub(super) fn unready(pod: &mut Value, now: Timestamp) {
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = containers.iter().filter_map(|container| container["name"].as_str()).collect();
    let message = format!("containers with unready status: [{}]", names.join(" "));
    for condition in ["ContainersReady", "Ready"] {
        set_condition(pod, condition, "False", "ContainersNotReady", &message, now);
    }
}

/// Nobody hears of it any more.
pub(super) fn lose(pod: &mut Value, now: Timestamp) {
    set_condition(pod, "Ready", "False", "NodeNotReady", "the kubelet of its node is silent", now);
}
