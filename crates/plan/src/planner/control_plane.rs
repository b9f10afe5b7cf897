//! The machines of the control plane. They are made one at a time, and replaced by a Job, one at a time.

use std::collections::BTreeSet;

use windlass_api::name::{MachineName, ObjectName};

use super::case::{Case, Course};
use super::{StagePlan, abort, creation, role, workload};
use crate::change;
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{EarlierJob, Inventory, JobState, Machine};
use crate::render::{self, Scope};
use crate::report::StageState;
use crate::step::{Action, Place, Stage, Step};

pub(super) fn plan(case: &Case<'_>) -> StagePlan {
    let mut stage = next(case);
    // Whoever wanted it is told, and it goes on.
    stage.blocked.extend(abort::refused(case));
    // Whatever else holds machines: this stage is the one whose Job gave up.
    if stage.blocked.iter().any(|blocked| matches!(blocked, Blocked::ControlPlaneUpdateFailed { .. })) {
        stage.state = StageState::Failed;
    }
    stage
}

fn next(case: &Case<'_>) -> StagePlan {
    let Some(cluster) = case.cluster_uid() else { return creation::cluster(case) };
    let scope = case.scope();
    let changes = changes(&scope, case.inventory);
    if !case.held.is_empty() {
        return StagePlan::waiting(case.held.clone(), changes);
    }
    if let Some(certificates) = creation::certificates(case, cluster) {
        return certificates;
    }
    if let Some(machine) = differing(&scope, case.inventory).next().filter(|_| case.may_replace()) {
        return replace(case, machine, changes);
    }
    match (missing(&scope, case.inventory).next(), unfinished(case)) {
        (Some(ordinal), _) => creation::machine(case, cluster, ordinal),
        (None, Some(machine)) => {
            start(case, format!("{} still carries the mark of the update, and its Job is gone", machine.name), changes)
        }
        (None, None) => settle(case),
    }
}

/// A machine that still carries the mark of the update that runs, when every machine is as it should be and nobody is left to end
/// that: somebody has deleted the Job. The marks are the last to go, and what the API server of the machine that went has left in
/// kubeadm's record goes before them.
fn unfinished<'i>(case: &Case<'i>) -> Option<&'i Machine> {
    let control_plane = &case.inventory.control_plane;
    let is_led = control_plane.job.as_ref().is_some_and(|job| job.update == case.update);
    let mut machines = control_plane.machines.iter().filter(|_| case.course == Course::Running && !is_led);
    machines.find(|machine| machine.update == Some(case.update))
}

/// The Job, when the gates open; what it does otherwise. `machine` is the first one that it has to replace.
fn replace(case: &Case<'_>, machine: &Machine, changes: Vec<String>) -> StagePlan {
    let ours = case.inventory.control_plane.job.as_ref().filter(|job| job.update == case.update);
    let blocked = match ours.map(|job| (&job.name, &job.state)) {
        Some((job, JobState::Active { .. })) => {
            return StagePlan::running(vec![Blocked::ControlPlaneUpdateRunning { job: job.clone() }], changes);
        }
        Some((job, JobState::Complete)) => vec![incomplete(job, machine)],
        Some((job, JobState::Failed { message })) => {
            let cluster = case.target.cluster.name.clone();
            vec![Blocked::ControlPlaneUpdateFailed { cluster, job: job.clone(), message: message.clone() }]
        }
        None => {
            let why = format!("every package is ready, and {} is to be replaced", machine.name);
            return start(case, why, changes);
        }
    };
    StagePlan::waiting(blocked, changes)
}

/// The Job, when the gates open.
fn start(case: &Case<'_>, why: String, changes: Vec<String>) -> StagePlan {
    let blocked = refusals(case);
    if !blocked.is_empty() {
        return StagePlan::waiting(blocked, changes);
    }
    let step = Step {
        stage: Stage::ControlPlane,
        role: role::JOB.to_owned(),
        place: Place::Management,
        action: Action::Create { object: render::job::job(&case.scope()) },
        why,
    };
    StagePlan::ready(vec![step], changes)
}

fn incomplete(job: &ObjectName, machine: &Machine) -> Blocked {
    Blocked::ControlPlaneUpdateIncomplete { job: job.clone(), machine: machine.name.clone() }
}

fn refusals(case: &Case<'_>) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let machines = &inventory.control_plane.machines;
    // What this update itself made may be half-done: the next attempt is who judges and repairs it.
    let ours = |machine: &Machine| machine.is_made_by(case.update);
    let machines = [
        gates.ask(Gate::OneControlPlaneUpdate, || gate::one_control_plane_update(&target.cluster.name, inventory)),
        gates.ask(Gate::OneAttempt, || gate::one_attempt(machines, case.update)),
        gates.ask(Gate::OneAttempt, || gate::one_version(machines, case.update, &target.release.kubernetes)),
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, &inventory.secrets)),
        gates.ask(Gate::PackagesFirst, || gate::packages_first(target, inventory)),
        gates.ask(Gate::OneMachineAtATime, || gate::one_machine_at_a_time(machines, ours)),
        gates.ask(Gate::ControlPlaneHealthy, || gate::control_plane_healthy(machines, ours)),
    ];
    machines.into_iter().flatten().chain(workload::replacement_refusals(case)).collect()
}

/// Removes the Jobs of earlier updates while another one runs. The last one before it stays, for whoever wants to read its logs.
pub(super) fn tidy(case: &Case<'_>) -> Vec<Step> {
    let may = case.course == Course::Running && case.envelope.replaces_control_plane();
    if !may || !case.held.is_empty() {
        return Vec::new();
    }
    let step = |job: &EarlierJob| Step {
        stage: Stage::ControlPlane,
        role: role::EARLIER_JOB.to_owned(),
        place: Place::Management,
        action: Action::Delete {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            namespace: Some(render::job::NAMESPACE.to_owned()),
            name: job.name.to_string(),
            expect: job.revision.clone(),
        },
        why: "it is of an earlier update, and not of the last one".to_owned(),
    };
    case.inventory.control_plane.earlier_jobs.iter().map(step).collect()
}

/// All machines are as they should be: what is left is to see them well.
fn settle(case: &Case<'_>) -> StagePlan {
    let control_plane = &case.inventory.control_plane;
    let mut blocked: Vec<Blocked> = control_plane.machines.iter().filter_map(gate::not_ready).collect();
    if let Some(job) = control_plane.job.as_ref().filter(|job| matches!(job.state, JobState::Active { .. })) {
        blocked.push(Blocked::ControlPlaneUpdateRunning { job: job.name.clone() });
    }
    if !case.is_initialized() {
        blocked.push(Blocked::NoWorkloadApi);
    }
    if blocked.is_empty() { StagePlan::done() } else { StagePlan::running(blocked, Vec::new()) }
}

/// Whether a machine is not what it should be.
pub(super) fn differs(scope: &Scope<'_>, inventory: &Inventory) -> bool {
    differing(scope, inventory).next().is_some()
}

fn differing<'i>(scope: &Scope<'_>, inventory: &'i Inventory) -> impl Iterator<Item = &'i Machine> {
    let scope = *scope;
    inventory.control_plane.machines.iter().filter(move |machine| !change::machine(&scope, machine).is_empty())
}

/// The numbers for which there is no machine.
pub(crate) fn missing(scope: &Scope<'_>, inventory: &Inventory) -> impl Iterator<Item = u32> {
    let scope = *scope;
    let there: BTreeSet<MachineName> = inventory.control_plane.machines.iter().map(Machine::row).cloned().collect();
    (0..scope.target.control_plane.count).filter(move |ordinal| !there.contains(&scope.control_plane_base(*ordinal)))
}

/// Refuses to go on while there are machines that the control plane was not asked to have.
pub(super) fn too_large(scope: &Scope<'_>, inventory: &Inventory) -> Option<Blocked> {
    let want = scope.target.control_plane.count;
    let asked: BTreeSet<MachineName> = (0..want).map(|ordinal| scope.control_plane_base(ordinal)).collect();
    let machines = &inventory.control_plane.machines;
    let extra = machines.iter().any(|machine| !asked.contains(machine.row()));
    extra.then(|| Blocked::ControlPlaneTooLarge { have: rows(machines), want })
}

/// How many machines there are, where one that takes the place of another counts as one with it.
pub(crate) fn rows(machines: &[Machine]) -> u32 {
    let rows: BTreeSet<&MachineName> = machines.iter().map(Machine::row).collect();
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

/// One line for each machine that will be replaced, and for each that will be made.
fn changes(scope: &Scope<'_>, inventory: &Inventory) -> Vec<String> {
    let machines = &inventory.control_plane.machines;
    let replaced = machines.iter().flat_map(|machine| change::lines(&change::machine(scope, machine)));
    replaced.chain(missing(scope, inventory).map(|ordinal| format!("{}: new", role::control_plane(ordinal)))).collect()
}
