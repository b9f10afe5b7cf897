//! The end of a cluster.
//!
//! The Job goes first, so that nothing makes machines any more; then the Cluster, the pools and, after the workers, the
//! control plane. What they own goes with them. Our finalizer is the last to go: until then the status names what is left.

use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;
use windlass_runtime::runner::{Ctx, Outcome};

use super::context::Context;
use super::{Error, FINALIZER, JOB_NAMESPACE, by_cluster_name, by_cluster_of_job, finalizers, has_finalizer};
use crate::record;
use crate::said::{is_conflict, is_not_found};

/// Machines of workers are not watched; this is how often they are asked for.
const REMAINS_AWAITED: Duration = Duration::from_secs(10);

/// One step towards the end.
pub(super) async fn advance(ctx: &Ctx<Context>, cluster: &TanzuKubernetesCluster) -> Result<Outcome, Error> {
    if !has_finalizer(cluster) {
        return Ok(Outcome::done());
    }
    let left = match jobs(ctx).await? {
        Some(job) => Some(job),
        None => cluster_and_machines(ctx).await?,
    };
    if let Some(left) = left {
        record::deleting(ctx, cluster, &left).await?;
        return Ok(Outcome::requeue_after(REMAINS_AWAITED));
    }
    ctx.memory.forget(ctx.key());
    ctx.pace.hurry(ctx.key());
    let others = finalizers(cluster).filter(|finalizer| finalizer != FINALIZER).collect();
    super::set_finalizers(ctx, cluster, "release", others).await?;
    Ok(Outcome::done())
}

/// Deletes the Jobs of the cluster. Returns one that is still there.
async fn jobs(ctx: &Ctx<Context>) -> Result<Option<String>, Error> {
    let mut left = None;
    for job in ctx.caches.jobs.list_in(JOB_NAMESPACE) {
        if by_cluster_of_job(&job).contains(ctx.key()) {
            left = Some(delete(ctx, "Job", &*job).await?);
        }
    }
    Ok(left)
}

/// Deletes the Cluster, its pools and its control plane. Returns something that is still there.
async fn cluster_and_machines(ctx: &Ctx<Context>) -> Result<Option<String>, Error> {
    let namespace = ctx.key().namespace.clone().unwrap_or_default();
    let mut left = None;
    if let Some(cluster) = ctx.caches.clusters.get(ctx.key()) {
        left = Some(delete(ctx, "Cluster", &*cluster).await?);
    }
    for pool in ctx.caches.deployments.list_in(&namespace) {
        if by_cluster_name(&*pool).contains(ctx.key()) {
            left = Some(delete(ctx, "MachineDeployment", &*pool).await?);
        }
    }
    let machines = machines(ctx, &namespace).await?;
    let is_worker =
        |machine: &&Machine| !label::CONTROL_PLANE.is_in(&machine.metadata.labels.clone().unwrap_or_default());
    if let Some(worker) = machines.iter().find(is_worker) {
        return Ok(Some(shown("Machine", worker)));
    }
    for machine in &machines {
        left = Some(delete(ctx, "Machine", machine).await?);
    }
    Ok(left)
}

/// All Machines of the cluster, from the server: the last decision of a cluster's life is made on nothing less.
async fn machines(ctx: &Ctx<Context>, namespace: &str) -> Result<Vec<Machine>, Error> {
    let api: Api<Machine> = Api::namespaced(ctx.access.client.clone(), namespace);
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, ctx.key().name));
    let listed = api.list(&of_cluster).await;
    let listed = listed.map_err(|source| Error::Remains { cluster: ctx.key().clone(), source: Box::new(source) })?;
    Ok(listed.items)
}

/// Deletes an object as it was seen, unless it is being deleted already. Returns its name.
async fn delete<K>(ctx: &Ctx<Context>, kind: &str, object: &K) -> Result<String, Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (meta, shown) = (object.meta(), shown(kind, object));
    if meta.deletion_timestamp.is_some() {
        return Ok(shown);
    }
    let api: Api<K> = Api::namespaced(ctx.access.client.clone(), meta.namespace.as_deref().unwrap_or_default());
    let seen = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
    let params = DeleteParams::background().preconditions(seen);
    match api.delete(meta.name.as_deref().unwrap_or_default(), &params).await {
        Ok(_) => Ok(shown),
        // Gone, or changed since: the next look decides anew.
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(shown),
        Err(source) => Err(Error::Delete { object: shown, source: Box::new(source) }),
    }
}

fn shown(kind: &str, object: &impl Resource) -> String {
    format!("{kind}/{}", object.meta().name.as_deref().unwrap_or_default())
}
