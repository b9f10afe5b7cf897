//! Pods, and the templates that pods are made from.

use serde_json::{Map, Value};

use super::{conditions, resources, spec_of, volume};
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_null, fill_zero, text, zero};

/// How long a pod may take to stop.
const GRACE_SECONDS: i64 = 30;

/// Pod. Some defaults are for pods alone, not for templates.
pub(in crate::builtin) fn pod(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    for containers in ["containers", "initContainers"] {
        each(spec, containers, |container| {
            if let Some(resources) = child(container, "resources") {
                resources::add_missing(resources, "limits", "requests");
            }
        });
    }
    fill(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for containers in ["containers", "initContainers"] {
            each(spec, containers, |container| each(container, "ports", host_port));
        }
    }
    pod_spec(spec);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        pod_status(status);
    }
}

/// On the host's network a container's port is a port of the host.
fn host_port(port: &mut Fields) {
    if let Some(number) = port.get("containerPort").cloned() {
        fill_zero(port, "hostPort", number);
    }
}

fn pod_status(status: &mut Fields) {
    conditions(status, &["lastProbeTime", "lastTransitionTime"]);
    for statuses in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        each(status, statuses, |container| {
            for state in ["state", "lastState"] {
                let Some(state) = child_or_new(container, state) else { continue };
                if let Some(running) = child(state, "running") {
                    fill_null(running, &["startedAt"]);
                }
                if let Some(terminated) = child(state, "terminated") {
                    fill_null(terminated, &["startedAt", "finishedAt"]);
                }
            }
        });
    }
}

/// The pod template in a workload's spec.
pub(super) fn template(owner: &mut Fields) {
    let Some(template) = child_or_new(owner, "template") else { return };
    child_or_new(template, "metadata");
    if let Some(spec) = child_or_new(template, "spec") {
        pod_spec(spec);
    }
}

/// `PodTemplate`.
pub(in crate::builtin) fn pod_template(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        template(fields);
    }
}

fn pod_spec(spec: &mut Fields) {
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", Map::new());
    fill(spec, "terminationGracePeriodSeconds", GRACE_SECONDS);
    fill_zero(spec, "schedulerName", "default-scheduler");
    // The old name of the field is kept the same as the new one, whichever was given.
    if let Some(account) = spec.get("serviceAccount").cloned() {
        fill_zero(spec, "serviceAccountName", account);
    }
    if !zero(spec, "serviceAccountName")
        && let Some(account) = spec.get("serviceAccountName").cloned()
    {
        spec.insert("serviceAccount".into(), account);
    }
    if child(spec, "resources").is_some() {
        resources::requirements(spec);
    }
    resources::amounts(spec, "overhead");
    each(spec, "volumes", volume::volume);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, container);
    }
}

fn container(container: &mut Fields) {
    if zero(container, "imagePullPolicy") {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".into(), policy.into());
    }
    fill_zero(container, "terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "terminationMessagePolicy", "File");
    resources::requirements(container);
    each(container, "ports", |port| fill_zero(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        let Some(source) = child(variable, "valueFrom") else { return };
        if let Some(field) = child(source, "fieldRef") {
            fill_zero(field, "apiVersion", "v1");
        }
        if let Some(file) = child(source, "fileKeyRef") {
            fill(file, "optional", false);
        }
        if let Some(resource) = child(source, "resourceFieldRef") {
            divisor(resource);
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = child(container, name) {
            self::probe(probe);
        }
    }
    let Some(lifecycle) = child(container, "lifecycle") else { return };
    for hook in ["postStart", "preStop"] {
        if let Some(request) = child(lifecycle, hook).and_then(|hook| child(hook, "httpGet")) {
            http_get(request);
        }
    }
}

/// An amount that is always shown.
pub(super) fn divisor(resource: &mut Fields) {
    fill(resource, "divisor", "0");
    resources::amount(resource, "divisor");
}

fn probe(probe: &mut Fields) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    if let Some(request) = child(probe, "httpGet") {
        http_get(request);
    }
    if let Some(request) = child(probe, "grpc") {
        fill(request, "service", "");
    }
}

fn http_get(request: &mut Fields) {
    fill_zero(request, "path", "/");
    fill_zero(request, "scheme", "HTTP");
}

/// `Always` for an image whose tag is, or defaults to, `latest`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    // A colon before the last slash belongs to the registry's port.
    let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
    match last.split_once(':') {
        Some((_, "latest")) => "Always",
        None if !digest && is_reference(name) => "Always",
        Some(_) | None => "IfNotPresent",
    }
}

/// Whether an untagged image name can be read as one. An unreadable one has no tag at all, not even `latest`.
fn is_reference(name: &str) -> bool {
    let (registry, path) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" || first != first.to_lowercase() => {
            (Some(first), rest)
        }
        _ => (None, name),
    };
    let readable = |part: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.bytes().all(|b| inner(b) || matches!(b, b'.' | b'_' | b'-'))
            && part.bytes().next().is_some_and(inner)
            && part.bytes().last().is_some_and(inner)
    };
    registry.is_none_or(|registry| !registry.is_empty()) && path.split('/').all(readable)
}
