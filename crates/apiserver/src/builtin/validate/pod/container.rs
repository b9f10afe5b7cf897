//! The containers of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Volumes, probe, resources, trimmed_image, volume};
use crate::builtin::validate::{Errors, formed, not_found, one_of, port_number, required, shown};
use crate::field::FieldError;
use crate::meta::format;
use crate::path::Path;
use crate::value::Fields;

/// What the checks of a container need to know about its pod.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The volumes that can be mounted.
    pub volumes: &'a Volumes<'a>,
    /// How long the pod may take to stop, in seconds.
    pub grace: Option<i64>,
    /// The pod's restart policy.
    pub restart: &'a str,
}

/// The regular containers.
pub fn containers(spec: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("containers");
    let containers = spec.list("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        container_in_general(container, around, &path, errors);
        let name = container.text("name");
        if containers[..i].iter().any(|other| other.text("name") == name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        long_running(container, spec, around, &path, errors);
        restart_policy(container, &path, errors);
    }
    host_ports(containers, &path, 0, errors);
}

/// The containers that run before the regular ones, and beside them when they are restarted always.
pub fn init_containers(spec: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("initContainers");
    let containers = spec.list("initContainers");
    for (i, container) in containers.iter().enumerate() {
        let list = path;
        let path = path.index(i);
        container_in_general(container, around, &path, errors);
        restart_policy(container, &path, errors);
        let name = container.text("name");
        let mut others = spec.list("containers").iter().chain(&containers[..i]);
        if others.any(|other| other.text("name") == name && !(name.is_empty() && i > 0)) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        host_ports(std::slice::from_ref(container), &list, 0, errors);
        if container.text("restartPolicy") == "Always" {
            long_running(container, spec, around, &path, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(path.field(field), detail));
            }
        }
        for (j, policy) in container.list("resizePolicy").iter().enumerate() {
            if policy.text("restartPolicy") == "RestartContainer" {
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                let path = path.field("resizePolicy");
                let path = path.index(j);
                errors.push(FieldError::invalid(path.field("restartPolicy"), "RestartContainer", detail));
            }
        }
    }
}

/// The containers that are put into a running pod to look at it.
pub fn ephemeral_containers(spec: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = spec.list("ephemeralContainers");
    let path = path.field("ephemeralContainers");
    let others: BTreeSet<&str> =
        spec.list("containers").iter().chain(spec.list("initContainers")).map(|other| other.text("name")).collect();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        container_in_general(container, around, &path, errors);
        trimmed_image(container, &path, errors);
        let name = container.text("name");
        if others.contains(name) || containers[..i].iter().any(|other| other.text("name") == name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.push(not_found(&path.field("targetContainerName"), target));
        }
        let detail = "cannot be set for an Ephemeral Container";
        for field in ["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            let value = container.at(field);
            if !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty()) {
                errors.push(FieldError::forbidden(path.field(field), detail));
            }
        }
        let mounts = path.field("volumeMounts");
        for (j, mount) in container.list("volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text(field).is_empty() {
                    errors.push(FieldError::forbidden(mounts.index(j).field(field), detail));
                }
            }
        }
    }
}

/// What is checked of all containers.
fn container_in_general(container: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let name = container.text("name");
    if name.is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    } else {
        formed(name, &path.field("name"), format::is_dns_label, errors);
    }
    required(container, "image", path, errors);
    one_of(container, "terminationMessagePolicy", path, &["File", "FallbackToLogsOnError"], errors);
    ports(container, &path.field("ports"), errors);
    environment(container, &path.field("env"), errors);
    environment_from(container, &path.field("envFrom"), errors);
    volume::mounts(container, around.volumes, path, errors);
    one_of(container, "imagePullPolicy", path, &["Always", "IfNotPresent", "Never"], errors);
    resources::of_container(container.at("resources"), &path.field("resources"), errors);
    resize_policy(container, around, &path.field("resizePolicy"), errors);
    security_context(container.at("securityContext"), &path.field("securityContext"), errors);
}

/// What is checked of containers that stay.
fn long_running(container: &Value, spec: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    probe::lifecycle(container.at("lifecycle"), spec, around, &path.field("lifecycle"), errors);
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe::probe(container.at(field), field, around, &path.field(field), errors);
    }
}

fn restart_policy(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let allowed = ["Always", "Never", "OnFailure"];
    match container.at("restartPolicy").as_str() {
        None if !container.list("restartPolicyRules").is_empty() => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(path.field("restartPolicy"), detail));
        }
        Some(policy) if !allowed.contains(&policy) => {
            errors.push(FieldError::not_supported(path.field("restartPolicy"), policy, &allowed));
        }
        _ => {}
    }
}

fn ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (i, port) in container.list("ports").iter().enumerate() {
        let path = path.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            let before = errors.len();
            formed(name, &path.field("name"), format::is_port_name, errors);
            if errors.len() == before && !names.insert(name) {
                errors.push(FieldError::duplicate(path.field("name"), name));
            }
        }
        match port.int("containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(path.field("containerPort"), "")),
            number => port_number(number, &path.field("containerPort"), errors),
        }
        if let Some(number) = port.int("hostPort").filter(|number| *number != 0) {
            port_number(number, &path.field("hostPort"), errors);
        }
        one_of(port, "protocol", &path, &["SCTP", "TCP", "UDP"], errors);
    }
}

/// No two containers take the same port of the host. `start` is where the containers stand in their list.
fn host_ports(containers: &[Value], path: &Path<'_>, start: usize, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(start + i);
        let path = path.field("ports");
        for (j, port) in container.list("ports").iter().enumerate() {
            let Some(number) = port.int("hostPort").filter(|number| *number != 0) else { continue };
            let (protocol, ip) = (port.text("protocol"), port.text("hostIP"));
            if !taken.insert((protocol, ip, number)) {
                let shown = format!("{protocol}/{ip}/{number}");
                errors.push(FieldError::duplicate(path.index(j).field("hostPort"), shown));
            }
        }
    }
}

fn environment(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, variable) in container.list("env").iter().enumerate() {
        let path = path.index(i);
        let name = variable.text("name");
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        } else {
            formed(name, &path.field("name"), format::is_env_var_name, errors);
        }
        if variable.has("valueFrom") {
            value_from(variable, &path.field("valueFrom"), errors);
        }
    }
}

/// The fields of a pod that a variable can take its value from.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn value_from(variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    let from = variable.at("valueFrom");
    let mut sources = 0;
    for field in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let source = from.at(field);
        if source.is_null() {
            continue;
        }
        sources += 1;
        let path = path.field(field);
        match field {
            "fieldRef" => field_reference(source, &VARIABLE_FIELDS, &path, errors),
            "resourceFieldRef" => resource_reference(source, false, &path, errors),
            "fileKeyRef" => {
                required(source, "volumeName", &path, errors);
                required(source, "path", &path, errors);
                required(source, "key", &path, errors);
            }
            _ => key_reference(source, &path, errors),
        }
    }
    let detail = if sources == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !variable.text("value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if sources > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, "", detail));
}

fn key_reference(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    formed(source.text("name"), &path.field("name"), format::is_dns_subdomain, errors);
    let key = source.text("key");
    if key.is_empty() {
        errors.push(FieldError::required(path.field("key"), ""));
    } else {
        formed(key, &path.field("key"), format::is_config_map_key, errors);
    }
}

/// A reference to a field of the pod.
pub fn field_reference(source: &Value, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    const CONVERTIBLE: [&str; 6] = [
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
        "spec.host",
    ];
    let (version, field) = (source.text("apiVersion"), source.text("fieldPath"));
    for name in ["apiVersion", "fieldPath"] {
        if source.text(name).is_empty() {
            errors.push(FieldError::required(path.field(name), ""));
            return;
        }
    }
    let mut refuse = |why: String| {
        let detail = format!("error converting fieldPath: {why}");
        errors.push(FieldError::invalid(path.field("fieldPath"), field, detail));
    };
    if version != "v1" {
        return refuse(format!("unsupported pod version: {version}"));
    }
    if let Some((name, key)) = field.strip_suffix("']").and_then(|field| field.split_once("['")) {
        match name {
            "metadata.annotations" => formed(&key.to_lowercase(), path, format::is_qualified_name, errors),
            "metadata.labels" => formed(key, path, format::is_qualified_name, errors),
            _ => refuse(format!("field label does not support subscript: {field}")),
        }
        return;
    }
    let known = VARIABLE_FIELDS.contains(&field) || CONVERTIBLE.contains(&field);
    if !known {
        return refuse(format!("field label not supported: {field}"));
    }
    if !allowed.contains(&field) && field != "spec.host" {
        errors.push(FieldError::not_supported(path.field("fieldPath"), field, allowed));
    }
}

/// A reference to a resource of a container.
pub fn resource_reference(source: &Value, in_volume: bool, path: &Path<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = source.text("resource");
    if in_volume && source.text("containerName").is_empty() {
        errors.push(FieldError::required(path.field("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(path.field("resource"), ""));
    } else if !KNOWN.contains(&resource)
        && !resource.starts_with("requests.hugepages-")
        && !resource.starts_with("limits.hugepages-")
    {
        errors.push(FieldError::not_supported(path.field("resource"), resource, &KNOWN));
    }
}

fn environment_from(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, source) in container.list("envFrom").iter().enumerate() {
        let list = path;
        let path = path.index(i);
        if !source.text("prefix").is_empty() {
            formed(source.text("prefix"), &path.field("prefix"), format::is_env_var_name, errors);
        }
        let mut sources = 0;
        for field in ["configMapRef", "secretRef"] {
            if source.has(field) {
                sources += 1;
                let (name, path) = (source.at(field).text("name"), path.field(field));
                if name.is_empty() {
                    errors.push(FieldError::required(path.field("name"), ""));
                } else {
                    formed(name, &path.field("name"), format::is_dns_subdomain, errors);
                }
            }
        }
        match sources {
            0 => errors.push(FieldError::invalid(list, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(FieldError::invalid(list, "", "may not have more than one field specified at a time")),
        }
    }
}

fn resize_policy(container: &Value, around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let policies = container.list("resizePolicy");
    for (i, policy) in policies.iter().enumerate() {
        let (resource, restart) = (policy.text("resourceName"), policy.text("restartPolicy"));
        if policies[..i].iter().any(|other| other.text("resourceName") == resource) {
            errors.push(FieldError::duplicate(path.index(i), resource));
        }
        for (value, allowed) in [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            match value {
                "" => errors.push(FieldError::required(path, "")),
                value if allowed.contains(&value) => {}
                value => errors.push(FieldError::not_supported(path, value, &allowed)),
            }
        }
        if around.restart == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

fn security_context(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["runAsUser", "runAsGroup"] {
        if let Some(id) = context.int(field) {
            for detail in format::is_in_range(id, 0, i64::from(i32::MAX)) {
                errors.push(FieldError::invalid(path.field(field), id, detail));
            }
        }
    }
    if context.at("allowPrivilegeEscalation") != &Value::Bool(false) {
        return;
    }
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(path, context.clone(), detail).showing(shown_context(context)));
    };
    if context.flag("privileged") {
        refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    if context.at("capabilities").texts("add").any(|capability| capability == "CAP_SYS_ADMIN") {
        refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
    }
}

fn shown_context(context: &Value) -> String {
    let fields = [
        "capabilities",
        "privileged",
        "sELinuxOptions",
        "windowsOptions",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "readOnlyRootFilesystem",
        "allowPrivilegeEscalation",
        "procMount",
        "seccompProfile",
        "appArmorProfile",
    ];
    let text = shown(context, &fields);
    match context.at("capabilities") {
        Value::Null => text,
        capabilities => text.replacen(&capabilities.to_string(), &shown(capabilities, &["add", "drop"]), 1),
    }
}
