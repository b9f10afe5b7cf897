//! C4 to C7, P1: what is done is done by the update that was agreed on, and by no other.

use windlass_api::label;

use super::{Finding, fatal, finding, of_kind, written};
use crate::gate::Gate;
use crate::inventory::{JobState, UpdateRecordState};
use crate::planner::{Planned, PlanningInput, Record};
use crate::step::{Stage, Step};

/// How often a Job may try again after the first attempt: four attempts in all.
const RETRIES_MAX: u64 = 3;

/// C4: a Job belongs to the one update that is on record, and nothing is written before the record is.
pub(super) fn recorded_update_only(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    // One that failed is at work again when somebody wants it to be given up.
    let ordered = input.inventory.orders.abort.is_some();
    let works = |state| state == UpdateRecordState::Running || ordered && state == UpdateRecordState::Failed;
    let running = input.inventory.update.as_ref().filter(|record| works(record.state));
    let complain = |step: &Step| {
        let id = written(step)?["metadata"]["labels"][label::UPDATE_ID.name].as_str();
        match running {
            None => Some(fatal("C4", step, "no update is on record as running".to_owned())),
            Some(record) if id == Some(record.id.to_string().as_str()) => None,
            Some(record) => Some(fatal("C4", step, format!("the update on record is {}", record.id))),
        }
    };
    let mut findings: Vec<Finding> = of_kind(planned, "Job").filter_map(complain).collect();
    if matches!(planned.record, Some(Record::Begin { .. } | Record::Resumed)) {
        let early = |step: &Step| fatal("C4", step, "it would be written before the update is on record".to_owned());
        findings.extend(planned.steps.iter().map(early));
    }
    findings
}

/// C4: no machine is replaced that another update has marked.
pub(super) fn marked_by_one_update(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let ours = input.inventory.update.as_ref().map(|record| record.id);
    let machines = &input.inventory.control_plane.machines;
    let marked = machines.iter().find(|machine| machine.update.is_some() && machine.update != ours);
    let Some(machine) = marked else { return Vec::new() };
    let message = || format!("{} carries the mark of another update", machine.name);
    let made = of_kind(planned, "Job").filter(|step| written(step).is_some());
    made.map(|step| finding(input, Gate::OneAttempt, "C4", step, message())).collect()
}

/// C5: after a failure no machine is touched until somebody has acted.
pub(super) fn nothing_after_failure(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let job = input.inventory.control_plane.job.as_ref();
    let Some(failed) = job.filter(|job| matches!(job.state, JobState::Failed { .. })) else { return Vec::new() };
    // To give up is to act.
    if input.inventory.orders.abort.is_some() {
        return Vec::new();
    }
    let machines = planned.steps.iter().filter(|step| step.stage != Stage::Packages);
    let message = || format!("{} gave up, and nobody has looked at it", failed.name);
    machines.map(|step| finding(input, Gate::OneControlPlaneUpdate, "C5", step, message())).collect()
}

/// C6: a Job tries a bounded number of times, one after the other.
pub(super) fn attempts_are_bounded(_: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let complain = |step: &Step| {
        let spec = &written(step)?["spec"];
        let bounded = spec["backoffLimit"].as_u64().is_some_and(|retries| retries <= RETRIES_MAX)
            && spec["parallelism"].as_u64().unwrap_or(1) == 1;
        (!bounded).then(|| fatal("C6", step, "it would try without a bound, or twice at once".to_owned()))
    };
    of_kind(planned, "Job").filter_map(complain).collect()
}

/// P1, C7: nothing is done that was not agreed on, and what was agreed on stays the same.
pub(super) fn inside_the_envelope(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let outside = |step: &&Step| !planned.envelope.allows(step);
    let complain = |step: &Step| {
        let verb = step.action.verb();
        fatal("P1", step, format!("the envelope does not allow to {verb} {}", step.role))
    };
    let mut findings: Vec<Finding> = planned.steps.iter().filter(outside).map(complain).collect();
    let running = input.inventory.update.as_ref().filter(|record| record.state == UpdateRecordState::Running);
    if let (Some(record), Some(step)) = (running, planned.steps.first()) {
        let digest = planned.envelope.digest();
        if digest != record.envelope_digest {
            let begun = &record.envelope_digest;
            let message = format!("{} was begun with the envelope {begun}, and now it is {digest}", record.name);
            findings.push(finding(input, Gate::NoRetarget, "C7", step, message));
        }
    }
    findings
}
