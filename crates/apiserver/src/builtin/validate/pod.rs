//! Pods, and the pod templates in workloads.

pub mod container;
pub mod probe;
pub mod resources;
pub mod schedule;
pub mod update;
pub mod volume;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Errors, SPEC, begin, formed, one_of};
use crate::field::FieldError;
use crate::meta::{annotations, format, labels, too_long};
use crate::path::Path;
use crate::value::Fields;

/// Where a pod spec stands: some rules are only for pods themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a Pod.
    Pod,
    /// In a template, from which pods are made later.
    Template,
    /// In the template of a `StatefulSet`, which sets hostname and subdomain itself.
    StatefulSetTemplate,
}

/// The volumes of a pod that are sound, by name.
pub type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// What is wrong with a Pod.
pub fn pod(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    pod_spec(spec, &Volumes::new(), &SPEC, Place::Pod, &mut errors);
    if spec.text("serviceAccountName").is_empty() {
        tokens_without_account(spec, &mut errors);
    }
    for field in ["containers", "initContainers"] {
        for (i, container) in spec.list(field).iter().enumerate() {
            trimmed_image(container, &SPEC.field(field).index(i), &mut errors);
        }
    }
    let Some(old) = old else {
        if !spec.list("ephemeralContainers").is_empty() {
            errors.push(FieldError::forbidden(SPEC.field("ephemeralContainers"), "cannot be set on create"));
        }
        if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
            let detail = "cannot be set until all schedulingGates have been cleared";
            errors.push(FieldError::forbidden(SPEC.field("nodeName"), detail));
        }
        return errors;
    };
    update::pod(spec, old.at("spec"), &mut errors);
    errors
}

fn tokens_without_account(spec: &Value, errors: &mut Errors) {
    let path = SPEC.field("volumes");
    for (i, volume) in spec.list("volumes").iter().enumerate() {
        let path = path.index(i);
        for (j, source) in volume.at("projected").list("sources").iter().enumerate() {
            if source.has("serviceAccountToken") {
                let (path, detail) =
                    (path.field("projected"), "must not be specified when serviceAccountName is not set");
                let path = path.field("sources");
                errors.push(FieldError::forbidden(path.index(j).field("serviceAccountToken"), detail));
            }
        }
    }
}

fn trimmed_image(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = container.text("image");
    if image.trim().len() != image.len() {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(path.field("image"), image, detail));
    }
}

/// What is wrong with a `PodTemplate`.
pub fn pod_template(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    template(new.at("template"), &Volumes::new(), &Path::new("template"), Place::Template, &mut errors);
    errors
}

/// What is wrong with the template of a pod. `volumes` are those that a `StatefulSet` adds.
pub fn template(template: &Value, volumes: &Volumes<'_>, path: &Path<'_>, place: Place, errors: &mut Errors) {
    let metadata = template.at("metadata");
    labels(metadata.at("labels"), &path.field("labels"), errors);
    annotations(metadata.at("annotations"), &path.field("annotations"), errors);
    let spec = template.at("spec");
    pod_spec(spec, volumes, &path.field("spec"), place, errors);
    if !spec.list("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(path.field("spec").field("ephemeralContainers"), detail));
    }
}

/// What is wrong with the spec of a pod.
fn pod_spec(spec: &Value, added: &Volumes<'_>, path: &Path<'_>, place: Place, errors: &mut Errors) {
    let grace = spec.int("terminationGracePeriodSeconds");
    if grace.is_none() {
        errors.push(FieldError::required(path.field("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volume::volumes(spec, added, &path.field("volumes"), errors);
    let around = container::Around { volumes: &volumes, grace, restart: spec.text("restartPolicy") };
    container::containers(spec, &around, path, errors);
    container::init_containers(spec, &around, path, errors);
    container::ephemeral_containers(spec, &around, path, errors);
    resources::pod_level(spec, path, errors);
    host_network(spec, path, place, errors);
    one_of(spec, "restartPolicy", path, &["Always", "OnFailure", "Never"], errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(spec, "dnsPolicy", path, &policies, errors);
    labels(spec.at("nodeSelector"), &path.field("nodeSelector"), errors);
    security_context(spec.at("securityContext"), &path.field("securityContext"), errors);
    schedule::affinity(spec.at("affinity"), &path.field("affinity"), errors);
    dns_config(spec, &path.field("dnsConfig"), errors);
    schedule::gates(spec, path, errors);
    schedule::topology_spread(spec, &path.field("topologySpreadConstraints"), errors);
    host_users(spec, path, errors);
    names(spec, path, place, errors);
    schedule::tolerations(spec, &path.field("tolerations"), errors);
    for (i, alias) in spec.list("hostAliases").iter().enumerate() {
        let path = path.field("hostAliases");
        let path = path.index(i);
        super::address::ip(alias.text("ip"), &path.field("ip"), errors);
        for (j, name) in alias.texts("hostnames").enumerate() {
            formed(name, &path.field("hostnames").index(j), format::is_dns_subdomain, errors);
        }
    }
    for field in ["priorityClassName", "runtimeClassName"] {
        if !spec.text(field).is_empty() {
            formed(spec.text(field), &path.field(field), format::is_dns_subdomain, errors);
        }
    }
    if spec.has("preemptionPolicy") {
        one_of(spec, "preemptionPolicy", path, &["PreemptLowerPriority", "Never"], errors);
    }
    let overhead = path.field("overhead");
    for (name, amount) in spec.entries("overhead") {
        resources::quantity(name, amount, &overhead.key(name), errors);
    }
    if spec.has("os") {
        one_of(spec.at("os"), "name", &path.field("os"), &["linux", "windows"], errors);
    }
}

/// With the host's network, a container's port is the host's port.
fn host_network(spec: &Value, path: &Path<'_>, place: Place, errors: &mut Errors) {
    if !spec.flag("hostNetwork") {
        return;
    }
    let path = path.field("containers");
    for (i, container) in spec.list("containers").iter().enumerate() {
        let path = path.index(i);
        let path = path.field("ports");
        for (j, port) in container.list("ports").iter().enumerate() {
            let (host, own) = (port.int("hostPort").unwrap_or_default(), port.int("containerPort").unwrap_or_default());
            if (place == Place::Pod || host != 0) && host != own {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(path.index(j).field("hostPort"), host, detail));
            }
        }
    }
}

/// Users of the host are only kept apart from users in the pod when nothing else of the host is shared.
fn host_users(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.at("hostUsers") != &Value::Bool(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.flag(field) {
            errors.push(FieldError::forbidden(path.field(shown), "when `hostUsers` is false"));
        }
    }
}

/// The names in a pod's spec.
fn names(spec: &Value, path: &Path<'_>, place: Place, errors: &mut Errors) {
    if let Some(name) = spec.at("hostnameOverride").as_str() {
        let path = path.field("hostnameOverride");
        if spec.flag("setHostnameAsFQDN") {
            errors.push(FieldError::forbidden(path, "may not be specified when setHostnameAsFQDN is true"));
        }
        if spec.flag("hostNetwork") {
            errors.push(FieldError::forbidden(path, "may not be specified when hostNetwork is true"));
        }
        if name.len() > 64 {
            errors.push(too_long(&path, 64));
        }
        formed(name, &path, format::is_dns_subdomain, errors);
    }
    for field in ["serviceAccountName", "nodeName"] {
        if !spec.text(field).is_empty() {
            formed(spec.text(field), &path.field(field), format::is_dns_subdomain, errors);
        }
    }
    if let Some(seconds) = spec.int("activeDeadlineSeconds") {
        for detail in format::is_in_range(seconds, 1, i64::from(i32::MAX)) {
            errors.push(FieldError::invalid(path.field("activeDeadlineSeconds"), seconds, detail));
        }
    }
    for field in ["hostname", "subdomain"] {
        if place != Place::StatefulSetTemplate && !spec.text(field).is_empty() {
            formed(spec.text(field), &path.field(field), format::is_dns_label, errors);
        }
    }
}

fn security_context(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let max = i64::from(i32::MAX);
    let mut id = |value: i64, path: &Path<'_>| {
        for detail in format::is_in_range(value, 0, max) {
            errors.push(FieldError::invalid(path, value, detail));
        }
    };
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(value) = context.int(field) {
            id(value, &path.field(field));
        }
    }
    let groups = path.field("supplementalGroups");
    for (i, value) in context.list("supplementalGroups").iter().enumerate() {
        id(value.as_i64().unwrap_or_default(), &groups.index(i));
    }
}

fn dns_config(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = spec.at("dnsConfig");
    if spec.text("dnsPolicy") == "None" {
        if config.is_null() {
            errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if config.list("nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(path.field("nameservers"), detail));
            return;
        }
    }
    let servers = path.field("nameservers");
    if config.list("nameservers").len() > 3 {
        let detail = "must not have more than 3 nameservers";
        errors.push(FieldError::invalid(servers, config.at("nameservers").clone(), detail));
    }
    for (i, server) in config.texts("nameservers").enumerate() {
        super::address::ip(server, &servers.index(i), errors);
    }
    let searches = path.field("searches");
    if config.list("searches").len() > 32 {
        let detail = "must not have more than 32 search paths";
        errors.push(FieldError::invalid(searches, config.at("searches").clone(), detail));
    }
    if config.texts("searches").map(|search| search.len() + 1).sum::<usize>() > 2049 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(FieldError::invalid(searches, config.at("searches").clone(), detail));
    }
    for (i, search) in config.texts("searches").enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        formed(search, &searches.index(i), format::is_dns_subdomain_with_underscore, errors);
    }
    let options = path.field("options");
    for (i, _) in config.list("options").iter().enumerate().filter(|(_, option)| option.text("name").is_empty()) {
        errors.push(FieldError::required(options.index(i), "must not be empty"));
    }
}
