//! What the workload cluster has to say about a change to its control plane: its nodes, its kube-proxies and its etcd.

use super::case::Case;
use crate::gate::{self, Blocked, Gate, MemberChange};
use crate::inventory::{EtcdMember, Inventory, Machine, Reachable};

/// The refusals to replace machines of the control plane.
pub(super) fn replacement_refusals(case: &Case<'_>) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    // That it cannot be asked is said by the packages, which are asked before.
    let Some(workload) = inventory.reachable() else { return Vec::new() };
    let (release, machines) = (&target.release, &inventory.control_plane.machines);
    let skew = [
        gates.ask(Gate::KubeletsNotTooOld, || gate::kubelets_not_too_old(&release.kubernetes, &workload)),
        gates.ask(Gate::ProxyNotAhead, || gate::proxy_not_ahead(target, machines, &workload)),
        gates.ask(Gate::EtcdStep, || gate::etcd_step(release.etcd_tag()?, workload.etcd)),
    ];
    let members = members_to_judge(case, &workload);
    // A machine that was marked may have left etcd already: that is where an attempt of this update stopped.
    let is_ours = |machine: &Machine| machine.is_made_by(case.update) || machine.update == Some(case.update);
    let etcd = etcd_refusals(case, &members, is_ours);
    skew.into_iter().flatten().chain(etcd).collect()
}

/// The refusals to let a machine join the control plane that is there. No machine is excused, also none that this update made.
pub(super) fn join_refusals(case: &Case<'_>) -> Vec<Blocked> {
    match case.inventory.reachable() {
        Some(workload) => etcd_refusals(case, workload.etcd, |_| false),
        None => case.inventory.unreachable().into_iter().collect(),
    }
}

fn etcd_refusals(case: &Case<'_>, members: &[EtcdMember], excused: impl Fn(&Machine) -> bool) -> Vec<Blocked> {
    let Case { gates, inventory: Inventory { control_plane, .. }, .. } = case;
    let refusals = [
        gates.ask(Gate::NoAlarms, || gate::no_alarms(members)),
        gates.ask(Gate::OneMemberChange, || gate::one_member_change(members, MemberChange::Add)),
        gates.ask(Gate::SickMemberFirst, || gate::sick_member_first(members, MemberChange::Add)),
        gates.ask(Gate::EtcdQuorum, || gate::etcd_quorum(members, MemberChange::Add)),
        gates.ask(Gate::MembersAreMachines, || gate::members_are_machines(&control_plane.machines, members, excused)),
    ];
    refusals.into_iter().flatten().collect()
}

/// The members of etcd, without those that an attempt of this update has left half-done.
fn members_to_judge(case: &Case<'_>, workload: &Reachable<'_>) -> Vec<EtcdMember> {
    let machines = &case.inventory.control_plane.machines;
    // Also where the machine that an attempt made is gone again: those that it was to replace are still marked.
    let is_of_update = |it: &Machine| it.is_made_by(case.update) || it.update == Some(case.update);
    let has_begun = machines.iter().any(is_of_update);
    let is_half_done = |member: &EtcdMember| {
        let is_made = |machine: &Machine| machine.is_made_by(case.update) && machine.node() == member.name;
        let is_new = member.name.is_empty() || member.learner;
        !member.is_sound() && (machines.iter().any(is_made) || has_begun && is_new)
    };
    workload.etcd.iter().filter(|member| !is_half_done(member)).cloned().collect()
}
