//! The Job that replaces the machines of a control plane, one at a time.
//!
//! It is in the namespace of the controllers, and an owner reference may not lead there: it carries labels, and the finalizer
//! of the cluster removes it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::bootstrap::NodeRegistration;
use windlass_api::label;
use windlass_api::name::ObjectName;
use windlass_api::version::KubernetesVersion;

use super::Scope;
use crate::release::Release;

/// The namespace of the controllers.
pub const NAMESPACE: &str = "vmware-system-tkg";

/// After the first attempt there are three more.
const BACKOFF_LIMIT: u32 = 3;

const IMAGE: &str = concat!("windlass:", env!("CARGO_PKG_VERSION"));

/// Whom its processes run as, as the image has it.
const USER: u32 = 1000;

/// The Job of an update.
pub fn job(scope: &Scope<'_>) -> Value {
    let release = &scope.target.release;
    let mut arguments = arguments(scope);
    arguments.extend([
        format!("--infrastructure-patches={}", infrastructure_patches(scope)),
        format!("--kubeadm-configmap-patches={}", kubeadm_patches(release)),
        format!("--bootstrap-patches={}", bootstrap_patches(scope)),
    ]);
    running(scope, &scope.update.job_name(), "upgrade", &release.kubernetes, &arguments)
}

/// The Job that gives an update up: it makes a cluster what it was before, which is a release and nothing else.
pub fn abort(scope: &Scope<'_>, back: &Release) -> Value {
    let mut arguments = arguments(scope);
    arguments.push(format!("--kubeadm-configmap-patches={}", kubeadm_patches(back)));
    running(scope, &scope.update.abort_job_name(), "abort", &back.kubernetes, &arguments)
}

/// A Job whose pods run a verb of our own program.
fn running(
    scope: &Scope<'_>,
    name: &ObjectName,
    verb: &str,
    version: &KubernetesVersion,
    arguments: &[String],
) -> Value {
    let mut labels = scope.labels();
    labels.extend([label::CLUSTER_NAMESPACE.entry(&scope.target.cluster.namespace)]);
    let annotations =
        BTreeMap::from([annotation::UPGRADE_ID.entry(&scope.update), annotation::UPGRADE_VERSION.entry(version)]);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations },
        "spec": {
            "backoffLimit": BACKOFF_LIMIT,
            "completions": 1,
            "parallelism": 1,
            "template": {
                "metadata": { "labels": labels, "annotations": annotations },
                "spec": {
                    "restartPolicy": "Never",
                    "securityContext": { "runAsGroup": USER, "runAsUser": USER },
                    "tolerations": tolerations(),
                    "containers": [{
                        "name": verb,
                        "image": IMAGE,
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["windlass", "control-plane", verb],
                        "args": arguments,
                        "env": environment(),
                    }],
                },
            },
        },
    })
}

/// It may run beside the control plane of the management cluster, however old that is.
fn tolerations() -> Value {
    json!([
        { "effect": "NoSchedule", "key": "kubeadmNode", "operator": "Equal", "value": "master" },
        { "effect": "NoSchedule", "key": label::NODE_MASTER.name, "operator": "Exists" },
        { "effect": "NoSchedule", "key": label::NODE_CONTROL_PLANE.name, "operator": "Exists" },
    ])
}

fn arguments(scope: &Scope<'_>) -> Vec<String> {
    vec![
        "--kubernetes-version=$(VERSION)".to_owned(),
        "--upgrade-id=$(UPGRADE_ID)".to_owned(),
        "--cluster-name=$(CLUSTER_NAME)".to_owned(),
        format!("--cluster-namespace={}", scope.target.cluster.namespace),
    ]
}

fn replace(path: &str, value: impl Into<Value>) -> Value {
    json!({ "op": "replace", "path": path, "value": value.into() })
}

fn infrastructure_patches(scope: &Scope<'_>) -> Value {
    let machines = &scope.target.control_plane;
    json!([
        replace("/spec/imageName", scope.image_name()),
        replace("/spec/className", machines.class()),
        replace("/spec/storageClass", machines.storage_class()),
    ])
}

fn kubeadm_patches(release: &Release) -> Value {
    let mut patches = Vec::new();
    for (place, image) in [("/dns", &release.coredns), ("/etcd/local", &release.etcd)] {
        let Some(image) = image else { continue };
        patches.push(replace(&format!("{place}/imageRepository"), image.repository.as_str()));
        patches.push(replace(&format!("{place}/imageTag"), image.tag.as_str()));
    }
    patches.extend(release.image_repository.as_deref().map(|repository| replace("/imageRepository", repository)));
    patches.push(replace("/kubernetesVersion", release.kubernetes.as_str()));
    Value::Array(patches)
}

fn bootstrap_patches(scope: &Scope<'_>) -> Value {
    let arguments = json!([{ "name": NodeRegistration::NODE_LABELS, "value": scope.node_labels() }]);
    let registration = "/spec/joinConfiguration/nodeRegistration";
    let arguments = replace(&format!("{registration}/kubeletExtraArgs"), arguments);
    let defaults = scope.target.defaults.node_registration.iter();
    // What an older Windlass left out is not there to be replaced.
    let add = |(field, value): (&String, &String)| json!({ "op": "add", "path": format!("{registration}/{field}"), "value": value });
    [arguments].into_iter().chain(defaults.map(add)).collect()
}

fn environment() -> Value {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    json!([
        field("NAMESPACE", "metadata.namespace"),
        field("CLUSTER_NAME", &format!("metadata.labels['{}']", label::CLUSTER_NAME)),
        field("UPGRADE_ID", &format!("metadata.annotations['{}']", annotation::UPGRADE_ID)),
        field("VERSION", &format!("metadata.annotations['{}']", annotation::UPGRADE_VERSION)),
    ])
}
