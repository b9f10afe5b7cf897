//! What people have ordered about an update, and how far that is.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use windlass_api::annotation;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;
use windlass_plan::inventory::{Abort, Approval, Orders, Rejection, UpdateRecord, UpdateRecordState};
use windlass_runtime::key::Key;

use super::{Gaps, Subject, management};
use crate::reconcile::JOB_NAMESPACE;
use crate::reconcile::context::Context;
use crate::resolve;
use crate::said::said;

/// The orders about the latest update.
pub(super) async fn find(
    ctx: &Context,
    subject: &Subject<'_>,
    record: Option<&UpdateRecord>,
    gaps: &mut Gaps,
) -> Orders {
    let live = management::latest_update(ctx, subject.tkc);
    let (Some(live), Some(record)) = (live, record) else { return Orders::default() };
    let Some(by) = who_aborts(&live) else { return Orders::default() };
    let order = Abort { by, back: None, upgrading: None, job: None, too_late: None };
    let abort = match record.state {
        UpdateRecordState::Running | UpdateRecordState::Failed => {
            Some(under_way(ctx, subject, (record, &live), order, gaps).await)
        }
        // It was followed, and stands until something else is asked for.
        UpdateRecordState::Aborted => resolve::asks_for(ctx, subject.tkc, &live).then_some(order),
        UpdateRecordState::Succeeded => None,
    };
    Orders { abort, ..Orders::default() }
}

/// Whether the next update has to be approved, and what was decided against.
pub(super) fn approval(tkc: &TanzuKubernetesCluster) -> Approval {
    let text = |name: &str| tkc.metadata.annotations.as_ref().and_then(|all| all.get(name)).cloned();
    let rejected = text(annotation::REJECTED.name).map(|digest| Rejection {
        digest,
        by: text(annotation::DECIDED_BY.name).unwrap_or_else(|| "somebody".to_owned()),
        because: text(annotation::DECIDED_BECAUSE.name).unwrap_or_default(),
    });
    Approval { is_required: text(annotation::APPROVAL.name).is_some(), rejected }
}

/// An order that is still to be followed.
async fn under_way(
    ctx: &Context,
    subject: &Subject<'_>,
    (record, live): (&UpdateRecord, &ClusterUpdate),
    order: Abort,
    gaps: &mut Gaps,
) -> Abort {
    let name = record.id.job_name();
    let upgrading = ctx.caches.jobs.get(&Key::namespaced(JOB_NAMESPACE, name.as_str()));
    let upgrading = upgrading.and_then(|job| gaps.take("Job of the update", management::revision(&job.metadata)));
    if upgrading.is_none() {
        still_running(ctx, name.as_str(), gaps).await;
    }
    let back = resolve::back(ctx, subject.tkc, live).ok();
    let job = management::job_named(ctx, subject, record.id.abort_job_name(), record.id).await;
    Abort { back, upgrading, job, ..order }
}

/// Who wants an update to be given up, if anybody does.
pub(crate) fn who_aborts(update: &ClusterUpdate) -> Option<String> {
    update.metadata.annotations.as_ref()?.get(annotation::ABORT.name).cloned()
}

/// A pod outlives its Job for a moment. Two that change the same machines must not run beside each other.
async fn still_running(ctx: &Context, job: &str, gaps: &mut Gaps) {
    let api: Api<Pod> = Api::namespaced(ctx.access.client.clone(), JOB_NAMESPACE);
    let of_job = ListParams::default().labels(&format!("{}={job}", label::JOB_NAME));
    let has_ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    match api.list(&of_job).await {
        Ok(pods) => {
            if let Some(pod) = pods.items.into_iter().find(|pod| !has_ended(pod)) {
                gaps.note(format!("Pod/{}", pod.metadata.name.unwrap_or_default()), "it has not ended yet");
            }
        }
        Err(error) => gaps.note(format!("Pods of Job/{job}"), said(&error)),
    }
}
