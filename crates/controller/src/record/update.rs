//! The status of an update's record.

use jiff::Timestamp;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_update::{
    ClusterUpdate, ClusterUpdateStatus, PoolProgressRecord, StageRecord, UpdateState, WaitingFor,
};
use windlass_api::name::PoolName;
use windlass_plan::check::Severity;
use windlass_plan::inventory::Pool;
use windlass_plan::planner::Record;
use windlass_plan::report::{Report, StageReport, StageState};
use windlass_plan::step::Stage;

use super::Recorded;
use super::condition::{self, moment};
use super::steps::steps;
use super::waits::waits;
use crate::resolve::Unresolved;

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
        return ClusterUpdateStatus { waiting_for: answered(before, recorded), ..before.clone() };
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
    let is_aborted = state == UpdateState::Aborted;
    let is_over = is_aborted || state == UpdateState::Succeeded;
    // What was undone has not been done.
    let stages: Vec<StageRecord> = if is_aborted {
        before.stages.clone()
    } else {
        report.stages.iter().map(|stage| timed(before, stage, &now)).collect()
    };
    ClusterUpdateStatus {
        state: Some(state),
        stage: at_stage(before, report, &stages).filter(|_| !is_aborted),
        waiting_for: if is_over { Vec::new() } else { waits(recorded, &before.waiting_for) },
        stages,
        started_at: Some(before.started_at.clone().unwrap_or(created)),
        finished_at: (state != UpdateState::Running).then_some(now),
        failure: failure.clone(),
        steps: steps(&before.steps, recorded),
        progress: if is_over { Vec::new() } else { progress(recorded) },
        attempts: recorded.attempts.to_vec(),
        conditions: condition::dated(
            &before.conditions,
            conditions(state, failure.as_deref(), recorded),
            recorded.input.now,
        ),
    }
}

/// What an update that has ended waits for: what it waited for then, unless it has failed and somebody wants it to be given up.
/// They are told how that goes, and nothing of it is left when they change their mind.
fn answered(before: &ClusterUpdateStatus, recorded: &Recorded<'_>) -> Vec<WaitingFor> {
    let order = recorded.input.inventory.orders.abort.as_ref();
    let was_answered = || before.waiting_for.iter().any(|waiting| waiting.reason.starts_with("Abort"));
    let is_asked = before.state == Some(UpdateState::Failed) && (order.is_some() || was_answered());
    if is_asked { waits(recorded, &before.waiting_for) } else { before.waiting_for.clone() }
}

/// When each pool that is not at rest last moved. What was observed has it from the last record, unless it has moved since.
fn progress(recorded: &Recorded<'_>) -> Vec<PoolProgressRecord> {
    let input = recorded.input;
    let unrest = input.inventory.pools.iter().filter(|(_, pool)| !pool.is_at_rest());
    let record = |(name, pool): (&PoolName, &Pool)| PoolProgressRecord {
        pool: name.to_string(),
        fingerprint: pool.fingerprint(),
        moved_at: moment(pool.moved_at.unwrap_or(input.now)),
    };
    unrest.map(record).collect()
}

/// What an update says whose release cannot be had any more.
pub(super) fn unresolved(before: &ClusterUpdateStatus, why: &Unresolved, now: Timestamp) -> ClusterUpdateStatus {
    if matches!(before.state, Some(UpdateState::Succeeded | UpdateState::Failed | UpdateState::Aborted)) {
        return before.clone();
    }
    let (reason, object) = (why.reason(), "VirtualMachineImage");
    let known = before.waiting_for.iter().find(|waiting| waiting.reason == reason && waiting.object == object);
    let waiting = WaitingFor {
        stage: before.stage.clone().unwrap_or_default(),
        reason: reason.to_owned(),
        object: object.to_owned(),
        message: why.to_string(),
        since: known.and_then(|known| known.since.clone()).or_else(|| Some(moment(now))),
        because: vec![why.to_string()],
        ..WaitingFor::default()
    };
    ClusterUpdateStatus { waiting_for: vec![waiting], ..before.clone() }
}

/// The facts that others can wait for, not dated yet.
fn conditions(state: UpdateState, failure: Option<&str>, recorded: &Recorded<'_>) -> Vec<Condition> {
    let report = &recorded.planned.report;
    let of_stage = |stage: &StageReport| {
        let type_ = match stage.stage {
            Stage::Packages => ConditionType::PackagesReady,
            Stage::ControlPlane => ConditionType::ControlPlaneReady,
            Stage::Workers => ConditionType::WorkersReady,
        };
        let blocked = stage.blocked.first();
        let why = blocked.map(|blocked| (blocked.reason(), blocked.to_string()));
        match (stage.state, why) {
            _ if state == UpdateState::Aborted => condition::of(type_, ConditionStatus::False, None, ("Aborted", "")),
            (StageState::Done, _) => condition::of(type_, ConditionStatus::True, None, ("Done", "")),
            (_, Some((reason, message))) => condition::of(type_, ConditionStatus::False, None, (reason, &message)),
            (_, None) => condition::of(type_, ConditionStatus::False, None, ("Progressing", "")),
        }
    };
    let failure = failure.unwrap_or_default();
    let refused = recorded.findings.iter().find(|finding| finding.severity == Severity::Fatal);
    let stalled = match state {
        UpdateState::Failed => Some(("Failed", failure)),
        UpdateState::Running | UpdateState::Succeeded | UpdateState::Aborted => {
            refused.map(|finding| ("PlanRefused", finding.message.as_str()))
        }
    };
    let (status, reason) = match state {
        UpdateState::Running => (ConditionStatus::Unknown, "Running"),
        UpdateState::Succeeded => (ConditionStatus::True, "Succeeded"),
        UpdateState::Failed => (ConditionStatus::False, "Failed"),
        UpdateState::Aborted => (ConditionStatus::False, "Aborted"),
    };
    let mut conditions: Vec<Condition> = report.stages.iter().map(of_stage).collect();
    conditions.push(condition::stalled(stalled, None));
    conditions.push(condition::of(ConditionType::Succeeded, status, None, (reason, failure)));
    conditions
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
    // While nodes come, packages are unwell for a moment: that is no stage of an update that has none.
    let beside = report.stage == Stage::Packages && report.state == StageState::Running && has_machines(before);
    match report.state {
        _ if beside && started_at.is_none() => {}
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

/// Whether a stage that replaces machines has begun.
fn has_machines(status: &ClusterUpdateStatus) -> bool {
    let of_machines = |record: &&StageRecord| record.stage != Stage::Packages.as_str();
    status.stages.iter().filter(of_machines).any(|record| record.started_at.is_some())
}
