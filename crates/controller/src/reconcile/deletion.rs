//! The end of a cluster.
//!
//! The Job goes first, so that nothing makes machines any more; then the Cluster, the pools and, after the workers, the
//! control plane. What they own goes with them. Our finalizer is the last to go: until then the status names what is left, and
//! what keeps it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::wcp::{WCPCluster, WCPMachine};
use windlass_api::label;
use windlass_api::reason::DeletionReason;
use windlass_runtime::runner::{Ctx, Outcome};

use super::context::Context;
use super::{Error, FINALIZER, JOB_NAMESPACE, by_cluster_name, by_cluster_of_job, finalizers, has_finalizer};
use crate::record;
use crate::said::{is_conflict, is_not_found, said};

/// Machines of workers are not watched; this is how often they are asked for.
const REMAINS_AWAITED: Duration = Duration::from_secs(10);
/// An object that has been on its way out for so long is not going by itself.
const PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// Something that is left of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// What, as `Kind/name`.
    pub object: String,
    /// What keeps it, as far as that can be seen.
    pub why: Option<String>,
    /// Since when it is on its way out.
    since: Option<Timestamp>,
}

impl Left {
    fn new(kind: &str, object: &impl Resource) -> Self {
        let meta = object.meta();
        let since = meta.deletion_timestamp.as_ref().map(|time| time.0);
        Self { object: shown(kind, object), why: held(meta), since }
    }

    /// Whether waiting will not help.
    pub(crate) fn is_stalled(&self, now: Timestamp) -> bool {
        self.since.is_some_and(|since| now.duration_since(since) >= PATIENCE)
    }
}

/// The finalizers that keep an object which is on its way out.
fn held(meta: &ObjectMeta) -> Option<String> {
    meta.deletion_timestamp.as_ref()?;
    match meta.finalizers.as_deref().unwrap_or_default() {
        [] => None,
        [one] => Some(format!("its finalizer {one} has not been removed")),
        several => Some(format!("its finalizers {} have not been removed", several.join(", "))),
    }
}

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
async fn jobs(ctx: &Ctx<Context>) -> Result<Option<Left>, Error> {
    let mut left = None;
    for job in ctx.caches.jobs.list_in(JOB_NAMESPACE) {
        if by_cluster_of_job(&job).contains(ctx.key()) {
            left = Some(delete(ctx, "Job", &*job).await?);
        }
    }
    Ok(left)
}

/// Deletes the Cluster, its pools and its control plane. Returns something that is still there: what others wait for first.
async fn cluster_and_machines(ctx: &Ctx<Context>) -> Result<Option<Left>, Error> {
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
        return Ok(Some(leaving(ctx, worker).await));
    }
    for machine in &machines {
        delete(ctx, "Machine", machine).await?;
    }
    Ok(match (machines.first(), left) {
        (Some(machine), _) => Some(leaving(ctx, machine).await),
        (None, Some(left)) => Some(with_infrastructure(ctx, &namespace, left).await),
        (None, None) => None,
    })
}

/// A machine that is still there, and how far its removal is: Cluster API says so, down to the pod and its budget.
async fn leaving(ctx: &Ctx<Context>, machine: &Machine) -> Left {
    let left = Left::new("Machine", machine);
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let Some(deleting) = ConditionType::Deleting.among(conditions).filter(|_| left.since.is_some()) else {
        return left;
    };
    let why = match deleting.reason_as::<DeletionReason>() {
        None => return left,
        Some(DeletionReason::WaitingForInfrastructureDeletion) => infrastructure(ctx, machine).await,
        Some(_) => None,
    };
    let said = Some(deleting.message.trim()).filter(|message| !message.is_empty());
    let told = said.map_or_else(|| deleting.reason.clone(), |said| format!("{}: {}", deleting.reason, one_line(said)));
    Left { why: Some(why.unwrap_or(told)), ..left }
}

/// What keeps the infrastructure of a machine.
async fn infrastructure(ctx: &Ctx<Context>, machine: &Machine) -> Option<String> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<WCPMachine> = Api::namespaced(ctx.access.client.clone(), namespace);
    let name = &machine.spec.infrastructure_ref.name;
    // It is only for people: what cannot be read is not told, and nothing else depends on it.
    let live = api.get_metadata_opt(name).await.map_err(|error| tracing::debug!(name, error = said(&error))).ok()??;
    Some(format!("WCPMachine/{name} is still there: {}", held(&live.metadata)?))
}

/// A Cluster may wait for its infrastructure.
async fn with_infrastructure(ctx: &Ctx<Context>, namespace: &str, left: Left) -> Left {
    let api: Api<WCPCluster> = Api::namespaced(ctx.access.client.clone(), namespace);
    let name = &ctx.key().name;
    let read = api.get_metadata_opt(name).await.map_err(|error| tracing::debug!(name, error = said(&error)));
    let why = read.ok().flatten().and_then(|live| held(&live.metadata));
    match why {
        Some(why) => Left { why: Some(format!("WCPCluster/{name} is still there: {why}")), ..left },
        None => left,
    }
}

/// A message of several lines in one: lists of pods are written so.
fn one_line(text: &str) -> String {
    text.lines().map(|line| line.trim().trim_start_matches("* ")).collect::<Vec<_>>().join("; ")
}

/// All Machines of the cluster, from the server: the last decision of a cluster's life is made on nothing less.
async fn machines(ctx: &Ctx<Context>, namespace: &str) -> Result<Vec<Machine>, Error> {
    let api: Api<Machine> = Api::namespaced(ctx.access.client.clone(), namespace);
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, ctx.key().name));
    let listed = api.list(&of_cluster).await;
    let listed = listed.map_err(|source| Error::Remains { cluster: ctx.key().clone(), source: Box::new(source) })?;
    Ok(listed.items)
}

/// Deletes an object as it was seen, unless it is being deleted already. Returns what is left of it: itself.
async fn delete<K>(ctx: &Ctx<Context>, kind: &str, object: &K) -> Result<Left, Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (meta, left) = (object.meta(), Left::new(kind, object));
    if meta.deletion_timestamp.is_some() {
        return Ok(left);
    }
    let api: Api<K> = Api::namespaced(ctx.access.client.clone(), meta.namespace.as_deref().unwrap_or_default());
    let seen = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
    let params = DeleteParams::background().preconditions(seen);
    match api.delete(meta.name.as_deref().unwrap_or_default(), &params).await {
        Ok(_) => Ok(left),
        // Gone, or changed since: the next look decides anew.
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(left),
        Err(source) => Err(Error::Delete { object: left.object, source: Box::new(source) }),
    }
}

fn shown(kind: &str, object: &impl Resource) -> String {
    format!("{kind}/{}", object.meta().name.as_deref().unwrap_or_default())
}
