//! Writes to the management API. The runner is told of each, so that no controller decides by what it has itself changed.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::Condition;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::machine_health::MachineHealthCheck;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::wcp::{WCPCluster, WCPMachine};
use windlass_runtime::cache::Cache;
use windlass_runtime::trimmed::Trimmed;
use windlass_runtime::watch::Object;

use super::context::{Caches, Error, Turn, path};
use super::ownership::without_finalizer;
use super::pause;

/// A kind that is watched, and where what was seen of it is.
pub(super) trait Watched: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> {
    fn cache(caches: &Caches) -> &Cache<Self>;

    /// The conditions of an object of Cluster API; `None` for the kinds of others, which know no pause.
    fn conditions(&self) -> Option<&[Condition]> {
        None
    }
}

/// Those of Cluster API have conditions, and one of them says whether they are paused.
macro_rules! watched {
    ($($kind:ty: $cache:ident;)+) => {$(
        impl Watched for $kind {
            fn cache(caches: &Caches) -> &Cache<Self> {
                &caches.$cache
            }

            fn conditions(&self) -> Option<&[Condition]> {
                Some(self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default())
            }
        }
    )+};
    (without conditions $($kind:ty: $cache:ident;)+) => {$(
        impl Watched for $kind {
            fn cache(caches: &Caches) -> &Cache<Self> {
                &caches.$cache
            }
        }
    )+};
}
watched! {
    Cluster: clusters;
    Machine: machines;
    MachineSet: machine_sets;
    MachineDeployment: machine_deployments;
    KubeadmControlPlane: control_planes;
    MachineHealthCheck: health_checks;
    ClusterClass: cluster_classes;
    KubeadmConfig: bootstraps;
    WCPCluster: cluster_infrastructures;
    WCPMachine: machine_infrastructures;
}
watched! { without conditions
    Secret: secrets;
    Job: jobs;
    Pod: pods;
}

/// Changes parts of an object, if it still is as it was read. Lists are replaced as a whole.
pub(super) async fn patch<K: Watched>(turn: &Turn, object: &K, change: Value) -> Result<K, Error> {
    let (api, name, patch) = prepared(turn, object, change);
    let written = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    Ok(told(turn, written.map_err(|source| failed("change", object, source))?.0))
}

/// Replaces the status of an object, if the object still is as it was read. Fields that its type does not know stay. One of
/// Cluster API says with it that it is not paused, and that no machine has a version any more: an empty list is left out of a
/// status, and would stay as it was.
pub(super) async fn status<K: Watched>(turn: &Turn, object: &K, status: &impl Serialize) -> Result<K, Error> {
    let mut change = json!({"status": status});
    if object.conditions().is_some() {
        pause::deny(&mut change["status"], object.meta(), &turn.now());
        if let Some(status) = change["status"].as_object_mut() {
            status.entry("versions").or_insert(Value::Null);
        }
    }
    patch_status(turn, object, change).await
}

/// Replaces the conditions of an object, and nothing else of its status.
pub(super) async fn conditions<K: Watched>(turn: &Turn, object: &K, conditions: &[Condition]) -> Result<K, Error> {
    patch_status(turn, object, json!({"status": {"conditions": conditions}})).await
}

async fn patch_status<K: Watched>(turn: &Turn, object: &K, change: Value) -> Result<K, Error> {
    let (api, name, patch) = prepared(turn, object, change);
    let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    Ok(told(turn, written.map_err(|source| failed("change the status of", object, source))?.0))
}

/// Makes an object.
pub(super) async fn create<K: Watched + Serialize>(turn: &Turn, object: &K) -> Result<K, Error> {
    let created = api(turn, object).create(&PostParams::default(), object).await;
    Ok(told(turn, created.map_err(|source| failed("create", object, source))?))
}

/// Deletes this object, and no later one of its name. One that is gone is fine.
pub(super) async fn delete<K: Watched>(turn: &Turn, object: &K) -> Result<(), Error> {
    delete_with(turn, object, DeleteParams::background()).await
}

/// The same, as it is told to.
pub(super) async fn delete_with<K: Watched>(turn: &Turn, object: &K, params: DeleteParams) -> Result<(), Error> {
    let preconditions = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
    let params = params.preconditions(preconditions);
    let name = object.meta().name.as_deref().unwrap_or_default();
    match trimmed(turn, object).delete(name, &params).await {
        // What is held up is answered with the object, what is gone with a status.
        Ok(answer) => {
            drop(answer.left().map(|Trimmed(held_up)| told(turn, held_up)));
            Ok(())
        }
        Err(source) => match failed("delete", object, source) {
            error if error.is_not_found() => Ok(()),
            error => Err(error),
        },
    }
}

/// Lets an object go.
pub(super) async fn release<K: Watched>(turn: &Turn, object: &K, finalizer: &str) -> Result<(), Error> {
    let Some(finalizers) = without_finalizer(object.meta(), finalizer) else { return Ok(()) };
    match patch(turn, object, json!({"metadata": {"finalizers": finalizers}})).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// What was attempted with which object.
pub(super) fn failed<K: Resource<DynamicType = ()>>(verb: &'static str, object: &K, source: kube::Error) -> Error {
    Error::Api { verb, object: title(object), source: Box::new(source) }
}

/// The object as people call it.
pub(super) fn title<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!("{} {}", K::kind(&()), path(object.meta()))
}

fn prepared<K: Watched>(turn: &Turn, object: &K, mut patch: Value) -> (Api<Trimmed<K>>, String, Value) {
    patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
    (trimmed(turn, object), object.meta().name.clone().unwrap_or_default(), patch)
}

fn api<K: Watched>(turn: &Turn, object: &K) -> Api<K> {
    Api::namespaced(turn.client.clone(), object.meta().namespace.as_deref().unwrap_or_default())
}

/// The same for answers without managed fields, which nobody here looks at.
fn trimmed<K: Watched>(turn: &Turn, object: &K) -> Api<Trimmed<K>> {
    Api::namespaced(turn.client.clone(), object.meta().namespace.as_deref().unwrap_or_default())
}

fn told<K: Watched>(turn: &Turn, written: K) -> K {
    turn.wrote(K::cache(&turn.caches), &written);
    written
}
