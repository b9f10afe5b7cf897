//! A pool of workers: a `MachineDeployment` and the two templates that it refers to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::kind::bootstrap::{self, JoinConfiguration, KubeadmConfigSpec};
use windlass_api::kind::cluster_api::{
    Bootstrap, LabelSelector, MachineDeploymentSpec, MachineSpec, MachineTemplate, RollingUpdate, Rollout,
    RolloutStrategy,
};
use windlass_api::kind::wcp::TemplateMetadata;
use windlass_api::kind::{ContractReference, wcp};
use windlass_api::label;
use windlass_api::name::{NameLimit, ObjectName, Role, Uid};
use windlass_api::version::KubernetesVersion;

use super::{Scope, bootstrap_api_version, cluster_api_version, infrastructure_api_version};
use crate::target::PoolTarget;

/// What a pool's machines are made from, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTemplates {
    /// The `WCPMachineTemplate`.
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
    let kubeadm = KubeadmConfigSpec {
        join_configuration: Some(JoinConfiguration {
            node_registration: scope.node_registration(),
            control_plane: None,
        }),
        ..KubeadmConfigSpec::default()
    };
    [json!(scope.infrastructure(&pool.machines)), json!(kubeadm)]
}

/// The two templates of a pool: infrastructure, and bootstrap.
pub fn templates(scope: &Scope<'_>, pool: &PoolTarget, cluster: &Uid) -> [Value; 2] {
    let names = PoolTemplates::of(scope, pool);
    let template = |api_version: String, kind: &str, name: &ObjectName, spec: Value| {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": scope.metadata(name.as_str(), &scope.labels(), cluster),
            "spec": { "template": { "spec": spec } },
        })
    };
    let [infrastructure, bootstrap] = template_specs(scope, pool);
    [
        template(infrastructure_api_version(), "WCPMachineTemplate", &names.infrastructure, infrastructure),
        template(bootstrap_api_version(), "KubeadmConfigTemplate", &names.bootstrap, bootstrap),
    ]
}

/// The `MachineDeployment` of a pool, with these templates. A pool that is only scaled keeps those that it has.
pub fn deployment(scope: &Scope<'_>, pool: &PoolTarget, templates: &PoolTemplates, cluster: &Uid) -> Value {
    let id = &scope.target.cluster;
    let name = Role::Workers(pool.name.clone()).object_name(&id.name, NameLimit::LabelValue);
    let selected = BTreeMap::from([label::CLUSTER_NAME.entry(&id.name), label::DEPLOYMENT_NAME.entry(&name)]);
    let reference = |group: &str, kind: &str, name: &ObjectName| ContractReference {
        api_group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_string(),
    };
    let machine = MachineSpec {
        cluster_name: id.name.to_string(),
        version: Some(templates.version.to_string()),
        provider_id: None,
        bootstrap: Bootstrap {
            config_ref: Some(reference(bootstrap::GROUP, "KubeadmConfigTemplate", &templates.bootstrap)),
            data_secret_name: None,
        },
        infrastructure_ref: reference(wcp::GROUP, "WCPMachineTemplate", &templates.infrastructure),
    };
    let spec = MachineDeploymentSpec {
        cluster_name: id.name.to_string(),
        replicas: Some(pool.machines.count),
        selector: LabelSelector { match_labels: selected.clone() },
        template: MachineTemplate {
            metadata: Some(TemplateMetadata { labels: selected, ..TemplateMetadata::default() }),
            spec: machine,
        },
        rollout: Some(Rollout {
            strategy: RolloutStrategy {
                type_: "RollingUpdate".to_owned(),
                rolling_update: Some(RollingUpdate { max_surge: Some(1), max_unavailable: Some(0) }),
            },
        }),
    };
    json!({
        "apiVersion": cluster_api_version(),
        "kind": "MachineDeployment",
        "metadata": scope.metadata(name.as_str(), &scope.labels(), cluster),
        "spec": spec,
    })
}
