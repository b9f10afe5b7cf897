//! The configuration of kubelets, which every minor before 1.24 reads from a ConfigMap of its own, and what a machine that
//! joins must be allowed to read.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::ObjectMeta;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_api::version::KubernetesVersion;
use windlass_api::version::facts::{join_gets_nodes, kubelet_config_name};

use crate::upgrader::attempt::Attempt;
use crate::upgrader::health::KUBE_SYSTEM;
use crate::upgrader::wait::Patience;
use crate::upgrader::{Error, write};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The kubelets that are nodes already.
const NODES: &str = "system:nodes";
/// The kubelets that are about to join.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
const GET_NODES: &str = "kubeadm:get-nodes";

/// Sees to it that kubelets of the new minor find their configuration, and that those who join may read it.
pub async fn configure(attempt: &Attempt<'_>) -> Result<(), Error> {
    let patience =
        Patience::of(attempt.arguments.machine_timeout, format!("the API of the workload cluster {}", attempt.cluster));
    patience.retry(|| try_configure(attempt)).await
}

async fn try_configure(attempt: &Attempt<'_>) -> Result<(), Error> {
    let version = &attempt.arguments.kubernetes_version;
    let name = kubelet_config_name(version);
    let client = || attempt.workload.client.clone();
    if let Some(previous) = previous_config_name(version).filter(|previous| *previous != name) {
        copy_config_map(attempt, &previous, &name).await?;
        let (role, binding) = may_read(&name);
        grant(attempt, Api::namespaced(client(), KUBE_SYSTEM), role).await?;
        grant(attempt, Api::namespaced(client(), KUBE_SYSTEM), binding).await?;
    }
    if join_gets_nodes(version) {
        let (role, binding) = may_get_nodes();
        grant(attempt, Api::all(client()), role).await?;
        grant(attempt, Api::all(client()), binding).await?;
    }
    Ok(())
}

/// The name of what the kubelets of the minor before have their configuration in.
fn previous_config_name(version: &KubernetesVersion) -> Option<String> {
    let previous = format!("{}.0", version.minor().previous()?);
    previous.parse().ok().map(|previous| kubelet_config_name(&previous))
}

/// Copies the configuration of the minor before, if there is none of this one.
async fn copy_config_map(attempt: &Attempt<'_>, previous: &str, name: &str) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(attempt.workload.client.clone(), KUBE_SYSTEM);
    let doing = || format!("copy the ConfigMap {previous} of {} to {name}", attempt.cluster);
    if api.get_metadata_opt(name).await.map_err(Error::api(doing()))?.is_some() {
        return Ok(());
    }
    let missing = || Error::Missing {
        kind: "ConfigMap",
        name: previous.to_owned(),
        why: "and kubelets of the new minor need a copy of it: minors cannot be skipped",
    };
    let original = api.get_opt(previous).await.map_err(Error::api(doing()))?.ok_or_else(missing)?;
    let copy = ConfigMap { metadata: named(name), data: original.data, ..ConfigMap::default() };
    grant(attempt, api, copy).await
}

/// Creates an object, or leaves the one alone that is there: kubeadm makes the same ones.
async fn grant<K>(attempt: &Attempt<'_>, api: Api<K>, object: K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    match api.create(&write::post(), &object).await {
        Ok(_) => Ok(()),
        Err(error) if write::is_conflict(&error) => Ok(()),
        Err(error) => {
            let doing = format!("create the {} {} in {}", K::kind(&()), object.name_any(), attempt.cluster);
            Err(Error::api(doing)(error))
        }
    }
}

fn may_read(config_map: &str) -> (Role, RoleBinding) {
    let name = format!("kubeadm:{config_map}");
    let rules = vec![PolicyRule { resource_names: Some(vec![config_map.to_owned()]), ..may_get("configmaps") }];
    let role = Role { metadata: named(&name), rules: Some(rules) };
    let subjects = Some(vec![group(NODES), group(JOINING)]);
    (role, RoleBinding { metadata: named(&name), role_ref: reference("Role", &name), subjects })
}

fn may_get_nodes() -> (ClusterRole, ClusterRoleBinding) {
    let rules = Some(vec![may_get("nodes")]);
    let role = ClusterRole { metadata: named(GET_NODES), rules, ..ClusterRole::default() };
    let subjects = Some(vec![group(JOINING)]);
    let binding =
        ClusterRoleBinding { metadata: named(GET_NODES), role_ref: reference("ClusterRole", GET_NODES), subjects };
    (role, binding)
}

fn may_get(resource: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn group(name: &str) -> Subject {
    Subject { api_group: Some(RBAC_GROUP.to_owned()), kind: "Group".to_owned(), name: name.to_owned(), namespace: None }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: RBAC_GROUP.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}
