//! C4 to C7, P1: what is done is done by the update that was agreed on, and by no other.

use jiff::SignedDuration;
use windlass_api::label;
use windlass_api::name::PoolName;

use super::{Finding, fatal, finding, of_kind, release, replaces, severity, written};
use crate::gate::Gate;
use crate::inventory::{JobState, Machine, Pool, UpdateRecordState};
use crate::planner::{Planned, PlanningInput, Record};
use crate::step::{Stage, Step};
use crate::target::{Drive, PoolTarget};

/// How often a Job may try again after the first attempt: four attempts in all.
const RETRIES_MAX: u64 = 3;
/// How long a pool may stand still in the middle of an update.
const STANDSTILL_MAX: SignedDuration = SignedDuration::from_hours(1);

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
        findings.extend(planned.steps.iter().filter(|step| !release::keeps(input, step)).map(early));
    }
    findings
}

/// C4: no machine is replaced that another update has marked.
pub(super) fn marked_by_one_update(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let ours = input.inventory.update.as_ref().map(|record| record.id);
    let machines = &input.inventory.control_plane.machines;
    let marked = machines.iter().find(|machine| machine.update.is_some() && machine.update != ours);
    let version = &input.target.release.kubernetes;
    let made_by_ours = |machine: &&Machine| ours.is_some_and(|ours| machine.is_made_by(ours));
    let elsewhere = machines.iter().filter(made_by_ours).find(|machine| machine.version != *version);
    let complain = |step: &Step| {
        let message = match (marked, elsewhere.filter(|_| replaces(step))) {
            (Some(machine), _) => format!("{} carries the mark of another update", machine.name),
            (None, Some(machine)) => format!("{} was made for {}", machine.name, machine.version),
            (None, None) => return None,
        };
        Some(finding(input, Gate::OneAttempt, "C4", step, message))
    };
    of_kind(planned, "Job").filter(|step| written(step).is_some()).filter_map(complain).collect()
}

/// C5: after a failure no machine is touched until somebody has acted.
pub(super) fn nothing_after_failure(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let mut findings = Vec::new();
    let job = input.inventory.control_plane.job.as_ref();
    let failed = job.filter(|job| matches!(job.state, JobState::Failed { .. })).map(|job| job.name.to_string());
    let stuck = stuck_pool(input).map(|pool| format!("the pool {pool}"));
    // To give up is to act.
    let is_ordered = input.inventory.orders.abort.is_some();
    let acts = |step: &Step| is_ordered && step.action.kind() == "Job" && !replaces(step);
    for step in planned.steps.iter().filter(|step| step.stage != Stage::Packages && !acts(step)) {
        let complain = |gate, who: &String| {
            finding(input, gate, "C5", step, format!("{who} gave up, and nobody has looked at it"))
        };
        findings.extend(failed.as_ref().map(|who| complain(Gate::OneControlPlaneUpdate, who)));
        findings.extend(stuck.as_ref().map(|who| complain(Gate::PoolMoves, who)));
    }
    findings
}

/// A pool that stood still for an hour with machines missing, too old or not to be relied on.
fn stuck_pool(input: &PlanningInput) -> Option<&PoolName> {
    let stood_still = |pool: &Pool| {
        let deadline = pool.moved_at.and_then(|moved_at| moved_at.checked_add(STANDSTILL_MAX).ok());
        let counts = [pool.progress.replicas, pool.progress.up_to_date, pool.progress.available];
        let rests = pool.progress.observed && counts == [pool.replicas; 3];
        !rests && deadline.is_some_and(|deadline| deadline <= input.now)
    };
    input.inventory.pools.iter().find(|(_, pool)| stood_still(pool)).map(|(name, _)| name)
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

/// P2: an update has a cause that its owner or the release knows of, or somebody has agreed to it.
pub(super) fn somebody_asked_for_it(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let PlanningInput { target, inventory, .. } = input;
    let Some(Record::Begin { name, envelope_digest, .. }) = &planned.record else { return Vec::new() };
    let unasked = |message: &str| Finding {
        id: "P2".to_owned(),
        severity: severity(input.gates.has(Gate::Consent)),
        object: format!("ClusterUpdate/{name}"),
        message: message.to_owned(),
    };
    let is_agreed = inventory.consent.as_ref() == Some(envelope_digest);
    if inventory.orders.approval.is_required && !is_agreed {
        return vec![unasked("it has to be approved, and is not")];
    }
    if target.drive != Drive::Machines || is_agreed {
        return Vec::new();
    }
    let release = &target.release;
    let other = |is: Option<&str>, wanted: &str| is != Some(wanted);
    let image = release.image().map(AsRef::as_ref).unwrap_or_default();
    let machine = |machine: &Machine| {
        machine.version != release.kubernetes
            || machine.image.as_ref().is_some_and(|is| is.as_str() != image)
            || machine.class.as_ref().is_some_and(|is| is.as_str() != target.control_plane.class())
            || machine.storage_class.as_ref().is_some_and(|is| is.as_str() != target.control_plane.storage_class())
    };
    let pool = |wanted: &PoolTarget| {
        let Some(pool) = inventory.pools.get(&wanted.name) else { return false };
        let (made_from, told) = (pool.infrastructure_template.spec.as_ref(), pool.bootstrap_template.spec.as_ref());
        let field = |name: &str| made_from.and_then(|spec| spec[name].as_str());
        let label = format!("={}", release.distribution.tag());
        pool.version != release.kubernetes
            || other(field("imageName"), image)
            || other(field("className"), wanted.machines.class())
            || other(field("storageClass"), wanted.machines.storage_class())
            || told.is_none_or(|told| !told.to_string().contains(&label))
    };
    let (says, said) = (target.original_digest(), inventory.releases.in_use.as_deref());
    let says_else = says.is_some() && said.is_some() && says != said;
    if says_else || inventory.control_plane.machines.iter().any(machine) || target.pools.iter().any(pool) {
        return Vec::new();
    }
    vec![unasked("nobody but Windlass asks for it, and nobody has agreed to it")]
}
