//! The record of an upgrade of a cluster of a class, where somebody had to approve it: who did, and how it ended.
//!
//! Elsewhere such a cluster has none: Cluster API does the most of it, and says how far it is.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, UpdateState};
use windlass_api::label;
use windlass_plan::bootstrap::approval::{ended, of_cluster};
use windlass_plan::bootstrap::course::Course;
use windlass_plan::resolve::labelled::course::{Course as Recorded, goes_on};

use super::begin::approval;
use super::condition::moment;
use super::{RecordError, apply_update};
use crate::execute::FIELD_MANAGER;
use crate::said::is_already_exists;

/// The last upgrade of this very cluster that is on record.
pub(crate) async fn latest(client: &Client, cluster: &Cluster) -> Result<Option<ClusterUpdate>, kube::Error> {
    let (namespace, name) = names(cluster);
    let api: Api<ClusterUpdate> = Api::namespaced(client.clone(), namespace);
    let listed = api.list(&ListParams::default().labels(&of_cluster(name))).await?;
    Ok(Recorded::latest(cluster, &listed.items).cloned())
}

fn names(cluster: &Cluster) -> (&str, &str) {
    (cluster.metadata.namespace.as_deref().unwrap_or_default(), cluster.metadata.name.as_deref().unwrap_or_default())
}

/// Makes the record of an upgrade that begins, with who agreed to it. It is there before anything is written for the upgrade.
pub(crate) async fn begin(
    client: &Client,
    cluster: &Cluster,
    mut spec: ClusterUpdateSpec,
    now: Timestamp,
) -> Result<(), RecordError> {
    let (namespace, of) = names(cluster);
    let name = format!("{of}-{}", spec.ordinal);
    spec.approval = approval(&cluster.metadata, &spec.envelope_digest, now);
    let labels = [label::CLUSTER_NAME.name, label::UPDATE_ID.name].map(str::to_owned);
    let labels = labels.into_iter().zip([of.to_owned(), spec.id.clone()]).collect();
    let mut record = ClusterUpdate::new(&name, spec);
    record.metadata.labels = Some(labels);
    record.metadata.owner_references = Some(vec![OwnerReference {
        api_version: Cluster::api_version(&()).into_owned(),
        kind: Cluster::kind(&()).into_owned(),
        name: of.to_owned(),
        uid: cluster.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    let api: Api<ClusterUpdate> = Api::namespaced(client.clone(), namespace);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    match api.create(&params, &record).await {
        Ok(_) => Ok(()),
        // It is looked at again: either it is this one, or one of another cluster of that name is in the way.
        Err(error) if is_already_exists(&error) => Err(RecordError::Foreign { name }),
        Err(error) => Err(RecordError::api("create", format!("ClusterUpdate/{name}"))(error)),
    }
}

/// Writes down how far an upgrade on record is.
pub(crate) async fn follow(
    client: &Client,
    course: &Course<'_>,
    latest: &ClusterUpdate,
    now: Timestamp,
) -> Result<(), RecordError> {
    if !goes_on(latest) {
        return Ok(());
    }
    let before = latest.status.clone().unwrap_or_default();
    let started_at = before.started_at.clone().or_else(|| Some(moment(now)));
    let status = match ended(course, latest) {
        None => ClusterUpdateStatus {
            state: Some(UpdateState::Running),
            waiting_for: course.waits(),
            started_at,
            ..before.clone()
        },
        Some((state, failure)) => ClusterUpdateStatus {
            state: Some(state),
            waiting_for: Vec::new(),
            started_at,
            finished_at: Some(moment(now)),
            failure,
            ..before.clone()
        },
    };
    if status == before {
        return Ok(());
    }
    apply_update(client, latest, &status).await.map(drop)
}
