//! A second opinion on a plan. It shares types with the planner, and no code.
//!
//! Each rule is one function over what was observed and what would be written; its findings carry the id that the rule has
//! wherever it is checked. A rule whose gate was left out on purpose, which only a rehearsal does, warns instead of stopping:
//! otherwise nobody could be shown what the gate is for.

mod package;

use std::fmt;

use serde::Serialize;
use windlass_api::label;
use windlass_api::name::{ClusterSecret, NameLimit, replacement_name};
use windlass_api::version::KubernetesVersion;

use crate::gate::Gate;
use crate::inventory::{ClusterState, JobState, Machine, MachineState, UpdateRecordState};
use crate::planner::{Planned, PlanningInput, Record};
use crate::step::{Action, Stage, Step};

/// A complaint about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable id: `V1`, `D2`, `P1` …
    pub id: String,
    /// Whether it stops the plan.
    pub severity: Severity,
    /// The object that it is about, as `Kind/name`.
    pub object: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.id, self.object, self.message)
    }
}

/// Whether a finding stops a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Severity {
    /// No step of the plan is executed.
    Fatal,
    /// It is shown.
    Warning,
}

/// All complaints about a plan.
pub fn check(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let rules: [fn(&PlanningInput, &Planned) -> Vec<Finding>; 9] = [
        workers_behind_control_plane,
        packages_before_job,
        one_machine_at_a_time,
        recorded_update_only,
        nothing_after_failure,
        certificates_before_machines,
        versions_go_up_by_one_minor,
        nothing_while_paused,
        inside_the_envelope,
    ];
    rules.iter().flat_map(|rule| rule(input, planned)).collect()
}

/// A finding about a step, which stops the plan as long as the gate for the same thing is in force.
fn finding(input: &PlanningInput, gate: Gate, id: &str, step: &Step, message: String) -> Finding {
    let severity = if input.gates.has(gate) { Severity::Fatal } else { Severity::Warning };
    Finding { severity, ..fatal(id, step, message) }
}

fn fatal(id: &str, step: &Step, message: String) -> Finding {
    let object = format!("{}/{}", step.action.kind(), step.action.name());
    Finding { id: id.to_owned(), severity: Severity::Fatal, object, message }
}

fn written(step: &Step) -> Option<&serde_json::Value> {
    match &step.action {
        Action::Create { object } | Action::Apply { object, .. } => Some(object),
        Action::CreateSecret { .. } | Action::Delete { .. } => None,
    }
}

fn of_kind<'p>(planned: &'p Planned, kind: &'static str) -> impl Iterator<Item = &'p Step> {
    planned.steps.iter().filter(move |step| step.action.kind() == kind)
}

/// The version of Kubernetes that a write would give to machines.
fn version_written(step: &Step) -> Option<KubernetesVersion> {
    let pointer = match step.action.kind() {
        "Machine" => "/spec/version",
        "MachineDeployment" => "/spec/template/spec/version",
        _ => return None,
    };
    written(step)?.pointer(pointer)?.as_str()?.parse().ok()
}

/// V1, D2: no worker is ever newer than a machine of the control plane.
fn workers_behind_control_plane(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let complain = |step: &Step| {
        let version = version_written(step)?;
        let machines = &input.inventory.control_plane.machines;
        let older = machines.iter().find(|machine| machine.version < version)?;
        let id = if older.version.minor() < version.minor() { "V1" } else { "D2" };
        let message = format!("workers would have {version} while {} has {}", older.name, older.version);
        Some(finding(input, Gate::WorkerOrder, id, step, message))
    };
    of_kind(planned, "MachineDeployment").filter_map(complain).collect()
}

/// D1: the Job is created only when every package is at the target, and well.
fn packages_before_job(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let complain = |step: &Step| {
        let message = package::trouble(&input.target, &input.inventory)?;
        Some(finding(input, Gate::PackagesFirst, "D1", step, message))
    };
    of_kind(planned, "Job").filter_map(complain).collect()
}

/// C1: never is more than one machine of the control plane on its way in or out.
fn one_machine_at_a_time(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let control_plane = &input.inventory.control_plane;
    let is_moving = |machine: &&Machine| matches!(machine.state, MachineState::Joining | MachineState::Deleting);
    let moving = control_plane.machines.iter().find(is_moving);
    let active = control_plane.job.as_ref().filter(|job| matches!(job.state, JobState::Active { .. }));
    let mut findings = Vec::new();
    for (position, step) in of_kind(planned, "Machine").enumerate() {
        let other = match (moving, active) {
            _ if position > 0 => Some("another machine is made by the same plan".to_owned()),
            (Some(machine), _) => Some(format!("{} is on its way in or out", machine.name)),
            (None, Some(job)) => Some(format!("{} is at work", job.name)),
            (None, None) => None,
        };
        findings.extend(other.map(|message| finding(input, Gate::ControlPlaneHealthy, "C1", step, message)));
    }
    // What carries the name of this update was made by an earlier attempt of the same Job, which will go on with it.
    let update = input.inventory.update.as_ref().map(|record| record.id);
    let is_foreign = |machine: &&Machine| {
        let replacement =
            |update| replacement_name(machine.base.as_ref().unwrap_or(&machine.name), update, NameLimit::LabelValue);
        update.map(replacement).as_ref() != Some(&machine.name)
    };
    let foreign = control_plane.machines.iter().filter(is_moving).find(is_foreign);
    for step in of_kind(planned, "Job") {
        let message = foreign.map(|machine| format!("{} is on its way in or out", machine.name));
        findings.extend(message.map(|message| finding(input, Gate::ControlPlaneHealthy, "C1", step, message)));
    }
    findings
}

/// C4: a Job belongs to the one update that is on record, and nothing is written before the record is.
fn recorded_update_only(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let running = input.inventory.update.as_ref().filter(|record| record.state == UpdateRecordState::Running);
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

/// C5: after a failure no machine is touched until somebody has acted.
fn nothing_after_failure(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let job = input.inventory.control_plane.job.as_ref();
    let Some(failed) = job.filter(|job| matches!(job.state, JobState::Failed { .. })) else { return Vec::new() };
    let machines = planned.steps.iter().filter(|step| step.stage != Stage::Packages);
    let message = || format!("{} gave up, and nobody has looked at it", failed.name);
    machines.map(|step| finding(input, Gate::OneControlPlaneUpdate, "C5", step, message())).collect()
}

/// C9: no machine is made while a certificate is missing.
fn certificates_before_machines(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let there = &input.inventory.secrets;
    let missing: Vec<String> =
        ClusterSecret::CERTIFICATES.iter().filter(|secret| !there.contains(secret)).map(ToString::to_string).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let makers = ["Machine", "MachineDeployment", "Job"].into_iter().flat_map(|kind| of_kind(planned, kind));
    let message = || format!("there is no certificate for {}", missing.join(", "));
    makers.map(|step| finding(input, Gate::CertificatesPresent, "C9", step, message())).collect()
}

/// V6, V8: no version is lowered, and no minor is skipped.
fn versions_go_up_by_one_minor(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let inventory = &input.inventory;
    let machines = inventory.control_plane.machines.iter().map(|machine| &machine.version);
    let there: Vec<&KubernetesVersion> = machines.chain(inventory.pools.values().map(|pool| &pool.version)).collect();
    let target = &input.target.release.kubernetes;
    let wrong = |to: &KubernetesVersion| {
        there.iter().find_map(|from| {
            let (ours, theirs) = (to.minor(), from.minor());
            let skipped = ours.major != theirs.major || ours.minor > theirs.minor.saturating_add(1);
            match (to < *from, skipped) {
                (true, _) => Some(("V8", format!("{from} would be lowered to {to}"))),
                (false, true) => Some(("V6", format!("a minor would be skipped from {from} to {to}"))),
                (false, false) => None,
            }
        })
    };
    let mut findings = Vec::new();
    for step in &planned.steps {
        let to = if step.action.kind() == "Job" { Some(target.clone()) } else { version_written(step) };
        // A pool that is only scaled keeps its version, whatever the control plane has by now.
        let kept = |to: &KubernetesVersion| inventory.pools.values().any(|pool| pool.version == *to) && to != target;
        let found = to.filter(|to| !kept(to)).and_then(|to| wrong(&to));
        findings.extend(found.map(|(id, message)| fatal(id, step, message)));
    }
    if let Some(Record::Begin { name, .. }) = &planned.record {
        findings.extend(wrong(target).map(|(id, message)| Finding {
            id: id.to_owned(),
            severity: Severity::Fatal,
            object: format!("ClusterUpdate/{name}"),
            message,
        }));
    }
    findings
}

/// D4: nothing is written while somebody holds the cluster.
fn nothing_while_paused(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let ClusterState::Present { paused: Some(by), .. } = &input.inventory.cluster else { return Vec::new() };
    let held = |step: &Step| finding(input, Gate::NotPaused, "D4", step, format!("the cluster is paused: {by}"));
    planned.steps.iter().map(held).collect()
}

/// P1: nothing is done that was not agreed on.
fn inside_the_envelope(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
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
            let message = format!(
                "{} was begun with the envelope {}, and now it is {digest}",
                record.name, record.envelope_digest
            );
            findings.push(fatal("P1", step, message));
        }
    }
    findings
}
