//! A pool of workers: a `MachineDeployment` and the two templates that it refers to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{
    Bootstrap, LabelSelector, MachineDeploymentSpec, MachineSpec, MachineTemplate, RollingUpdate, Rollout,
    RolloutStrategy,
};
use windlass_api::kind::wcp::TemplateMetadata;
use windlass_api::kind::{ContractReference, bootstrap};
use windlass_api::label;
use windlass_api::name::{NameLimit, ObjectName, Role, Uid};
use windlass_api::version::KubernetesVersion;

use super::{Scope, bootstrap_api_version, cluster_api_version, kubeadm};
use crate::target::{Drive, PoolTarget};

/// What a pool's machines are made from, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTemplates {
    /// The template of the infrastructure.
    pub infrastructure: ObjectName,
    /// The `KubeadmConfigTemplate`.
    pub bootstrap: ObjectName,
    /// The version of Kubernetes.
    pub version: KubernetesVersion,
}

impl PoolTemplates {
    /// What this update makes a pool's machines from.
    pub fn of(scope: &Scope<'_>, pool: &PoolTarget) -> Self {
        let role = Role::Workers(pool.name.clone());
        let name = ObjectName::from(scope.child(&role, 0).name(NameLimit::LabelValue));
        Self { infrastructure: name.clone(), bootstrap: name, version: scope.target.release.kubernetes.clone() }
    }
}

/// The `spec.template.spec` of the two templates: infrastructure, and bootstrap.
pub fn template_specs(scope: &Scope<'_>, pool: &PoolTarget) -> [Value; 2] {
    if let Some(fields) = scope.target.fields.as_ref().and_then(|fields| fields.pools.get(&pool.name)) {
        return [fields.infrastructure.fields.clone(), fields.bootstrap.clone()];
    }
    [json!(scope.infrastructure(&pool.machines)), json!(kubeadm::join_workers(scope))]
}

/// The two templates of a pool: infrastructure, and bootstrap. What is in those that they take the place of, and is not ours,
/// is in them too.
pub fn templates(scope: &Scope<'_>, pool: &PoolTarget, before: [Option<&Value>; 2], cluster: &Uid) -> [Value; 2] {
    let (names, profile) = (PoolTemplates::of(scope, pool), scope.target.pool_profile(&pool.name));
    let template = |api_version: String, kind: &str, name: &ObjectName, spec: Value| {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": scope.metadata(name.as_str(), &scope.labels(), cluster),
            "spec": { "template": { "spec": spec } },
        })
    };
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    let [infrastructure_before, bootstrap_before] = before.map(|before| before.unwrap_or(&Value::Null));
    let infrastructure = kubeadm::laid_over(&infrastructure, infrastructure_before);
    let bootstrap = kubeadm::laid_over(&bootstrap, bootstrap_before);
    [
        template(profile.api_version(), &profile.template, &names.infrastructure, infrastructure),
        template(bootstrap_api_version(), "KubeadmConfigTemplate", &names.bootstrap, bootstrap),
    ]
}

/// The name of a pool's `MachineDeployment`. Where Cluster API rolls the control plane, a pool is known by that name.
pub fn deployment_name(scope: &Scope<'_>, pool: &PoolTarget) -> ObjectName {
    match scope.target.drive {
        Drive::Machines => {
            Role::Workers(pool.name.clone()).object_name(&scope.target.cluster.name, NameLimit::LabelValue)
        }
        Drive::KubeadmControlPlane | Drive::Topology => pool.name.clone().into(),
    }
}

fn machine(scope: &Scope<'_>, pool: &PoolTarget, templates: &PoolTemplates) -> MachineSpec {
    let config = ContractReference {
        api_group: bootstrap::GROUP.to_owned(),
        kind: "KubeadmConfigTemplate".to_owned(),
        name: templates.bootstrap.to_string(),
    };
    MachineSpec {
        cluster_name: scope.target.cluster.name.to_string(),
        version: Some(templates.version.to_string()),
        bootstrap: Bootstrap { config_ref: Some(config), data_secret_name: None },
        infrastructure_ref: scope.target.pool_profile(&pool.name).reference(templates.infrastructure.as_str()),
        ..MachineSpec::default()
    }
}

/// What is written into a `MachineDeployment` that others may have made: the count, and what its machines are made from. How
/// its machines are selected and replaced is whoever made it's to say.
pub fn changed_deployment(scope: &Scope<'_>, pool: &PoolTarget, templates: &PoolTemplates) -> Value {
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "MachineDeployment",
        "metadata": {
            "name": deployment_name(scope, pool),
            "namespace": scope.target.cluster.namespace,
            "labels": scope.labels(),
        },
        "spec": { "replicas": pool.machines.count, "template": { "spec": machine(scope, pool, templates) } },
    })
}

/// The `MachineDeployment` of a pool, with these templates. A pool that is only scaled keeps those that it has.
pub fn deployment(scope: &Scope<'_>, pool: &PoolTarget, templates: &PoolTemplates, cluster: &Uid) -> Value {
    let id = &scope.target.cluster;
    let name = deployment_name(scope, pool);
    let selected = BTreeMap::from([label::CLUSTER_NAME.entry(&id.name), label::DEPLOYMENT_NAME.entry(&name)]);
    let spec = MachineDeploymentSpec {
        cluster_name: id.name.to_string(),
        replicas: Some(pool.machines.count),
        selector: LabelSelector { match_labels: selected.clone() },
        template: MachineTemplate {
            metadata: Some(TemplateMetadata { labels: selected, ..TemplateMetadata::default() }),
            spec: machine(scope, pool, templates),
        },
        rollout: Some(Rollout {
            after: None,
            strategy: Some(RolloutStrategy {
                type_: "RollingUpdate".to_owned(),
                rolling_update: Some(RollingUpdate { max_surge: Some(1.into()), max_unavailable: Some(0.into()) }),
            }),
        }),
        ..MachineDeploymentSpec::default()
    };
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "MachineDeployment",
        "metadata": scope.metadata(name.as_str(), &scope.labels(), cluster),
        "spec": spec,
    })
}
