//! What people are told: what changed between two statuses.

use kube::Resource;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateStatus, StepOutcome, StepRecord, UpdateState};
use windlass_api::kind::condition;
use windlass_api::kind::tanzu::TanzuKubernetesClusterStatus;
use windlass_plan::step::Stage;
use windlass_runtime::events::{Kind, Notice};

use super::condition::AS_ASKED;
use super::steps::MACHINE;

/// What people are warned of as soon as it is known: workers that do not get anywhere.
const STUCK: [&str; 3] = ["DrainBlocked", "MachineFailed", "PoolStalled"];

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
        let summary = Some(&update.spec.cause.summary).filter(|summary| !summary.is_empty());
        let change = summary.cloned().unwrap_or_else(|| format!("{from} -> {to}"));
        notices.push(tell(Kind::Normal, "UpdateBegan".into(), format!("{name} began: {change}")));
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
    for step in replaced(before, status) {
        let note = format!("{name}: {} has been replaced", step.object);
        notices.push(tell(Kind::Normal, "MachineReplaced".into(), note));
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
                format!("{name}: given up, the cluster keeps {from}"),
            ));
        }
        Some(UpdateState::Running) if before.state.is_some() => {
            notices.push(tell(Kind::Normal, "UpdateResumed".into(), format!("{name}: tried again")));
        }
        Some(UpdateState::Running) | None => {}
    }
    notices
}

/// The machines of the control plane that have left since: their successors have taken their places.
fn replaced<'s>(
    before: &'s ClusterUpdateStatus,
    status: &'s ClusterUpdateStatus,
) -> impl Iterator<Item = &'s StepRecord> {
    let left =
        |step: &&StepRecord| step.id == MACHINE && step.verb == "delete" && step.outcome == Some(StepOutcome::Done);
    let known = move |step: &StepRecord| before.steps.iter().filter(left).any(|known| known.object == step.object);
    // One that the update made itself was to be a successor, and has no place that another could take.
    let made = |step: &StepRecord| status.steps.iter().any(|made| made.verb == "create" && made.object == step.object);
    status.steps.iter().filter(left).filter(move |step| !known(step) && !made(step))
}

/// Whether a notice is about the whole of an update, and so is told on the update's own object too.
pub(super) fn decides(notice: &Notice) -> bool {
    notice.reason.starts_with("Update")
}

/// That a certificate is missing, when it was not before.
pub(super) fn of_secrets(
    before: &TanzuKubernetesClusterStatus,
    status: &TanzuKubernetesClusterStatus,
) -> Option<Notice> {
    let lost = |status: &TanzuKubernetesClusterStatus| {
        let intact = ConditionType::SecretsIntact.among(&status.conditions)?;
        (intact.status == ConditionStatus::False.as_str()).then(|| intact.message.clone())
    };
    let note = lost(status).filter(|_| lost(before).is_none())?;
    Some(Notice {
        kind: Kind::Warning,
        reason: "SecretsLost".to_owned(),
        action: "Observe".to_owned(),
        note,
        related: None,
    })
}

/// That the image of its release is not what it was, when it was before.
pub(super) fn of_release(
    before: &TanzuKubernetesClusterStatus,
    status: &TanzuKubernetesClusterStatus,
) -> Option<Notice> {
    let missed = |status: &TanzuKubernetesClusterStatus| {
        ConditionType::ReleaseAvailable.among(&status.conditions).map(|it| (it.reason.clone(), it.message.clone()))
    };
    let (reason, note) = missed(status).filter(|new| missed(before).as_ref() != Some(new))?;
    Some(Notice { kind: Kind::Warning, reason, action: "Resolve".to_owned(), note, related: None })
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

/// What is new about a cluster: an update that nobody has asked for, and what it waits for.
pub(super) fn of_cluster(before: &TanzuKubernetesClusterStatus, status: &TanzuKubernetesClusterStatus) -> Vec<Notice> {
    let type_ = ConditionType::UpdatePending.as_str();
    let said = |status: &TanzuKubernetesClusterStatus| {
        condition(&status.conditions, type_).map(|pending| pending.message.clone())
    };
    let pending = said(status).filter(|message| Some(message) != said(before).as_ref()).map(|note| Notice {
        kind: Kind::Normal,
        reason: type_.to_owned(),
        action: "Reconcile".to_owned(),
        note,
        related: None,
    });
    pending.into_iter().chain(waiting(before, status)).collect()
}

/// What a cluster waits for now, if that is something else than before.
fn waiting(before: &TanzuKubernetesClusterStatus, status: &TanzuKubernetesClusterStatus) -> Option<Notice> {
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
    let kind = if stalled || STUCK.contains(&reason.as_str()) { Kind::Warning } else { Kind::Normal };
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
