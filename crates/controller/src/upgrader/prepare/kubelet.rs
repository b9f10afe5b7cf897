//! The configuration of kubelets, which every minor before 1.24 reads from a ConfigMap of its own, and what a machine that
//! joins must be allowed to read.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::ObjectMeta;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_api::version::KubernetesVersion;
use windlass_api::version::facts::{join_gets_nodes, kubelet_config_name};
use windlass_plan::roll::Preparation;

use super::of_workload;
use crate::said::is_already_exists;
use crate::upgrader::attempt::Attempt;
use crate::upgrader::health::KUBE_SYSTEM;
use crate::upgrader::{Error, write};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The kubelets that are nodes already.
const NODES: &str = "system:nodes";
/// The kubelets that are about to join.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
const GET_NODES: &str = "kubeadm:get-nodes";

/// What kubelets of the new minor would not find, or not be allowed to read.
pub async fn unprepared(attempt: &Attempt<'_>) -> Result<BTreeSet<Preparation>, Error> {
    of_workload(attempt).retry(|| try_read(attempt)).await
}

async fn try_read(attempt: &Attempt<'_>) -> Result<BTreeSet<Preparation>, Error> {
    let version = &attempt.arguments.kubernetes_version;
    let name = kubelet_config_name(version);
    let mut unprepared = BTreeSet::new();
    if previous_config_name(version).is_some_and(|previous| previous != name) {
        if !is_there::<ConfigMap>(attempt, &in_kube_system(attempt), &name).await? {
            unprepared.insert(Preparation::KubeletConfig);
        }
        let (role, binding) = may_read(&name);
        if !is_there::<Role>(attempt, &in_kube_system(attempt), &role.name_any()).await?
            || !is_there::<RoleBinding>(attempt, &in_kube_system(attempt), &binding.name_any()).await?
        {
            unprepared.insert(Preparation::KubeletConfigAccess);
        }
    }
    if join_gets_nodes(version) {
        let (role, binding) = may_get_nodes();
        if !is_there::<ClusterRole>(attempt, &of_cluster(attempt), &role.name_any()).await?
            || !is_there::<ClusterRoleBinding>(attempt, &of_cluster(attempt), &binding.name_any()).await?
        {
            unprepared.insert(Preparation::NodesAccess);
        }
    }
    Ok(unprepared)
}

async fn is_there<K>(attempt: &Attempt<'_>, api: &Api<K>, name: &str) -> Result<bool, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let doing = || format!("look for the {} {name} in {}", K::kind(&()), attempt.cluster);
    Ok(api.get_metadata_opt(name).await.map_err(Error::api(doing()))?.is_some())
}

fn in_kube_system<K>(attempt: &Attempt<'_>) -> Api<K>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(attempt.workload.client.clone(), KUBE_SYSTEM)
}

fn of_cluster<K>(attempt: &Attempt<'_>) -> Api<K>
where
    K: Resource<Scope = k8s_openapi::ClusterResourceScope, DynamicType = ()>,
{
    Api::all(attempt.workload.client.clone())
}

/// Lets nodes, and those that are about to become one, read the configuration of kubelets of the new minor.
pub async fn let_read(attempt: &Attempt<'_>) -> Result<(), Error> {
    let (role, binding) = may_read(&kubelet_config_name(&attempt.arguments.kubernetes_version));
    grant(attempt, in_kube_system(attempt), role).await?;
    grant(attempt, in_kube_system(attempt), binding).await
}

/// Lets machines that are about to become a node look for it.
pub async fn let_get_nodes(attempt: &Attempt<'_>) -> Result<(), Error> {
    let (role, binding) = may_get_nodes();
    grant(attempt, of_cluster(attempt), role).await?;
    grant(attempt, of_cluster(attempt), binding).await
}

/// The name of what the kubelets of the minor before have their configuration in.
fn previous_config_name(version: &KubernetesVersion) -> Option<String> {
    let previous = format!("{}.0", version.minor().previous()?);
    previous.parse().ok().map(|previous| kubelet_config_name(&previous))
}

/// Copies the configuration of the minor before.
pub async fn copy_config_map(attempt: &Attempt<'_>) -> Result<(), Error> {
    let version = &attempt.arguments.kubernetes_version;
    let name = kubelet_config_name(version);
    let Some(previous) = previous_config_name(version) else { return Ok(()) };
    let api: Api<ConfigMap> = in_kube_system(attempt);
    let doing = || format!("copy the ConfigMap {previous} of {} to {name}", attempt.cluster);
    let missing = || Error::NoKubeletConfig { wanted: name.clone(), previous: previous.clone() };
    let original = api.get_opt(&previous).await.map_err(Error::api(doing()))?.ok_or_else(missing)?;
    let copy = ConfigMap { metadata: named(&name), data: original.data, ..ConfigMap::default() };
    grant(attempt, api, copy).await
}

/// Creates an object, or leaves the one alone that is there: kubeadm makes the same ones.
async fn grant<K>(attempt: &Attempt<'_>, api: Api<K>, object: K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    match api.create(&write::post(), &object).await {
        Ok(_) => Ok(()),
        Err(error) if is_already_exists(&error) => Ok(()),
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
