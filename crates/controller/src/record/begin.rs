//! The beginning of an update: first its cluster says that it begins, then there is a record of it.
//!
//! The first is written only on the cluster that was looked at. Whoever changes their mind between a look and its record is heard
//! by that: either they were first, and the cluster is planned for anew, or admission sees that an update begins and answers them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PostParams;
use kube::{Api, Resource};
use serde_json::json;
use windlass_api::kind::cluster_update::{ApprovalRecord, ClusterUpdate, ClusterUpdateSpec};
use windlass_api::kind::tanzu::{TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_api::{annotation, label};
use windlass_plan::planner::Record;
use windlass_runtime::runner::Ctx;

use super::condition::moment;
use super::{RecordError, apply_status, namespace, object};
use crate::execute::FIELD_MANAGER;
use crate::reconcile::belongs_to;
use crate::reconcile::context::Context;
use crate::said::{is_already_exists, is_conflict};

/// Whether an update has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It is on record.
    Yes,
    /// The cluster is not what was looked at any more. Nothing was written.
    Outdated,
}

/// Makes the record of an update that begins. It is there before anything is written for the update, so that a restart finds
/// out which one it was.
pub(crate) async fn begin(
    ctx: &Ctx<Context>,
    tkc: &TanzuKubernetesCluster,
    begin: &Record,
) -> Result<Begun, RecordError> {
    let Some(update) = record(tkc, begin, ctx.access.clock.now()) else { return Ok(Begun::Outdated) };
    let name = update.metadata.name.clone().unwrap_or_default();
    if !announce(ctx, tkc, &name).await? {
        return Ok(Begun::Outdated);
    }
    let api: Api<ClusterUpdate> = Api::namespaced(ctx.access.client.clone(), namespace(tkc));
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    let live = match api.create(&params, &update).await {
        Ok(created) => created,
        Err(error) if is_already_exists(&error) => {
            let read = api.get(&name).await;
            read.map_err(RecordError::api("read", format!("ClusterUpdate/{name}")))?
        }
        Err(error) => return Err(RecordError::api("create", format!("ClusterUpdate/{name}"))(error)),
    };
    if !belongs_to(&live.metadata, tkc) || live.spec.id != update.spec.id {
        return Err(RecordError::Foreign { name });
    }
    ctx.wrote(&ctx.caches.updates, &live);
    Ok(Begun::Yes)
}

/// Says on a cluster that an update begins; not if it has changed since it was looked at.
async fn announce(ctx: &Ctx<Context>, tkc: &TanzuKubernetesCluster, update: &str) -> Result<bool, RecordError> {
    let before = tkc.status.clone().unwrap_or_default();
    let status = TanzuKubernetesClusterStatus { update: Some(update.to_owned()), ..before };
    let looked_at = json!({"uid": tkc.metadata.uid, "resourceVersion": tkc.metadata.resource_version});
    match apply_status(ctx, tkc, looked_at, &status).await {
        Ok(()) => Ok(true),
        Err(error) if is_conflict(&error) => Ok(false),
        Err(error) => Err(RecordError::api("announce an update on", object(tkc))(error)),
    }
}

/// The record of an update that begins.
fn record(tkc: &TanzuKubernetesCluster, begin: &Record, now: Timestamp) -> Option<ClusterUpdate> {
    let Record::Begin { name, ordinal, id, from, to, envelope_digest, cause } = begin else { return None };
    let cluster = tkc.metadata.name.clone().unwrap_or_default();
    let spec = ClusterUpdateSpec {
        cluster: cluster.clone(),
        ordinal: *ordinal,
        id: id.to_string(),
        from: from.clone(),
        to: to.clone(),
        envelope_digest: envelope_digest.clone(),
        cause: cause.clone(),
        approval: approval(&tkc.metadata, envelope_digest, now),
    };
    let mut update = ClusterUpdate::new(name.as_str(), spec);
    let labels = [(label::CLUSTER_NAME.name.to_owned(), cluster), label::UPDATE_ID.entry(id)];
    update.metadata.labels = Some(labels.into());
    update.metadata.owner_references = Some(vec![owner(tkc)]);
    Some(update)
}

/// Who agreed to just this.
pub(super) fn approval(cluster: &ObjectMeta, envelope: &str, now: Timestamp) -> Option<ApprovalRecord> {
    let text = |name: &str| cluster.annotations.as_ref()?.get(name).cloned();
    text(annotation::APPROVED.name).filter(|approved| approved == envelope)?;
    let by = text(annotation::DECIDED_BY.name).unwrap_or_else(|| "somebody".to_owned());
    Some(ApprovalRecord { by, at: moment(now), because: text(annotation::DECIDED_BECAUSE.name) })
}

fn owner(tkc: &TanzuKubernetesCluster) -> OwnerReference {
    OwnerReference {
        api_version: TanzuKubernetesCluster::api_version(&()).into_owned(),
        kind: TanzuKubernetesCluster::kind(&()).into_owned(),
        name: tkc.metadata.name.clone().unwrap_or_default(),
        uid: tkc.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}
