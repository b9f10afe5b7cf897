//! A second opinion on a step of the loop that replaces a control plane.
//!
//! It counts for itself what would be left after the step: machines, voters, those that answer.

use std::collections::BTreeSet;

use windlass_api::name::{ClusterSecret, MachineName, NameLimit, replacement_name};

use super::{Finding, severity};
use crate::gate::Gate;
use crate::inventory::{EtcdMember, Machine, MachineState};
use crate::roll::{Preparation, RollInput, RollStep};

/// All complaints about a step.
pub fn roll(input: &RollInput, step: &RollStep) -> Vec<Finding> {
    let mut opinion = Opinion { input, findings: Vec::new() };
    opinion.anything();
    match step {
        RollStep::OwnCertificate { .. }
        | RollStep::ForgetEndpoint { .. }
        | RollStep::Mark { .. }
        | RollStep::Unmark { .. } => {}
        RollStep::Prepare { preparation } => opinion.preparation(*preparation),
        RollStep::CreateInfrastructure { name, .. }
        | RollStep::CreateConfiguration { name, .. }
        | RollStep::CreateMachine { name, .. } => opinion.creation(name),
        RollStep::MoveLeader { to } => opinion.leader(*to),
        RollStep::RemoveMember { id } => opinion.removal(*id),
        RollStep::DeleteMachine { machine, .. } => opinion.deletion(machine),
        RollStep::DeletePart { machine, .. } => opinion.part(machine),
        RollStep::RestoreKubeadmConfig => opinion.restoration(),
    }
    opinion.findings
}

struct Opinion<'a> {
    input: &'a RollInput,
    findings: Vec<Finding>,
}

fn is_whole(member: &EtcdMember) -> bool {
    member.healthy && !member.learner && !member.name.is_empty()
}

fn is_ready(machine: &Machine) -> bool {
    matches!(machine.state, MachineState::Ready { .. })
}

fn is_moving(machine: &Machine) -> bool {
    matches!(machine.state, MachineState::Joining { .. } | MachineState::Deleting { .. })
}

impl<'a> Opinion<'a> {
    fn demand(&mut self, holds: bool, gate: impl Into<Option<Gate>>, id: &str, object: &str, message: &str) {
        if !holds {
            let gate = gate.into();
            let severity = severity(gate.is_none_or(|gate| self.input.gates.has(gate)));
            let (id, object, message) = (id.to_owned(), object.to_owned(), message.to_owned());
            self.findings.push(Finding { id, severity, object, message });
        }
    }

    fn machines(&self) -> &'a [Machine] {
        &self.input.observed.machines
    }

    fn members(&self) -> &'a [EtcdMember] {
        self.input.observed.etcd.as_deref().unwrap_or_default()
    }

    /// The name of what takes the place of a machine, which may be its own.
    fn successor(&self, machine: &Machine) -> MachineName {
        let base = machine.base.as_ref().unwrap_or(&machine.name);
        replacement_name(base, self.input.attempt.id, NameLimit::LabelValue)
    }

    /// D4, C4: nobody holds the cluster, and no other update a machine.
    fn anything(&mut self) {
        let paused = self.input.observed.hands_off.is_some();
        self.demand(!paused, Gate::NotPaused, "D4", "Cluster", "somebody holds it");
        for machine in self.machines() {
            let ours = machine.update.is_none_or(|update| update == self.input.attempt.id);
            self.demand(ours, Gate::OneAttempt, "C4", machine.name.as_str(), "another update holds it");
        }
    }

    /// C11: kubeadm's configuration is changed only when a machine is to be made with it.
    fn preparation(&mut self, preparation: Preparation) {
        let is_old = |machine: &&Machine| self.successor(machine) != machine.name;
        let needed = self.machines().iter().any(|machine| is_old(&machine));
        let early = preparation == Preparation::KubeadmConfig && !needed;
        self.demand(!early, None, "C11", "kubeadm-config", "no machine is to be made with it");
    }

    /// C3: what a machine runs on is not taken from it.
    fn part(&mut self, name: &MachineName) {
        let in_use = self.machines().iter().any(|machine| machine.name == *name);
        self.demand(!in_use, None, "C3", name.as_str(), "a machine is made from it");
    }

    /// C11: kubeadm's configuration is what the machines have that are there.
    fn restoration(&mut self) {
        let is_new = |machine: &Machine| self.successor(machine) == machine.name;
        let early = self.machines().iter().any(is_new);
        self.demand(!early, None, "C11", "kubeadm-config", "a machine was made with the new one");
    }

    /// E13, and E9: what is not known, or warned of, is not changed.
    fn etcd_is_known(&mut self) {
        self.demand(self.input.observed.etcd.is_ok(), Gate::NoGaps, "E9", "etcd", "its members are not known");
        let alarm = self.members().iter().any(|member| !member.alarms.is_empty());
        self.demand(!alarm, Gate::NoAlarms, "E13", "etcd", "it raises an alarm");
    }

    fn creation(&mut self, name: &MachineName) {
        self.etcd_is_known();
        let (machines, members) = (self.machines(), self.members());
        let object = name.as_str();
        let rests = !machines.iter().any(is_moving);
        self.demand(rests, Gate::OneMachineAtATime, "C1", object, "another machine comes or goes");
        let rows: BTreeSet<&MachineName> = machines.iter().map(|it| it.base.as_ref().unwrap_or(&it.name)).collect();
        let single = rows.len() == machines.len();
        self.demand(single, Gate::OneMachineAtATime, "C1", object, "there would be two more than asked for");
        let well = machines.iter().all(|machine| is_ready(machine) || is_moving(machine));
        self.demand(well, Gate::ControlPlaneHealthy, "C2", object, "a machine is not well");
        let prepared = self.input.observed.unprepared.is_empty();
        self.demand(prepared, None, "C11", object, "the workload cluster is not prepared for it");
        let certificates = &self.input.observed.certificates;
        let complete = ClusterSecret::CERTIFICATES.iter().all(|secret| certificates.contains_key(secret));
        self.demand(complete, Gate::CertificatesPresent, "C9", object, "a certificate is missing");
        let changing = members.iter().any(|member| member.learner || member.name.is_empty());
        self.demand(!changing, Gate::OneMemberChange, "E3", "etcd", "a member is on its way in");
        let votes = members.iter().filter(|member| !member.learner).count();
        let answers = members.iter().filter(|member| is_whole(member)).count();
        self.demand(answers == votes, Gate::SickMemberFirst, "E5", "etcd", "a voter does not answer");
        let quorum = votes <= 1 || 2 * answers > votes + 1;
        self.demand(quorum, Gate::EtcdQuorum, "E2", "etcd", "one more that never starts could cost the quorum");
        let nodes: BTreeSet<&str> = machines.iter().filter(|it| !is_moving(it)).map(Machine::node).collect();
        let named: BTreeSet<&str> = members.iter().map(|it| it.name.as_str()).filter(|it| !it.is_empty()).collect();
        let same = !rests || nodes == named;
        self.demand(same, Gate::MembersAreMachines, "E8", "etcd", "its members are not the machines");
    }

    /// E4, E6: who leads is a healthy voter that stays.
    fn leader(&mut self, to: u64) {
        self.etcd_is_known();
        let heir = self.members().iter().find(|member| member.id == to);
        let leaves = |member: &EtcdMember| {
            let deleting = |machine: &Machine| matches!(machine.state, MachineState::Deleting { .. });
            self.machines().iter().any(|machine| machine.node() == member.name && deleting(machine))
        };
        let able = heir.is_some_and(|member| is_whole(member) && !leaves(member));
        self.demand(able, Gate::LeaderMovesFirst, "E6", "etcd", "who is to lead cannot");
    }

    fn removal(&mut self, id: u64) {
        self.etcd_is_known();
        let members = self.members();
        let Some(member) = members.iter().find(|member| member.id == id) else { return };
        let object = member.shown();
        let stay: Vec<&EtcdMember> = members.iter().filter(|other| other.id != id).collect();
        let changing = stay.iter().any(|other| other.learner || other.name.is_empty());
        self.demand(!changing, Gate::OneMemberChange, "E3", &object, "another member is on its way in");
        let votes = stay.iter().filter(|other| !other.learner).count();
        let answers = stay.iter().filter(|other| is_whole(other)).count();
        let first = !is_whole(member) || answers == votes;
        self.demand(first, Gate::SickMemberFirst, "E5", &object, "another voter does not answer");
        self.demand(2 * answers > votes, Gate::EtcdQuorum, "E1", &object, "too few of the rest answer");
        let last = !member.learner && (votes == 0 || votes == 1 && !(is_whole(member) && answers == 1));
        self.demand(!last, Gate::LastVoter, "E10", &object, "the last voter would be left alone, or go");
        self.demand(!member.leader, Gate::LeaderMovesFirst, "E6", &object, "it leads");
        let unknown = |machine: &Machine| match &machine.state {
            MachineState::Joining { .. } => true,
            MachineState::Deleting { node } => node.is_none(),
            MachineState::Ready { .. } | MachineState::Unhealthy { .. } => false,
        };
        let claimed = member.name.is_empty() && self.machines().iter().any(unknown);
        self.demand(!claimed, Gate::MembershipKnown, "E9", &object, "a machine may still start it");
        let machine = self.machines().iter().find(|machine| machine.node() == member.name);
        if let Some(machine) = machine {
            self.departure(machine);
        }
    }

    fn deletion(&mut self, name: &MachineName) {
        self.etcd_is_known();
        let Some(machine) = self.machines().iter().find(|machine| machine.name == *name) else { return };
        let out = !self.members().iter().any(|member| member.name == machine.node());
        self.demand(out, Gate::MemberLeavesFirst, "E7", name.as_str(), "it still is a member of etcd");
        let votes = self.members().iter().filter(|member| !member.learner).count();
        let answers = self.members().iter().filter(|member| is_whole(member)).count();
        self.demand(2 * answers > votes, Gate::EtcdQuorum, "E2", "etcd", "a member that it may start is needed");
        self.departure(machine);
    }

    /// C1, C2, C3: what a machine may go for.
    fn departure(&mut self, leaving: &Machine) {
        let object = leaving.name.as_str();
        let others = || self.machines().iter().filter(|machine| machine.name != leaving.name);
        let rests = !others().any(is_moving);
        let whole = others().any(is_ready);
        let successor = self.successor(leaving);
        let votes = |machine: &Machine| self.members().iter().any(|it| it.name == machine.node() && is_whole(it));
        let replaced = if successor == leaving.name {
            others().any(|machine| self.successor(machine) == successor && !is_moving(machine) && votes(machine))
        } else {
            others().any(|machine| machine.name == successor && is_ready(machine) && votes(machine))
        };
        self.demand(rests, Gate::OneMachineAtATime, "C1", object, "another machine comes or goes");
        self.demand(whole, Gate::AWholeNodeStays, "C2", object, "no other machine is well");
        self.demand(replaced, Gate::ReplacementHealthy, "C3", object, "nothing that is well stays in its place");
    }
}
