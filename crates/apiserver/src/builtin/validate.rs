//! The checks of built-in kinds that their schemas cannot express, in the order and with the words of kube-apiserver.
//!
//! Each kind has one function: what is wrong with the new object, given the stored one when it is an update. Metadata in
//! general is checked before, by [`crate::meta`].

pub mod address;
pub mod cluster;
pub mod config;
pub mod endpoints;
pub mod job;
pub mod network;
pub mod node;
pub mod pod;
pub mod policy;
pub mod rbac;
pub mod schedule;
pub mod service;
pub mod status;
pub mod storage;
pub mod webhook;
pub mod workload;

use serde_json::Value;

use crate::field::{FieldError, Problem};
use crate::meta::{NameRule, complain, format, standard_finalizers};
use crate::path::Path;
use crate::value::{Fields, same};

/// What is wrong, in the order in which it was found.
pub type Errors = Vec<FieldError>;

const METADATA: Path<'static> = Path::new("metadata");
const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");

/// The checks of a built-in kind. Kinds that are not listed have none beyond their schema and metadata.
pub fn of(group: &str, kind: &str) -> fn(&Value, Option<&Value>) -> Errors {
    match (group, kind) {
        ("", "ConfigMap") => config::config_map,
        ("", "Secret") => config::secret,
        ("", "Namespace") => config::namespace,
        ("", "Service") => service::service,
        ("", "Pod") => pod::pod,
        ("", "PodTemplate") => pod::pod_template,
        ("", "ReplicationController") => workload::replication_controller,
        ("", "PersistentVolume") => storage::persistent_volume,
        ("", "PersistentVolumeClaim") => storage::persistent_volume_claim,
        ("apps", "Deployment") => workload::deployment,
        ("apps", "ReplicaSet") => workload::replica_set,
        ("apps", "DaemonSet") => workload::daemon_set,
        ("apps", "StatefulSet") => workload::stateful_set,
        ("apps", "ControllerRevision") => workload::controller_revision,
        ("policy", "PodDisruptionBudget") => policy::pod_disruption_budget,
        ("", "Node") => node::node,
        ("", "Endpoints") => endpoints::endpoints,
        ("", "Event") => cluster::event,
        ("", "ResourceQuota") => cluster::resource_quota,
        ("events.k8s.io", "Event") => cluster::event_v1,
        ("batch", "Job") => job::job,
        ("batch", "CronJob") => job::cron_job,
        ("coordination.k8s.io", "Lease") => cluster::lease,
        ("discovery.k8s.io", "EndpointSlice") => endpoints::endpoint_slice,
        ("networking.k8s.io", "Ingress") => network::ingress,
        ("networking.k8s.io", "NetworkPolicy") => network::network_policy,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            webhook::webhook_configuration
        }
        ("rbac.authorization.k8s.io", "Role") => rbac::role,
        ("rbac.authorization.k8s.io", "ClusterRole") => rbac::cluster_role,
        ("rbac.authorization.k8s.io", "RoleBinding") => rbac::role_binding,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => rbac::cluster_role_binding,
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class,
        ("storage.k8s.io", "StorageClass") => storage::storage_class,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crate::crd::validate,
        ("storage.k8s.io", "VolumeAttachment") => storage::volume_attachment,
        _ => nothing_more,
    }
}

/// What the names of a built-in kind's objects must look like when they are created. On an update the name cannot change,
/// and [`NameRule::PathSegment`] is all that is asked of it.
pub fn name_rule(group: &str, kind: &str) -> NameRule {
    match (group, kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameRule::DnsLabel,
        ("rbac.authorization.k8s.io" | "certificates.k8s.io", _)
        | ("policy", "PodDisruptionBudget")
        | ("" | "events.k8s.io", "Event") => NameRule::PathSegment,
        _ => NameRule::DnsSubdomain,
    }
}

/// The errors of a built-in object: those about its finalizers come first, before anything about its kind.
fn begin(object: &Value) -> Errors {
    let mut errors = Errors::new();
    standard_finalizers(object.at("metadata"), &mut errors);
    errors
}

/// A kind with nothing to check beyond its schema and metadata.
pub fn nothing_more(new: &Value, _old: Option<&Value>) -> Errors {
    begin(new)
}

/// A number that may not be negative; an absent one is fine.
fn non_negative(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(value) = object.int(field).filter(|value| *value < 0) {
        errors.push(FieldError::invalid(path.field(field), value, "must be greater than or equal to 0"));
    }
}

/// A string that must be there.
fn required(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if object.text(field).is_empty() {
        errors.push(FieldError::required(path.field(field), ""));
    }
}

/// A string that must be there and be one of a few; the ones allowed are listed as given.
fn one_of(object: &Value, field: &str, path: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    match object.text(field) {
        "" => errors.push(FieldError::required(path.field(field), "")),
        value if allowed.contains(&value) => {}
        value => errors.push(FieldError::not_supported(path.field(field), value, allowed)),
    }
}

/// A value that an update may not change.
fn immutable(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(FieldError::invalid(path, new.clone(), "field is immutable"));
    }
}

/// An object as Kubernetes' messages show its internal structs: all fields, in the given order, with capitals.
fn shown(object: &Value, fields: &[&str]) -> String {
    let shown = |field: &&str| {
        let (first, rest) = field.split_at(usize::from(!field.is_empty()));
        format!("\"{}{rest}\":{}", first.to_ascii_uppercase(), object.at(field))
    };
    format!("{{{}}}", fields.iter().map(shown).collect::<Vec<_>>().join(","))
}

/// A reference to something that is not there.
fn not_found(path: &Path<'_>, name: &str) -> FieldError {
    FieldError::new(Problem::NotFound, path, name.into(), "")
}

/// A string of a certain form.
fn formed(value: &str, path: &Path<'_>, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    complain(errors, path, value, rule(value));
}

/// The number of a port.
fn port_number(port: i64, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(format::is_port_number(port).into_iter().map(|detail| FieldError::invalid(path, port, detail)));
}

/// The number or the name of a port.
fn port_number_or_name(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    match port {
        Value::String(name) => formed(name, path, format::is_port_name, errors),
        other => port_number(other.as_i64().unwrap_or_default(), path, errors),
    }
}

/// A number that is not negative, or a percentage.
fn positive_int_or_percent(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::String(text) => formed(text, path, format::is_percent, errors),
        other => {
            if let Some(number) = other.as_i64().filter(|number| *number < 0) {
                errors.push(FieldError::invalid(path, number, "must be greater than or equal to 0"));
            }
        }
    }
}

/// The number in a percentage; `None` when the value is none.
fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok().filter(|number| *number >= 0)
}

/// The number in a number or percentage.
fn int_or_percent(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or_default()
}

/// A percentage may not be more than everything.
fn not_more_than_100_percent(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if percent(value).is_some_and(|number| number > 100) {
        errors.push(FieldError::invalid(path, value.clone(), "must not be greater than 100%"));
    }
}

#[cfg(test)]
mod tests;
