//! The status of an update's record.

use windlass_api::kind::cluster_update::{ClusterUpdate, ClusterUpdateStatus, StageRecord, UpdateState, WaitingFor};
use windlass_plan::check::Severity;
use windlass_plan::planner::Record;
use windlass_plan::report::{Report, StageReport, StageState};

use super::Recorded;
use super::condition::moment;

/// What the record says from now on. One that has ended says what it said, unless it is resumed, or was given up.
pub(super) fn status(
    before: &ClusterUpdateStatus,
    update: &ClusterUpdate,
    recorded: &Recorded<'_>,
) -> ClusterUpdateStatus {
    let record = recorded.planned.record.as_ref();
    let changed = matches!(record, Some(Record::Resumed | Record::Aborted));
    let ended = matches!(before.state, Some(UpdateState::Succeeded | UpdateState::Failed | UpdateState::Aborted));
    if ended && !changed {
        return before.clone();
    }
    let now = moment(recorded.input.now);
    let created = update.metadata.creation_timestamp.as_ref().map_or_else(|| now.clone(), |time| moment(time.0));
    let (state, failure) = match record {
        Some(Record::Succeeded) => (UpdateState::Succeeded, None),
        Some(Record::Failed { message }) => (UpdateState::Failed, Some(message.clone())),
        Some(Record::Aborted) => (UpdateState::Aborted, None),
        Some(Record::Begin { .. } | Record::Resumed) | None => (UpdateState::Running, None),
    };
    let report = &recorded.planned.report;
    let stages: Vec<StageRecord> = report.stages.iter().map(|stage| timed(before, stage, &now)).collect();
    ClusterUpdateStatus {
        state: Some(state),
        stage: at_stage(before, report, &stages),
        waiting_for: match state {
            UpdateState::Succeeded | UpdateState::Aborted => Vec::new(),
            UpdateState::Running | UpdateState::Failed => waiting_for(recorded),
        },
        stages,
        started_at: Some(before.started_at.clone().unwrap_or(created)),
        finished_at: (state != UpdateState::Running).then_some(now),
        failure,
        conditions: before.conditions.clone(),
    }
}

/// The stage that is worked on: the furthest that has begun and not ended. An earlier one may be unwell for a while whenever a
/// node joins, and what is left over of it is removed at the end; an update does not go back for that.
fn at_stage(before: &ClusterUpdateStatus, report: &Report, stages: &[StageRecord]) -> Option<String> {
    report.current()?;
    let begun = stages.iter().rfind(|stage| stage.started_at.is_some() && stage.finished_at.is_none());
    let next = || {
        let to_come = report
            .stages
            .iter()
            .zip(stages)
            .find(|(report, record)| report.state != StageState::Done && record.finished_at.is_none());
        to_come.map(|(_, record)| record)
    };
    begun.or_else(next).map(|stage| stage.stage.clone()).or_else(|| before.stage.clone())
}

/// When a stage began and ended. A stage that only waits has not begun, and one that has ended stays so.
fn timed(before: &ClusterUpdateStatus, report: &StageReport, now: &str) -> StageRecord {
    let known = before.stages.iter().find(|record| record.stage == report.stage.as_str()).cloned();
    let StageRecord { mut started_at, mut finished_at, .. } = known.unwrap_or_default();
    match report.state {
        StageState::Ready | StageState::Running | StageState::Failed => {
            started_at.get_or_insert_with(|| now.to_owned());
        }
        StageState::Done if started_at.is_some() => {
            finished_at.get_or_insert_with(|| now.to_owned());
        }
        StageState::Done | StageState::Waiting => {}
    }
    StageRecord { stage: report.stage.as_str().to_owned(), started_at, finished_at }
}

/// All that the update waits for: what the checker objects to, what could not be written, and what the gates say.
fn waiting_for(recorded: &Recorded<'_>) -> Vec<WaitingFor> {
    let current = recorded.planned.report.current().map_or("", |stage| stage.stage.as_str());
    let fatal = recorded.findings.iter().filter(|finding| finding.severity == Severity::Fatal);
    let objections = fatal.map(|finding| WaitingFor {
        stage: current.to_owned(),
        reason: finding.id.clone(),
        object: finding.object.clone(),
        message: finding.message.clone(),
        since: Some(since(recorded, &finding.id, &finding.object)),
        way_out: None,
    });
    let failures = recorded.executed.failures.iter().map(|failure| WaitingFor {
        stage: failure.stage.as_str().to_owned(),
        reason: failure.error.category().to_owned(),
        object: failure.role.clone(),
        message: failure.error.to_string(),
        since: Some(since(recorded, failure.error.category(), &failure.role)),
        way_out: None,
    });
    let report = &recorded.planned.report;
    let blocked = report.stages.iter().flat_map(|stage| {
        report.waits(stage).into_iter().map(|wait| WaitingFor {
            stage: stage.stage.as_str().to_owned(),
            reason: wait.reason.to_owned(),
            object: wait.object,
            message: wait.message,
            since: wait.since.map(moment),
            way_out: wait.way_out,
        })
    });
    objections.chain(failures).chain(blocked).collect()
}

/// Since when an objection or a failure is waited out: since the look that first recorded it. What gates say is dated by
/// whoever planned.
fn since(recorded: &Recorded<'_>, reason: &str, object: &str) -> String {
    let input = recorded.input;
    let mut waited = input.inventory.update.iter().flat_map(|update| &update.waiting);
    let known = waited.find(|waited| waited.reason == reason && waited.object == object);
    moment(known.map_or(input.now, |waited| waited.since))
}
