//! How kinds are called on the wire: their plural, and whether they have namespaces.
//!
//! Those that we write ourselves are known beforehand; what else an add-on brings is asked for once.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Api, Client, Resource};
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::wcp::{WCPCluster, WCPMachine, WCPMachineTemplate};
use windlass_plan::step::Place;

use super::write::WriteError;

/// How kinds are called on the wire.
#[derive(Debug)]
pub struct Kinds {
    known: BTreeMap<Name, Called>,
    /// A kind of an add-on may have come with the add-on, so that it is not there the first time; only answers are kept.
    asked: Mutex<BTreeMap<(Place, Name), Called>>,
}

/// The `apiVersion` and `kind` of an object.
type Name = (String, String);

#[derive(Debug, Clone)]
struct Called {
    resource: ApiResource,
    scope: Scope,
}

impl Default for Kinds {
    fn default() -> Self {
        Self::new()
    }
}

impl Kinds {
    /// Those that are known beforehand.
    pub fn new() -> Self {
        let known = [
            known::<ClusterUpdate>(),
            known::<TanzuKubernetesCluster>(),
            known::<WCPCluster>(),
            known::<WCPMachine>(),
            known::<WCPMachineTemplate>(),
            known::<Cluster>(),
            known::<Machine>(),
            known::<MachineDeployment>(),
            known::<KubeadmConfig>(),
            known::<KubeadmConfigTemplate>(),
            known::<Job>(),
            known::<ConfigMap>(),
            known::<Namespace>(),
            known::<Secret>(),
            known::<Service>(),
            known::<ServiceAccount>(),
            known::<DaemonSet>(),
            known::<Deployment>(),
            known::<StatefulSet>(),
            known::<ClusterRole>(),
            known::<ClusterRoleBinding>(),
            known::<Role>(),
            known::<RoleBinding>(),
            known::<StorageClass>(),
            known::<CSIDriver>(),
            known::<CustomResourceDefinition>(),
        ];
        Self { known: known.into(), asked: Mutex::default() }
    }

    /// The API of a kind, for objects in this namespace where the kind has any.
    pub async fn api(
        &self,
        client: &Client,
        place: Place,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Api<DynamicObject>, WriteError> {
        let called = self.called(client, place, api_version, kind).await?;
        Ok(match called.scope {
            // A manifest that names no namespace is for the one that kubectl would take.
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &called.resource),
            Scope::Cluster => Api::all_with(client.clone(), &called.resource),
        })
    }

    /// The API of a kind, for objects in all namespaces.
    pub async fn api_of_all(
        &self,
        client: &Client,
        place: Place,
        api_version: &str,
        kind: &str,
    ) -> Result<Api<DynamicObject>, WriteError> {
        let called = self.called(client, place, api_version, kind).await?;
        Ok(Api::all_with(client.clone(), &called.resource))
    }

    async fn called(&self, client: &Client, place: Place, api_version: &str, kind: &str) -> Result<Called, WriteError> {
        let name = (api_version.to_owned(), kind.to_owned());
        if let Some(called) = self.known.get(&name) {
            return Ok(called.clone());
        }
        let key = (place, name);
        if let Some(called) = self.asked.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(called.clone());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = pinned_kind(client, &gvk).await.map_err(|source| WriteError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            source: Box::new(source),
        })?;
        let called = Called { resource, scope: capabilities.scope };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(key, called.clone());
        Ok(called)
    }
}

fn known<K: Resource<DynamicType = (), Scope: 'static>>() -> (Name, Called) {
    let resource = ApiResource::erase::<K>(&());
    let in_no_namespace = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
    let scope = if in_no_namespace { Scope::Cluster } else { Scope::Namespaced };
    ((resource.api_version.clone(), resource.kind.clone()), Called { resource, scope })
}
