//! Writes down what was found out: the status of the cluster, the record of its update, and Events for what changed in them.
//!
//! Written only when something changed: a status that says the same again would wake everybody who watches it.

mod addons;
mod begin;
pub(crate) mod class;
pub(crate) mod classic;
mod cluster;
mod condition;
mod notice;
mod steps;
#[cfg(test)]
mod tests;
mod update;
mod waits;

pub(crate) use begin::{Begun, begin};
pub(crate) use condition::moment;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_update::{AttemptRecord, ClusterUpdate, ClusterUpdateStatus};
use windlass_api::kind::tanzu::{TanzuKubernetesCluster, TanzuKubernetesClusterStatus};
use windlass_plan::check::Finding;
use windlass_plan::planner::{Planned, PlanningInput};
use windlass_runtime::events::Notice;
use windlass_runtime::runner::Ctx;
use windlass_runtime::trimmed::Trimmed;

use crate::execute::{Executed, FIELD_MANAGER};
use crate::reconcile::context::Context;
use crate::reconcile::deletion::Left;
use crate::resolve::Unresolved;
use crate::said::{said, with_causes};

/// Why something could not be written down.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The API refused, or could not be reached.
    #[error("{verb} {object}: {}", said(source))]
    Api {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        object: String,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is a record of that name, which is of another cluster or update.
    #[error("create ClusterUpdate/{name}: there is one already, of another cluster or update")]
    Foreign {
        /// Its name.
        name: String,
    },
}

impl RecordError {
    fn api(verb: &'static str, object: String) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { verb, object, source: Box::new(source) }
    }
}

/// All that came of one look at a cluster.
pub(crate) struct Recorded<'a> {
    pub input: &'a PlanningInput,
    pub planned: &'a Planned,
    pub findings: &'a [Finding],
    pub executed: &'a Executed,
    pub attempts: &'a [AttemptRecord],
}

/// Takes back the order to give an update up, after it was followed and its cluster asked for something else.
pub(crate) async fn answered(ctx: &Ctx<Context>, update: &ClusterUpdate) -> Result<(), RecordError> {
    let name = update.metadata.name.as_deref().unwrap_or_default();
    let namespace = update.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<ClusterUpdate> = Api::namespaced(ctx.access.client.clone(), namespace);
    // Of this very record: another order may be on one of its name.
    let metadata = json!({"uid": update.metadata.uid, "annotations": {annotation::ABORT.name: null}});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let patched = api.patch(name, &params, &Patch::Merge(json!({ "metadata": metadata }))).await;
    let live = patched.map_err(RecordError::api("patch", format!("ClusterUpdate/{name}")))?;
    ctx.wrote(&ctx.caches.updates, &live);
    Ok(())
}

/// Writes down what came of a look at a cluster, failures included.
pub(crate) async fn outcome(
    ctx: &Ctx<Context>,
    tkc: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
    recorded: &Recorded<'_>,
) -> Result<(), RecordError> {
    let mut notices = Vec::new();
    let mut stage = None;
    if let Some(latest) = latest {
        let before = latest.status.clone().unwrap_or_default();
        let status = update::status(&before, latest, recorded);
        if status != before {
            write_update(ctx, latest, &status).await?;
            notices.extend(tell_update(ctx, tkc, latest, &before, &status).await);
        }
        stage = status.stage;
    }
    let before = tkc.status.clone().unwrap_or_default();
    let status = cluster::status(&before, tkc, latest, stage.as_deref(), recorded);
    // After steps that were made the next look comes at once, and knows what they have led to.
    let passing = recorded.executed.made > 0 && recorded.executed.failures.is_empty();
    let status = if passing && status.phase == before.phase { before.clone() } else { status };
    let status = cluster::dated(&before, status, recorded.input.now);
    write_cluster(ctx, tkc, &before, status, notices).await
}

/// Tells of an update on its own object what decides it. Returns all of it, to be told on the cluster's too.
async fn tell_update(
    ctx: &Context,
    tkc: &TanzuKubernetesCluster,
    update: &ClusterUpdate,
    before: &ClusterUpdateStatus,
    status: &ClusterUpdateStatus,
) -> Vec<Notice> {
    let notices = notice::of_update(update, before, status);
    let regarding = update.object_ref(&());
    for notice in notices.iter().filter(|notice| notice::decides(notice)) {
        let notice = Notice { related: Some(tkc.object_ref(&())), ..notice.clone() };
        publish(ctx, &regarding, &notice).await;
    }
    notices
}

/// Writes down why a cluster cannot even be planned for. An update that runs waits for that, too.
pub(crate) async fn unresolved(
    ctx: &Ctx<Context>,
    tkc: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
    why: &Unresolved,
) -> Result<(), RecordError> {
    if let Some(latest) = latest {
        let before = latest.status.clone().unwrap_or_default();
        let status = update::unresolved(&before, why, ctx.access.clock.now());
        if status != before {
            write_update(ctx, latest, &status).await?;
        }
    }
    let before = tkc.status.clone().unwrap_or_default();
    let status = cluster::unresolved(&before, tkc, latest, why);
    let status = cluster::dated(&before, status, ctx.access.clock.now());
    write_cluster(ctx, tkc, &before, status, Vec::new()).await
}

/// Writes down what keeps a cluster that is being deleted.
pub(crate) async fn deleting(ctx: &Ctx<Context>, tkc: &TanzuKubernetesCluster, left: &Left) -> Result<(), RecordError> {
    let before = tkc.status.clone().unwrap_or_default();
    let now = ctx.access.clock.now();
    let status = cluster::dated(&before, cluster::deleting(&before, tkc, left, now), now);
    write_cluster(ctx, tkc, &before, status, Vec::new()).await
}

async fn write_cluster(
    ctx: &Ctx<Context>,
    tkc: &TanzuKubernetesCluster,
    before: &TanzuKubernetesClusterStatus,
    status: TanzuKubernetesClusterStatus,
    mut notices: Vec<Notice>,
) -> Result<(), RecordError> {
    if status != *before {
        // A cluster that is created anew under the same name has a status of its own.
        let written = apply_status(ctx, tkc, json!({"uid": tkc.metadata.uid}), &status).await;
        written.map_err(RecordError::api("write", format!("the status of {}", object(tkc))))?;
        notices.extend(notice::of_cluster(before, &status));
        notices.extend(notice::of_secrets(before, &status));
        notices.extend(notice::of_release(before, &status));
    }
    let regarding = tkc.object_ref(&());
    for notice in &notices {
        publish(ctx, &regarding, notice).await;
    }
    Ok(())
}

/// Applies the status of a cluster, where its metadata is this.
async fn apply_status(
    ctx: &Ctx<Context>,
    tkc: &TanzuKubernetesCluster,
    mut metadata: Value,
    status: &TanzuKubernetesClusterStatus,
) -> Result<(), kube::Error> {
    let name = tkc.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Trimmed<TanzuKubernetesCluster>> = Api::namespaced(ctx.access.client.clone(), namespace(tkc));
    metadata["name"] = name.into();
    let patch = json!({
        "apiVersion": TanzuKubernetesCluster::api_version(&()),
        "kind": TanzuKubernetesCluster::kind(&()),
        "metadata": metadata,
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    ctx.wrote(&ctx.caches.tkcs, &api.patch_status(name, &params, &Patch::Apply(&patch)).await?.0);
    Ok(())
}

async fn write_update(
    ctx: &Ctx<Context>,
    update: &ClusterUpdate,
    status: &ClusterUpdateStatus,
) -> Result<(), RecordError> {
    ctx.wrote(&ctx.caches.updates, &apply_update(&ctx.access.client, update, status).await?);
    Ok(())
}

/// Applies the status of an update.
async fn apply_update(
    client: &Client,
    update: &ClusterUpdate,
    status: &ClusterUpdateStatus,
) -> Result<ClusterUpdate, RecordError> {
    let name = update.metadata.name.as_deref().unwrap_or_default();
    let namespace = update.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<Trimmed<ClusterUpdate>> = Api::namespaced(client.clone(), namespace);
    let patch = json!({
        "apiVersion": ClusterUpdate::api_version(&()),
        "kind": ClusterUpdate::kind(&()),
        "metadata": {"name": name, "uid": update.metadata.uid},
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let written = api.patch_status(name, &params, &Patch::Apply(&patch)).await;
    let object = format!("the status of ClusterUpdate/{name}");
    Ok(written.map_err(RecordError::api("write", object))?.0)
}

/// Events are for people who look at the right time; no update waits for one that could not be told.
async fn publish(ctx: &Context, regarding: &ObjectReference, notice: &Notice) {
    if let Err(error) = ctx.recorder.publish(regarding, notice).await {
        tracing::warn!(reason = notice.reason, error = with_causes(&error), "an Event was not published");
    }
}

fn namespace(tkc: &TanzuKubernetesCluster) -> &str {
    tkc.metadata.namespace.as_deref().unwrap_or_default()
}

fn object(tkc: &TanzuKubernetesCluster) -> String {
    format!("TanzuKubernetesCluster/{}", tkc.metadata.name.as_deref().unwrap_or_default())
}
