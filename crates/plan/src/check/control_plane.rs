//! C1, C2, C9: how the machines of a control plane may change.

use windlass_api::name::{ClusterSecret, NameLimit, replacement_name};

use super::{Finding, finding, joins, of_kind, replaces};
use crate::gate::Gate;
use crate::inventory::{Inventory, JobState, Machine, MachineState};
use crate::planner::{Planned, PlanningInput};

/// Whether a machine carries the name that the update on record gives it: an earlier attempt of the same Job made it, and the
/// next one will go on with it.
fn is_of_update(inventory: &Inventory, machine: &Machine) -> bool {
    let update = inventory.update.as_ref().map(|record| record.id);
    let base = machine.base.as_ref().unwrap_or(&machine.name);
    update.is_some_and(|update| replacement_name(base, update, NameLimit::LabelValue) == machine.name)
}

/// C1: never is more than one machine of the control plane on its way in or out.
pub(super) fn one_machine_at_a_time(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let control_plane = &input.inventory.control_plane;
    let is_moving =
        |machine: &&Machine| matches!(machine.state, MachineState::Joining { .. } | MachineState::Deleting { .. });
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
        findings.extend(other.map(|message| finding(input, Gate::OneMachineAtATime, "C1", step, message)));
    }
    let foreign = control_plane.machines.iter().filter(is_moving).find(|it| !is_of_update(&input.inventory, it));
    for step in of_kind(planned, "Job").filter(|step| replaces(step)) {
        let message = foreign.map(|machine| format!("{} is on its way in or out", machine.name));
        findings.extend(message.map(|message| finding(input, Gate::OneMachineAtATime, "C1", step, message)));
    }
    findings
}

/// C2: nothing changes beside a machine that is not well.
pub(super) fn all_machines_are_well(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let machines = &input.inventory.control_plane.machines;
    let is_sick = |machine: &&Machine| matches!(machine.state, MachineState::Unhealthy { .. });
    let mut findings = Vec::new();
    for step in joins(input, planned) {
        let excused = |machine: &Machine| step.action.kind() == "Job" && is_of_update(&input.inventory, machine);
        let sick = machines.iter().filter(is_sick).find(|machine| !excused(machine));
        let message = sick.map(|machine| format!("{} is not well", machine.name));
        findings.extend(message.map(|message| finding(input, Gate::ControlPlaneHealthy, "C2", step, message)));
    }
    findings
}

/// C9: no machine is made while a certificate is missing.
pub(super) fn certificates_before_machines(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let there = &input.inventory.secrets;
    let missing: Vec<String> =
        ClusterSecret::CERTIFICATES.iter().filter(|secret| !there.contains(secret)).map(ToString::to_string).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let makers = ["Machine", "MachineDeployment", "Job"].into_iter().flat_map(|kind| of_kind(planned, kind));
    let message = || format!("there is no certificate for {}", missing.join(", "));
    let makers = makers.filter(|step| step.action.kind() != "Job" || replaces(step));
    makers.map(|step| finding(input, Gate::CertificatesPresent, "C9", step, message())).collect()
}
