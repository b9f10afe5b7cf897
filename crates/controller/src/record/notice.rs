//! What people are told: what changed between two statuses.

use kube::Resource;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateStatus, UpdateState};
use windlass_api::kind::condition;
use windlass_api::kind::tanzu::TanzuKubernetesClusterStatus;
use windlass_plan::step::Stage;
use windlass_runtime::events::{Kind, Notice};

use super::condition::AS_ASKED;

/// What happened to an update.
pub(super) fn of_update(
    update: &ClusterUpdate,
    before: &ClusterUpdateStatus,
    status: &ClusterUpdateStatus,
) -> Vec<Notice> {
    let name = update.metadata.name.as_deref().unwrap_or_default();
    let (from, to) = (&update.spec.from.distribution, &update.spec.to.distribution);
    let tell = |kind, reason: String, note: String| Notice {
        kind,
        reason,
        action: "Update".to_owned(),
        note,
        related: Some(update.object_ref(&())),
    };
    let mut notices = Vec::new();
    if before.state.is_none() {
        notices.push(tell(Kind::Normal, "UpdateBegan".into(), format!("{name}: {from} -> {to}")));
    }
    for stage in Stage::ALL {
        let (was, is) = (Progress::of(before, stage), Progress::of(status, stage));
        let word = capitalized(stage);
        if is.begun && !was.begun {
            notices.push(tell(Kind::Normal, format!("{word}Began"), format!("{name}: the stage {stage} has begun")));
        }
        if is.ended && !was.ended {
            notices.push(tell(Kind::Normal, format!("{word}Done"), format!("{name}: the stage {stage} is done")));
        }
    }
    match status.state.filter(|state| Some(*state) != before.state) {
        Some(UpdateState::Succeeded) => {
            notices.push(tell(Kind::Normal, "UpdateSucceeded".into(), format!("{name}: the cluster has {to}")));
        }
        Some(UpdateState::Failed) => {
            let why = status.failure.as_deref().unwrap_or_default();
            notices.push(tell(Kind::Warning, "UpdateFailed".into(), format!("{name}: {why}")));
        }
        Some(UpdateState::Aborted) => {
            notices.push(tell(
                Kind::Normal,
                "UpdateAborted".into(),
                format!("{name}: given up, the cluster has {from}"),
            ));
        }
        Some(UpdateState::Running) if before.state.is_some() => {
            notices.push(tell(Kind::Normal, "UpdateResumed".into(), format!("{name}: tried again")));
        }
        Some(UpdateState::Running) | None => {}
    }
    notices
}

/// How far a stage is.
#[derive(Default)]
struct Progress {
    begun: bool,
    ended: bool,
}

impl Progress {
    fn of(status: &ClusterUpdateStatus, stage: Stage) -> Self {
        let record = status.stages.iter().find(|record| record.stage == stage.as_str());
        record.map_or_else(Self::default, |record| Self {
            begun: record.started_at.is_some(),
            ended: record.finished_at.is_some(),
        })
    }
}

/// What a cluster waits for now, if that is something else than before.
pub(super) fn of_cluster(
    before: &TanzuKubernetesClusterStatus,
    status: &TanzuKubernetesClusterStatus,
) -> Option<Notice> {
    let ready = |status: &TanzuKubernetesClusterStatus| {
        condition(&status.conditions, ConditionType::Ready.as_str()).map(|ready| ready.reason.clone())
    };
    let reason = ready(status).filter(|reason| Some(reason) != ready(before).as_ref())?;
    let stalled = windlass_api::kind::is_true(&status.conditions, ConditionType::Stalled.as_str());
    let note = match &status.waiting_for {
        Some(waiting_for) => waiting_for.clone(),
        None if reason == AS_ASKED => "the cluster is as it was asked to be".to_owned(),
        None => return None,
    };
    let kind = if stalled { Kind::Warning } else { Kind::Normal };
    Some(Notice { kind, reason, action: "Reconcile".to_owned(), note, related: None })
}

/// The stage as the beginning of a reason.
fn capitalized(stage: Stage) -> &'static str {
    match stage {
        Stage::Packages => "Packages",
        Stage::ControlPlane => "ControlPlane",
        Stage::Workers => "Workers",
    }
}
