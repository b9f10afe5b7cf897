//! E: whether etcd can take one more member, counted from its members one by one.

use std::collections::BTreeSet;

use windlass_api::name::{MachineName, NameLimit, replacement_name};

use super::{Finding, finding, joins};
use crate::gate::Gate;
use crate::inventory::{EtcdMember, Inventory, Machine, MachineState};
use crate::planner::{Planned, PlanningInput};

/// The names that machines get in the update that is on record.
fn names_of_update(inventory: &Inventory) -> BTreeSet<MachineName> {
    let update = inventory.update.as_ref().map(|record| record.id);
    let name = |machine: &Machine| {
        let base = machine.base.as_ref().unwrap_or(&machine.name);
        update.map(|update| replacement_name(base, update, NameLimit::LabelValue))
    };
    inventory.control_plane.machines.iter().filter_map(name).collect()
}

/// E2, E3, E5, E13: all members vote and answer, none warns, and one more that never starts would do no harm.
pub(super) fn members_are_ready_for_one_more(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let Some(workload) = input.inventory.reachable() else { return Vec::new() };
    let names = names_of_update(&input.inventory);
    let record = input.inventory.update.as_ref().map(|record| record.id);
    let is_begun = |it: &Machine| names.contains(&it.name) || (record.is_some() && it.update == record);
    let begun = input.inventory.control_plane.machines.iter().any(is_begun);
    let mut findings = Vec::new();
    for step in joins(input, planned) {
        // What an attempt of the same Job left half-done is for the next one to end.
        let resumed = step.action.kind() == "Job" && begun;
        let is_left = |member: &EtcdMember| {
            let made = input.inventory.control_plane.machines.iter().any(|machine| {
                names.contains(&machine.name) && (machine.name.as_str() == member.name || machine.node() == member.name)
            });
            resumed && (made || member.learner || member.name.is_empty()) && !is_whole(member)
        };
        let members: Vec<&EtcdMember> = workload.etcd.iter().filter(|member| !is_left(member)).collect();
        findings
            .extend(trouble(&members).into_iter().map(|(gate, id, message)| finding(input, gate, id, step, message)));
    }
    findings
}

fn is_whole(member: &EtcdMember) -> bool {
    !member.name.is_empty() && member.healthy && !member.learner
}

fn trouble(members: &[&EtcdMember]) -> Vec<(Gate, &'static str, String)> {
    let mut troubles = Vec::new();
    if members.iter().any(|member| !member.alarms.is_empty()) {
        troubles.push((Gate::NoAlarms, "E13", "etcd raises an alarm".to_owned()));
    }
    if members.iter().any(|member| member.learner || member.name.is_empty()) {
        troubles.push((Gate::OneMemberChange, "E3", "a member of etcd is on its way in".to_owned()));
    }
    let votes = members.iter().filter(|member| !member.learner).count();
    let answers = members.iter().filter(|member| is_whole(member)).count();
    if answers < votes {
        troubles.push((Gate::SickMemberFirst, "E5", format!("{answers} of {votes} voters of etcd answer")));
    }
    // With one more voter that never starts: more than half must still answer. The first join needs both.
    if votes > 1 && 2 * answers <= votes + 1 {
        troubles.push((Gate::EtcdQuorum, "E2", format!("{answers} of {} voters of etcd would answer", votes + 1)));
    }
    troubles
}

/// E8: each machine is a member, and each member a machine.
pub(super) fn members_are_the_machines(input: &PlanningInput, planned: &Planned) -> Vec<Finding> {
    let Some(workload) = input.inventory.reachable() else { return Vec::new() };
    let machines = &input.inventory.control_plane.machines;
    if machines.iter().any(|machine| matches!(machine.state, MachineState::Joining { .. })) {
        return Vec::new();
    }
    let record = input.inventory.update.as_ref().map(|record| record.id);
    let nodes: BTreeSet<&str> = machines.iter().map(Machine::node).collect();
    let members: BTreeSet<&str> =
        workload.etcd.iter().filter(|member| !member.name.is_empty()).map(|member| member.name.as_str()).collect();
    let begun = machines.iter().any(|machine| machine.update.is_some() && machine.update == record);
    let mut findings = Vec::new();
    for step in joins(input, planned) {
        let strangers = members.difference(&nodes).next();
        let lacking = nodes.difference(&members).next().filter(|_| !(begun && step.action.kind() == "Job"));
        if let Some(odd) = strangers.or(lacking) {
            let message = format!("{odd} is either a member of etcd or a machine, and not both");
            findings.push(finding(input, Gate::MembersAreMachines, "E8", step, message));
        }
    }
    findings
}
