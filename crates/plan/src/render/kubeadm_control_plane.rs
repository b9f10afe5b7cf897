//! A control plane that Cluster API rolls: the `KubeadmControlPlane`, and the template of its machines.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::key::{Key, Present};
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::{RollingUpdate, RolloutStrategy};
use windlass_api::kind::control_plane::{
    self, ControlPlaneMachineSpec, ControlPlaneMachineTemplate, ControlPlaneRollout, KubeadmControlPlaneSpec,
};
use windlass_api::name::{NameLimit, ObjectName, Role, Uid};

use super::{Scope, cluster_api_version, kubeadm};

/// The add-ons that a `KubeadmControlPlane` brings, unless it is told not to because they are ours.
const SKIPPED: [(&str, Key<Present>); 2] =
    [("kube-proxy", annotation::SKIP_KUBE_PROXY), ("coredns", annotation::SKIP_COREDNS)];

/// The name that we give the `KubeadmControlPlane` of a cluster. One that others made keeps its own.
pub fn name(scope: &Scope<'_>) -> ObjectName {
    Role::ControlPlane.object_name(&scope.target.cluster.name, NameLimit::LabelValue)
}

/// The name of the template that this update makes.
pub fn template_name(scope: &Scope<'_>) -> ObjectName {
    scope.child(&Role::ControlPlane, 0).name(NameLimit::LabelValue).into()
}

/// The `spec.template.spec` of the template, as far as it is ours.
pub fn template_spec(scope: &Scope<'_>) -> Value {
    match &scope.target.fields {
        Some(fields) => fields.template.fields.clone(),
        None => json!(scope.infrastructure(&scope.target.control_plane)),
    }
}

/// The template of the machines' infrastructure. What is in the one that it takes the place of, and is not ours, is in it too.
pub fn template(scope: &Scope<'_>, before: Option<&Value>, cluster: &Uid) -> Value {
    let profile = scope.target.control_plane_profile();
    let spec = kubeadm::laid_over(&template_spec(scope), before.unwrap_or(&Value::Null));
    json!({
        "apiVersion": profile.api_version(),
        "kind": profile.template,
        "metadata": scope.metadata(template_name(scope).as_str(), &scope.labels(), cluster),
        "spec": { "template": { "spec": spec } },
    })
}

/// What the Cluster is told about its control plane. Once there, it stays.
pub fn reference(scope: &Scope<'_>) -> Value {
    let id = &scope.target.cluster;
    let reference = ContractReference {
        api_group: control_plane::GROUP.to_owned(),
        kind: "KubeadmControlPlane".to_owned(),
        name: name(scope).to_string(),
    };
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "Cluster",
        "metadata": { "name": id.name, "namespace": id.namespace },
        "spec": { "controlPlaneRef": reference },
    })
}

/// The whole of a new `KubeadmControlPlane`.
pub fn created(scope: &Scope<'_>, cluster: &Uid) -> Value {
    let strategy = RolloutStrategy {
        type_: "RollingUpdate".to_owned(),
        rolling_update: Some(RollingUpdate { max_surge: Some(1.into()), max_unavailable: None }),
    };
    let rollout = ControlPlaneRollout { strategy: Some(strategy), ..ControlPlaneRollout::default() };
    let spec = KubeadmControlPlaneSpec { rollout: Some(rollout), ..spec(scope, &template_name(scope)) };
    object(scope, scope.metadata(name(scope).as_str(), &scope.labels(), cluster), &spec)
}

/// What is written into a `KubeadmControlPlane` that is there: in one write, or its machines would be replaced twice. How its
/// machines are replaced, and which phases its first machine left out, is whoever made it's to say.
pub fn changed(scope: &Scope<'_>, name: &ObjectName, template: &ObjectName) -> Value {
    let mut spec = spec(scope, template);
    if let Some(init) = &mut spec.kubeadm_config_spec.init_configuration {
        init.skip_phases.clear();
    }
    let id = &scope.target.cluster;
    object(scope, json!({ "name": name, "namespace": id.namespace, "labels": scope.labels() }), &spec)
}

fn spec(scope: &Scope<'_>, template: &ObjectName) -> KubeadmControlPlaneSpec {
    let infrastructure_ref = scope.target.control_plane_profile().reference(template.as_str());
    KubeadmControlPlaneSpec {
        replicas: Some(scope.target.control_plane.count),
        version: scope.target.release.kubernetes.to_string(),
        machine_template: ControlPlaneMachineTemplate {
            metadata: None,
            spec: ControlPlaneMachineSpec { infrastructure_ref, ..ControlPlaneMachineSpec::default() },
        },
        kubeadm_config_spec: kubeadm::control_plane(scope),
        ..KubeadmControlPlaneSpec::default()
    }
}

fn object(scope: &Scope<'_>, mut metadata: Value, spec: &KubeadmControlPlaneSpec) -> Value {
    metadata["annotations"] = json!(annotations(scope));
    json!({
        "apiVersion": format!("{}/v1beta2", control_plane::GROUP),
        "kind": "KubeadmControlPlane",
        "metadata": metadata,
        "spec": spec,
    })
}

/// One for each add-on that is ours.
fn annotations(scope: &Scope<'_>) -> BTreeMap<String, String> {
    let is_ours = |addon: &str| scope.target.release.addons.keys().any(|name| name.as_str() == addon);
    SKIPPED.iter().filter(|(addon, _)| is_ours(addon)).map(|(_, key)| key.entry(&Present)).collect()
}
