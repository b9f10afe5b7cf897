//! Writes to the management API. The runner is told of each, so that no controller decides by what it has itself changed.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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

use super::context::{Caches, Error, Turn, deleting, path};
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

/// What of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Status,
}

/// An object that is written to, of a kind that is watched.
pub(super) trait Writable: Sized + Send + Sync {
    fn metadata(&self) -> &ObjectMeta;
    /// Its kind.
    fn called(&self) -> String;
    /// Its conditions, where its kind has any.
    fn said(&self) -> Option<&[Condition]>;
    /// It with these parts of it changed.
    fn merged(&self, turn: &Turn, part: Part, patch: &Value) -> impl Future<Output = Result<Self, kube::Error>> + Send;
    /// Deletes it.
    fn deleted(&self, turn: &Turn, params: &DeleteParams) -> impl Future<Output = Result<(), kube::Error>> + Send;
}

impl<K: Watched> Writable for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn called(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn said(&self) -> Option<&[Condition]> {
        self.conditions()
    }

    async fn merged(&self, turn: &Turn, part: Part, patch: &Value) -> Result<Self, kube::Error> {
        let (api, name) = (trimmed(turn, self), self.meta().name.as_deref().unwrap_or_default());
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let written = match part {
            Part::Whole => api.patch(name, &params, &patch).await?,
            Part::Status => api.patch_status(name, &params, &patch).await?,
        };
        Ok(told(turn, written.0))
    }

    async fn deleted(&self, turn: &Turn, params: &DeleteParams) -> Result<(), kube::Error> {
        let name = self.meta().name.as_deref().unwrap_or_default();
        // What is held up is answered with the object, what is gone with a status.
        let answer = trimmed(turn, self).delete(name, params).await?;
        drop(answer.left().map(|Trimmed(held_up)| told(turn, held_up)));
        Ok(())
    }
}

/// Changes parts of an object, if it still is as it was read. Lists are replaced as a whole.
pub(super) async fn patch<K: Writable>(turn: &Turn, object: &K, change: Value) -> Result<K, Error> {
    let written = object.merged(turn, Part::Whole, &prepared(object, change)).await;
    written.map_err(|source| failed("change", object, source))
}

/// Replaces the status of an object, if the object still is as it was read. Fields that its type does not know stay. One of
/// Cluster API says with it that it is not paused, and that no machine has a version any more: an empty list is left out of a
/// status, and would stay as it was.
pub(super) async fn status<K: Writable>(turn: &Turn, object: &K, status: &impl Serialize) -> Result<K, Error> {
    let mut change = json!({"status": status});
    if object.said().is_some() {
        pause::deny(&mut change["status"], object.metadata(), &turn.now());
        if let Some(status) = change["status"].as_object_mut() {
            status.entry("versions").or_insert(Value::Null);
        }
    }
    patch_status(turn, object, change).await
}

/// Replaces the conditions of an object, and nothing else of its status.
pub(super) async fn conditions<K: Writable>(turn: &Turn, object: &K, conditions: &[Condition]) -> Result<K, Error> {
    patch_status(turn, object, json!({"status": {"conditions": conditions}})).await
}

async fn patch_status<K: Writable>(turn: &Turn, object: &K, change: Value) -> Result<K, Error> {
    let written = object.merged(turn, Part::Status, &prepared(object, change)).await;
    written.map_err(|source| failed("change the status of", object, source))
}

/// Makes an object.
pub(super) async fn create<K: Watched + Serialize>(turn: &Turn, object: &K) -> Result<K, Error> {
    let created = api(turn, object).create(&PostParams::default(), object).await;
    Ok(told(turn, created.map_err(|source| failed("create", object, source))?))
}

/// Deletes this object, and no later one of its name. One that is gone is fine.
pub(super) async fn delete<K: Writable>(turn: &Turn, object: &K) -> Result<(), Error> {
    delete_with(turn, object, DeleteParams::background()).await
}

/// The same, unless it is on its way out already.
pub(super) async fn delete_once<K: Writable>(turn: &Turn, object: &K) -> Result<(), Error> {
    if deleting(object.metadata()) { Ok(()) } else { delete(turn, object).await }
}

/// The same, as it is told to.
pub(super) async fn delete_with<K: Writable>(turn: &Turn, object: &K, params: DeleteParams) -> Result<(), Error> {
    let preconditions = Preconditions { uid: object.metadata().uid.clone(), resource_version: None };
    match object.deleted(turn, &params.preconditions(preconditions)).await {
        Ok(()) => Ok(()),
        Err(source) => match failed("delete", object, source) {
            error if error.is_not_found() => Ok(()),
            error => Err(error),
        },
    }
}

/// Lets an object go.
pub(super) async fn release<K: Writable>(turn: &Turn, object: &K, finalizer: &str) -> Result<(), Error> {
    let Some(finalizers) = without_finalizer(object.metadata(), finalizer) else { return Ok(()) };
    match patch(turn, object, json!({"metadata": {"finalizers": finalizers}})).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// What was attempted with which object.
pub(super) fn failed<K: Writable>(verb: &'static str, object: &K, source: kube::Error) -> Error {
    Error::Api { verb, object: title(object), source: Box::new(source) }
}

/// The object as people call it.
pub(super) fn title<K: Writable>(object: &K) -> String {
    format!("{} {}", object.called(), path(object.metadata()))
}

fn prepared<K: Writable>(object: &K, mut patch: Value) -> Value {
    patch["metadata"]["resourceVersion"] = json!(object.metadata().resource_version);
    patch
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
