//! Giving an update up, as long as nothing has been replaced.
//!
//! The Job that works towards the update goes first. Then another one undoes what was begun, machine by machine, as
//! [`crate::roll::abort`] decides; it is who has the last word on whether that can still be done. Nothing else happens meanwhile.

use super::case::{Case, Course};
use super::{StagePlan, role};
use crate::change::{self, Effect};
use crate::envelope::Envelope;
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{Abort, Inventory, JobState, UpdateRecord};
use crate::render::{Scope, job};
use crate::report::StageState;
use crate::roll::{Irrevocable, irrevocable};
use crate::step::{Action, Place, Stage, Step};
use crate::target::{Drive, PoolTarget};

/// Why an update cannot be given up any more, as far as can be told from here; `None` while it can.
pub(super) fn too_late(scope: &Scope<'_>, inventory: &Inventory, record: &UpdateRecord) -> Option<String> {
    let begun = inventory.orders.abort.as_ref().and_then(|order| order.job.as_ref());
    if begun.is_some_and(|job| matches!(job.state, JobState::Active { .. } | JobState::Complete)) {
        return None;
    }
    if scope.target.fields.is_some() {
        // Nothing was begun, or whoever looked says what.
        return inventory.orders.abort.as_ref()?.too_late.clone();
    }
    if scope.target.drive != Drive::Machines {
        return Some("Cluster API replaces its machines".to_owned());
    }
    let etcd = inventory.reachable().map(|workload| workload.etcd).ok_or("it does not answer");
    match irrevocable(&inventory.control_plane.machines, etcd, record.id) {
        // Whoever gives up looks for itself.
        None | Some(Irrevocable::Unknown { .. }) => {}
        Some(why) => return Some(why.to_string()),
    }
    let replaced = Envelope::of(scope.target, Some(&record.from)).replaced;
    let is_switched = |pool: &&PoolTarget| {
        let observed = inventory.pools.get(&pool.name);
        let any_replaces = |changes: Vec<change::FieldChange>| changes.iter().any(|it| it.effect == Effect::Replaces);
        replaced.contains(&role::pool(&pool.name))
            && observed.is_some_and(|observed| !any_replaces(change::pool(scope, pool, observed)))
    };
    let pool = scope.target.pools.iter().find(is_switched)?;
    Some(format!("the machines of the pool {} are being replaced", pool.name))
}

/// Tells whoever wants the update that runs to be given up that it goes on.
pub(super) fn refused(case: &Case<'_>) -> Option<Blocked> {
    let record = case.inventory.update.as_ref().filter(|_| matches!(case.course, Course::Running | Course::Failed))?;
    case.inventory.orders.abort.as_ref()?;
    let why = too_late(&case.scope(), case.inventory, record)?;
    Some(Blocked::AbortTooLate { update: record.name.clone(), why })
}

/// What every stage but that of the control plane does meanwhile.
pub(super) fn rest(case: &Case<'_>) -> StagePlan {
    StagePlan::waiting(aborting(case), Vec::new())
}

fn aborting(case: &Case<'_>) -> Vec<Blocked> {
    case.inventory.update.iter().map(|update| Blocked::Aborting { update: update.name.clone() }).collect()
}

/// What holds whoever gives up, too. That the update gave up, or its workers did, is why somebody else does.
fn held(case: &Case<'_>) -> Vec<Blocked> {
    let gave_up =
        |blocked: &Blocked| matches!(blocked, Blocked::ControlPlaneUpdateFailed { .. } | Blocked::PoolStalled { .. });
    case.held.iter().filter(|blocked| !gave_up(blocked)).cloned().collect()
}

/// The Job of the update goes, then the Job that gives up comes.
pub(super) fn control_plane(case: &Case<'_>) -> StagePlan {
    let Some(order) = &case.inventory.orders.abort else { return rest(case) };
    if case.target.fields.is_some() {
        return rest(case);
    }
    let held = held(case);
    if !held.is_empty() {
        return StagePlan::waiting(held, Vec::new());
    }
    match order.job.as_ref().map(|job| (&job.name, &job.state)) {
        _ if is_undone(case) => rest(case),
        None => begin(case, order),
        Some((_, JobState::Active { .. } | JobState::Complete)) => StagePlan::running(aborting(case), Vec::new()),
        Some((job, JobState::Failed { message })) => {
            let blocked = Blocked::AbortFailed { job: job.clone(), message: message.clone() };
            StagePlan { state: StageState::Failed, ..StagePlan::waiting(vec![blocked], Vec::new()) }
        }
    }
}

/// Whether the update is given up: nothing is left of it, and nothing holds whoever has to undo something.
pub(super) fn is_over(case: &Case<'_>) -> bool {
    case.target.fields.is_some() || (is_undone(case) && held(case).is_empty())
}

/// Whether nothing is left of what was begun: the Job that gives up has ended, or there was nothing for it to do.
fn is_undone(case: &Case<'_>) -> bool {
    let job = case.inventory.orders.abort.as_ref().and_then(|order| order.job.as_ref());
    let has_ended = job.is_some_and(|job| job.state == JobState::Complete);
    has_ended || !case.envelope.replaces_control_plane()
}

fn begin(case: &Case<'_>, order: &Abort) -> StagePlan {
    let scope = case.scope();
    let why = format!("{} wants the update to be given up", order.by);
    let step = |role: &str, action: Action| Step {
        stage: Stage::ControlPlane,
        role: role.to_owned(),
        place: Place::Management,
        action,
        why: why.clone(),
    };
    if let Some(expect) = &order.upgrading {
        let delete = Action::Delete {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            namespace: Some(job::NAMESPACE.to_owned()),
            name: case.update.job_name().to_string(),
            expect: expect.clone(),
        };
        return StagePlan::ready(vec![step(role::JOB, delete)], Vec::new());
    }
    let machines = &case.inventory.control_plane.machines;
    if let Some(foreign) = case.gates.ask(Gate::OneAttempt, || gate::one_attempt(machines, case.update)) {
        return StagePlan::waiting(vec![foreign], Vec::new());
    }
    let Some(back) = &order.back else {
        let release = case.from.as_ref().map(|from| from.distribution.clone()).unwrap_or_default();
        let why = "it is what the cluster is to be again, and there is no image of it".to_owned();
        return StagePlan::waiting(vec![Blocked::Gap { object: format!("Release/{release}"), why }], Vec::new());
    };
    let create = Action::Create { object: job::abort(&scope, &back.release) };
    StagePlan::ready(vec![step(role::ABORT_JOB, create)], Vec::new())
}
