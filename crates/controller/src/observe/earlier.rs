//! What earlier updates of a cluster have left. What is whose follows from the uid of the cluster: no label is relied on.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use windlass_api::name::{ObjectName, Uid, UpdateId};
use windlass_plan::inventory::{EarlierJob, UpdateRecord};
use windlass_runtime::key::Key;

use super::management;
use crate::reconcile::JOB_NAMESPACE;
use crate::reconcile::context::Context;

/// The Jobs of all updates before this one but for the last that had any, as far as they have ended.
pub(super) fn jobs(ctx: &Context, cluster: &Uid, update: &UpdateRecord) -> Vec<EarlierJob> {
    let of = |ordinal: u64| {
        let id = UpdateId::new(cluster, ordinal);
        let found = |name: ObjectName| {
            let live = ctx.caches.jobs.get(&Key::namespaced(JOB_NAMESPACE, name.as_str()))?;
            Some((name, live))
        };
        [id.job_name(), id.abort_job_name()].into_iter().filter_map(found).collect::<Vec<(ObjectName, Arc<Job>)>>()
    };
    let had_any = (1..update.ordinal).rev().map(of).filter(|jobs| !jobs.is_empty());
    let earlier = had_any.skip(1).flatten().filter(|(_, live)| has_ended(live));
    let job = |(name, live): (ObjectName, Arc<Job>)| {
        Some(EarlierJob { name, revision: management::revision(&live.metadata).ok()? })
    };
    earlier.filter_map(job).collect()
}

fn has_ended(job: &Job) -> bool {
    management::ended(job).is_some() && job.metadata.deletion_timestamp.is_none()
}
