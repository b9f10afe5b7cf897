//! What is put on record, and what the whole comes to.

use windlass_api::name::ObjectName;

use super::case::{Case, Course};
use super::{Planned, Record, abort, cause};
use crate::gate::Blocked;
use crate::inventory::JobState;
use crate::report::{Assessment, StageReport, StageState};
use crate::step::Stage;

/// Decides on the record. An update that is to begin or to be resumed has no steps yet: what it does comes after what says
/// that it does it.
pub(super) fn settle(case: &Case<'_>, planned: &mut Planned) {
    let (record, assessment) = match case.course {
        Course::Steady | Course::GivenUp => (None, steady(case, planned)),
        // What nobody has agreed to is no part of what the cluster is asked to be.
        Course::Pending => (None, Assessment::Running),
        Course::Aborting => aborting(case),
        Course::Begin { ordinal } => (begin(case, planned, ordinal), Assessment::Updating),
        Course::Resume => (resume(case), Assessment::Updating),
        Course::Failed => (None, Assessment::UpdateFailed),
        Course::Running => running(case, planned),
    };
    if matches!(case.course, Course::Begin { .. } | Course::Resume) {
        planned.steps.clear();
    }
    planned.record = record;
    planned.report.assessment = assessment;
}

fn aborting(case: &Case<'_>) -> (Option<Record>, Assessment) {
    let job = case.inventory.orders.abort.as_ref().and_then(|order| order.job.as_ref());
    match job.map(|job| &job.state) {
        _ if abort::is_over(case) => (Some(Record::Aborted), Assessment::Updating),
        Some(JobState::Failed { .. }) => (None, Assessment::UpdateFailed),
        Some(JobState::Active { .. } | JobState::Complete) | None => (None, Assessment::Updating),
    }
}

fn running(case: &Case<'_>, planned: &Planned) -> (Option<Record>, Assessment) {
    let job = case.inventory.control_plane.job.as_ref().filter(|job| job.update == case.update);
    if let Some(JobState::Failed { message }) = job.map(|job| &job.state) {
        return (Some(Record::Failed { message: message.clone() }), Assessment::UpdateFailed);
    }
    if let Some(message) = workers_gave_up(planned) {
        return (Some(Record::Failed { message }), Assessment::UpdateFailed);
    }
    if is_done(planned) {
        return (Some(Record::Succeeded), Assessment::Running);
    }
    (None, Assessment::Updating)
}

/// What the workers waited for when they gave up, if they did.
fn workers_gave_up(planned: &Planned) -> Option<String> {
    let given_up = |stage: &&StageReport| stage.stage == Stage::Workers && stage.state == StageState::Failed;
    let stage = planned.report.stages.iter().find(given_up)?;
    let causes: Vec<String> = stage.blocked.iter().map(ToString::to_string).collect();
    Some(causes.join("; "))
}

fn begin(case: &Case<'_>, planned: &Planned, ordinal: u64) -> Option<Record> {
    // What forbids or holds is said by the stages; a missing certificate is among it, so that nothing begins that could not go
    // on.
    let refused = !case.held.is_empty() || case.inventory.unreachable().is_some();
    let from = case.from.clone().filter(|_| !refused)?;
    // A name of a cluster and a number are always a name.
    let name = ObjectName::new(&format!("{}-{ordinal}", case.target.cluster.name)).ok()?;
    let to = case.target.end();
    Some(Record::Begin {
        cause: cause::of(case, &from, &to),
        name,
        ordinal,
        id: case.update,
        from,
        to,
        envelope_digest: planned.envelope.digest(),
    })
}

fn resume(case: &Case<'_>) -> Option<Record> {
    case.held.is_empty().then_some(Record::Resumed)
}

/// Without an update, a cluster is being created until all of it is there. The planner has no memory: whoever records that
/// a cluster has been running once knows that it is not being created any more.
fn steady(case: &Case<'_>, planned: &Planned) -> Assessment {
    let stages = &planned.report.stages;
    let changes = stages.iter().any(|stage| !stage.changes.is_empty());
    let refused =
        |blocked: &Blocked| matches!(blocked, Blocked::ControlPlaneTooLarge { .. } | Blocked::FieldRefused { .. });
    let refused = stages.iter().flat_map(|stage| &stage.blocked).any(refused);
    match (is_done(planned), &case.inventory.update) {
        (false, _) if refused => Assessment::Updating,
        (false, None) => Assessment::Creating,
        (false, Some(_)) if changes => Assessment::Updating,
        (true, _) | (false, Some(_)) => Assessment::Running,
    }
}

fn is_done(planned: &Planned) -> bool {
    planned.steps.is_empty() && planned.report.stages.iter().all(|stage| stage.state == StageState::Done)
}
