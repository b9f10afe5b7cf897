//! What a step of the loop that replaces a control plane has to pass.
//!
//! The loop proposes a step, and every gate that the step concerns is asked here: the loop has an order of its own, and the gates
//! do not rely on it. Where the answer to a refusal is another step (another leads, a member leaves), the loop may ask the gate
//! itself before it comes here.

use std::collections::BTreeSet;

use windlass_api::name::ClusterSecret;

use super::{Blocked, Gate, MemberChange};
use crate::inventory::{EtcdMember, Machine};
use crate::roll::{HandsOff, RollInput, RollStep};

/// The first refusal of a step; `None` if it may be done.
pub fn roll_step(input: &RollInput, step: &RollStep) -> Option<Blocked> {
    let RollInput { observed, attempt, gates, .. } = input;
    let paused = gates.ask(Gate::NotPaused, || super::not_paused(observed.hands_off.as_ref().map(HandsOff::by)));
    let foreign = || gates.ask(Gate::OneAttempt, || super::one_attempt(&observed.machines, attempt.id));
    paused.or_else(foreign).or_else(|| match step {
        RollStep::OwnCertificate { .. }
        | RollStep::Prepare { .. }
        | RollStep::ForgetEndpoint { .. }
        | RollStep::Mark { .. }
        | RollStep::Unmark { .. }
        | RollStep::DeletePart { .. }
        | RollStep::RestoreKubeadmConfig => None,
        RollStep::CreateInfrastructure { .. }
        | RollStep::CreateConfiguration { .. }
        | RollStep::CreateMachine { .. } => with_members(input, |members| creation(input, members)),
        RollStep::MoveLeader { to } => with_members(input, |members| {
            gates.ask(Gate::LeaderMovesFirst, || super::may_lead(&observed.machines, members, *to))
        }),
        RollStep::RemoveMember { id } => with_members(input, |members| removal(input, members, *id)),
        RollStep::DeleteMachine { machine, .. } => {
            let leaving = observed.machines.iter().find(|found| found.name == *machine)?;
            with_members(input, |members| deletion(input, members, leaving))
        }
    })
}

/// Asks about members that are known and raise no alarm. Those that are not known are a gap.
fn with_members(input: &RollInput, ask: impl FnOnce(&[EtcdMember]) -> Option<Blocked>) -> Option<Blocked> {
    let members = match &input.observed.etcd {
        Ok(members) => members.as_slice(),
        Err(why) => {
            let gap = Blocked::Gap { object: "Etcd".to_owned(), why: why.clone() };
            return input.gates.ask(Gate::NoGaps, || Some(gap));
        }
    };
    let alarm = input.gates.ask(Gate::NoAlarms, || super::no_alarms(members));
    alarm.or_else(|| ask(members))
}

/// A machine joins, and with it a member.
fn creation(input: &RollInput, members: &[EtcdMember]) -> Option<Blocked> {
    let RollInput { observed, attempt, gates, .. } = input;
    let machines = &observed.machines;
    let there: BTreeSet<ClusterSecret> = observed.certificates.keys().copied().collect();
    let nobody = |_: &Machine| false;
    [
        gates.ask(Gate::CertificatesPresent, || super::certificates_present(&attempt.cluster, &there)),
        gates.ask(Gate::OneMachineAtATime, || super::one_machine_at_a_time(machines, nobody)),
        gates.ask(Gate::ControlPlaneHealthy, || super::control_plane_healthy(machines, nobody)),
        gates.ask(Gate::OneMemberChange, || super::one_member_change(members, MemberChange::Add)),
        gates.ask(Gate::SickMemberFirst, || super::sick_member_first(members, MemberChange::Add)),
        gates.ask(Gate::EtcdQuorum, || super::etcd_quorum(members, MemberChange::Add)),
        gates.ask(Gate::MembersAreMachines, || super::members_are_machines(machines, members, nobody)),
    ]
    .into_iter()
    .flatten()
    .next()
}

/// A member leaves, and its machine is to follow.
fn removal(input: &RollInput, members: &[EtcdMember], id: u64) -> Option<Blocked> {
    let RollInput { observed, attempt, gates, .. } = input;
    let machines = &observed.machines;
    let member = members.iter().find(|member| member.id == id);
    let leaving = member.and_then(|member| machines.iter().find(|machine| machine.node() == member.name));
    let change = MemberChange::Remove(id);
    let is_leaving = |machine: &Machine| leaving.is_some_and(|leaving| leaving.name == machine.name);
    let stays = |leaving: &Machine| {
        let whole = gates.ask(Gate::AWholeNodeStays, || super::a_whole_node_stays(machines, &leaving.name));
        let successor = || super::replacement_healthy(machines, members, leaving, attempt.id);
        whole.or_else(|| gates.ask(Gate::ReplacementHealthy, successor))
    };
    [
        gates.ask(Gate::MembershipKnown, || super::membership_known(machines, members, id)),
        gates.ask(Gate::OneMachineAtATime, || super::one_machine_at_a_time(machines, is_leaving)),
        gates.ask(Gate::OneMemberChange, || super::one_member_change(members, change)),
        gates.ask(Gate::SickMemberFirst, || super::sick_member_first(members, change)),
        gates.ask(Gate::LastVoter, || super::last_voter(members, id)),
        gates.ask(Gate::EtcdQuorum, || super::etcd_quorum(members, change)),
        leaving.and_then(stays),
        gates.ask(Gate::LeaderMovesFirst, || super::leader_moves_first(members, id)),
    ]
    .into_iter()
    .flatten()
    .next()
}

/// A machine goes that is no member any more.
fn deletion(input: &RollInput, members: &[EtcdMember], leaving: &Machine) -> Option<Blocked> {
    let RollInput { observed, attempt, gates, .. } = input;
    let machines = &observed.machines;
    [
        gates.ask(Gate::OneMachineAtATime, || {
            super::one_machine_at_a_time(machines, |machine| machine.name == leaving.name)
        }),
        gates.ask(Gate::MemberLeavesFirst, || super::member_leaves_first(members, leaving)),
        gates.ask(Gate::EtcdQuorum, || super::etcd_quorum(members, MemberChange::Keep)),
        gates.ask(Gate::AWholeNodeStays, || super::a_whole_node_stays(machines, &leaving.name)),
        gates.ask(Gate::ReplacementHealthy, || super::replacement_healthy(machines, members, leaving, attempt.id)),
    ]
    .into_iter()
    .flatten()
    .next()
}
