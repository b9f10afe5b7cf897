//! One machine of the control plane, from the first look at it until it is gone and another does its work.

use jiff::Timestamp;
use windlass_api::name::MachineName;

use super::decision::{later, patiently, waiting_since};
use super::outcome::STILL_THERE;
use super::row::Row;
use super::{Failure, LAST_LOOK, Next, Part, PartState, Parts, RollInput, RollStep, Wait, etcd};
use crate::gate::{self, Blocked, Gate, MemberChange};
use crate::inventory::{EtcdMember, Machine, MachineState, Milestone};

/// Goes on with the machine whose replacement is there already.
pub fn carry_on(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    let begun = rows.iter().filter_map(|row| Some((row.original?, row.replacement?)));
    let (original, replacement) = begun.min_by_key(|(original, _)| &original.name)?;
    if let Some(failed) = foreign(input, replacement) {
        return Some(failed);
    }
    Some(match &replacement.state {
        MachineState::Ready { .. } if is_discarded(input, original, replacement) => {
            discard(input, original, replacement)
        }
        MachineState::Ready { .. } => retire(input, original, replacement),
        MachineState::Joining { .. } | MachineState::Unhealthy { .. } => await_health(input, original, replacement),
        MachineState::Deleting { .. } => match stand_in(input, original) {
            StandIn::Votes => discard(input, original, replacement),
            StandIn::Unknown(missing) => patiently(input, Wait::Etcd { without: replacement.name.clone(), missing }),
            StandIn::Lost(why) => lost(replacement, why),
        },
    })
}

/// A machine that has the name of a replacement, and is not of this attempt.
pub(super) fn foreign(input: &RollInput, replacement: &Machine) -> Option<Next> {
    let why = format!("it does not carry the id {}", input.attempt.id);
    let machine = replacement.name.clone();
    let is_ours = replacement.update == Some(input.attempt.id);
    (!is_ours).then_some(Next::Failed(Failure::Foreign { machine, part: Part::Machine, why }))
}

/// Whether a replacement had its time, has left etcd on its way out, and became healthy after all: nobody would let it join
/// again, so it goes on being made anew.
fn is_discarded(input: &RollInput, original: &Machine, replacement: &Machine) -> bool {
    let had_its_time = later(replacement.created, input.attempt.machine_timeout) <= input.began;
    let left = input.observed.etcd.as_ref().is_ok_and(|members| etcd::member_of(replacement, members).is_none());
    had_its_time && left && matches!(stand_in(input, original), StandIn::Votes)
}

/// Begins to replace the next machine. The control plane is at rest.
pub fn begin(input: &RollInput, rows: &[Row<'_>]) -> Option<Next> {
    let parts_of = |row: &Row<'_>| input.observed.parts.get(&row.name);
    let waiting = rows.iter().filter_map(|row| Some((row, row.original?)));
    let (row, original) = waiting.min_by_key(|(row, original)| (parts_of(row).is_none(), &original.name))?;
    let Parts { infrastructure, configuration } = parts_of(row).unwrap_or(&Parts::NONE);
    let (original, name) = (original.name.clone(), row.name.clone());
    if let Some(next) = unusable(input, &name, Part::Infrastructure, infrastructure) {
        return Some(next);
    }
    if *infrastructure == PartState::Absent {
        return Some(Next::Do(RollStep::CreateInfrastructure { original, name }));
    }
    if let Some(next) = unusable(input, &name, Part::Configuration, configuration) {
        return Some(next);
    }
    Some(Next::Do(match configuration {
        PartState::Absent => RollStep::CreateConfiguration { original, name },
        _ => RollStep::CreateMachine { original, name },
    }))
}

/// What stands in the way of a part of a replacement.
fn unusable(input: &RollInput, name: &MachineName, part: Part, state: &PartState) -> Option<Next> {
    let machine = name.clone();
    match state {
        PartState::Absent | PartState::Present => None,
        PartState::Leaving => Some(patiently(input, Wait::PartGone { machine, part })),
        PartState::Foreign { why } => Some(Next::Failed(Failure::Foreign { machine, part, why: why.clone() })),
    }
}

/// Waits until a replacement is healthy.
fn await_health(input: &RollInput, original: &Machine, replacement: &Machine) -> Next {
    let wait = healthy(replacement);
    let deadline = deadline(input, replacement);
    let had_its_time = deadline <= input.began;
    let stand_in = stand_in(input, original);
    let until = match stand_in {
        // It cannot be made anew, so there is nothing to be gained by giving up early.
        StandIn::Lost(_) => deadline.max(later(waiting_since(input, &wait), input.attempt.etcd_timeout)),
        StandIn::Votes | StandIn::Unknown(_) if had_its_time => later(input.began, LAST_LOOK),
        StandIn::Votes | StandIn::Unknown(_) => deadline,
    };
    if input.now < until {
        return Next::Wait { wait, until };
    }
    match stand_in {
        StandIn::Lost(why) => lost(replacement, why),
        _ if !had_its_time => Next::Failed(Failure::TimedOut { wait }),
        StandIn::Unknown(missing) => patiently(input, Wait::Etcd { without: replacement.name.clone(), missing }),
        StandIn::Votes => discard(input, original, replacement),
    }
}

/// When a replacement has had its time. That is counted from its creation, not from the beginning of a run: a run that is killed
/// again and again gives it no more. Only time in which nobody was allowed to work on it does not count.
fn deadline(input: &RollInput, replacement: &Machine) -> Timestamp {
    let created = replacement.created;
    let from = input.released.map_or(created, |released| released.max(created));
    later(from, input.attempt.machine_timeout)
}

fn healthy(replacement: &Machine) -> Wait {
    let (awaits, missing) = match &replacement.state {
        MachineState::Joining { awaits } => (Some(*awaits), lacks(*awaits).to_owned()),
        MachineState::Unhealthy { why, .. } => (None, why.clone()),
        MachineState::Ready { .. } => (None, "nothing".to_owned()),
        MachineState::Deleting { .. } => (None, "it is being deleted".to_owned()),
    };
    Wait::Healthy { machine: replacement.name.clone(), awaits, missing }
}

fn lacks(milestone: Milestone) -> &'static str {
    match milestone {
        Milestone::ProviderId => "it has no providerID",
        Milestone::Node => "it has no node",
        Milestone::Components => "its programs do not run",
        Milestone::RoleLabel => "its node is not labelled as one of the control plane",
    }
}

/// Whether the work of a replacement is done by the machine that it replaces, while it is made anew.
enum StandIn {
    /// It votes.
    Votes,
    /// Nobody can tell.
    Unknown(String),
    /// It does not, for this reason.
    Lost(String),
}

fn stand_in(input: &RollInput, original: &Machine) -> StandIn {
    let name = &original.name;
    if matches!(original.state, MachineState::Deleting { .. }) {
        return StandIn::Lost(format!("{name}, which it replaces, is being deleted"));
    }
    let members = match &input.observed.etcd {
        Ok(members) => members,
        Err(why) => return StandIn::Unknown(why.clone()),
    };
    match etcd::member_of(original, members) {
        Some(member) if member.is_sound() => StandIn::Votes,
        _ => StandIn::Lost(format!("{name}, which it replaces, is no healthy etcd member any more")),
    }
}

fn lost(replacement: &Machine, why: String) -> Next {
    Next::Failed(Failure::ReplacementLost { machine: replacement.name.clone(), why })
}

/// Takes a machine out of the control plane whose replacement is healthy: out of etcd first, then the machine itself. The
/// replacement is looked at again after each step, so the machine is deleted only while the replacement is still healthy:
/// without its member the old machine is of no use, so that is the last moment to find out that the new one is of none either.
fn retire(input: &RollInput, original: &Machine, replacement: &Machine) -> Next {
    let RollInput { observed, gates, .. } = input;
    let sick_machine = || {
        let is_leaving = |machine: &Machine| machine.name == original.name;
        gate::control_plane_healthy(&observed.machines, is_leaving)
    };
    let sick_member = || {
        let members = observed.etcd.as_deref().unwrap_or_default();
        let others: Vec<EtcdMember> = members.iter().filter(|other| other.name != original.node()).cloned().collect();
        gate::sick_member_first(&others, MemberChange::Add)
    };
    let held = gates.ask(Gate::ControlPlaneHealthy, sick_machine);
    leave(input, original, replacement, held.or_else(|| gates.ask(Gate::SickMemberFirst, sick_member)))
}

/// Removes a replacement that did not become healthy, so that it can be made anew. Only while the machine that it was to replace
/// votes: otherwise the replacement may be all that there is.
pub(super) fn discard(input: &RollInput, original: &Machine, failed: &Machine) -> Next {
    leave(input, failed, original, None)
}

/// The member goes before the machine does, in favour of that of another machine; one that leads lets the other lead first.
fn leave(input: &RollInput, leaving: &Machine, staying: &Machine, held: Option<Blocked>) -> Next {
    let RollInput { observed, gates, .. } = input;
    let machines = &observed.machines;
    let wait = |missing: String| patiently(input, Wait::Etcd { without: leaving.name.clone(), missing });
    let members = match &observed.etcd {
        Ok(members) => members,
        Err(why) => return wait(why.clone()),
    };
    let strangers = || gates.ask(Gate::MembersAreMachines, || not_the_others(machines, members, leaving));
    if let Some(refusal) = held.or_else(strangers) {
        return wait(refusal.to_string());
    }
    let Some(member) = etcd::member_of(leaving, members) else { return delete(input, leaving) };
    let heir = etcd::member_of(staying, members).map(|heir| RollStep::MoveLeader { to: heir.id });
    let removal = RollStep::RemoveMember { id: member.id };
    match (gate::roll_step(input, &removal), heir) {
        (None, _) => Next::Do(removal),
        (Some(Blocked::EtcdLeaderLeaves { .. }), Some(heir)) => match gate::roll_step(input, &heir) {
            None => Next::Do(heir),
            Some(refusal) => wait(refusal.to_string()),
        },
        (Some(refusal), _) => wait(refusal.to_string()),
    }
}

/// Without a machine and its member, etcd has to be made of exactly the other machines. A machine that is no node yet could be
/// known to etcd by a name that is nobody's: then it is not known what would leave with it.
fn not_the_others(machines: &[Machine], members: &[EtcdMember], leaving: &Machine) -> Option<Blocked> {
    let machines: Vec<Machine> = machines.iter().filter(|machine| machine.name != leaving.name).cloned().collect();
    let members: Vec<EtcdMember> = members.iter().filter(|member| member.name != leaving.node()).cloned().collect();
    gate::members_are_machines(&machines, &members, |_| false)
}

fn delete(input: &RollInput, machine: &Machine) -> Next {
    let name = machine.name.clone();
    if matches!(machine.state, MachineState::Deleting { .. }) {
        let said = input.observed.leaving.get(&name);
        let missing = said.cloned().unwrap_or_else(|| STILL_THERE.to_owned());
        return patiently(input, Wait::Gone { machine: name, missing });
    }
    let step = RollStep::DeleteMachine { machine: name.clone(), expect: machine.revision.clone() };
    match gate::roll_step(input, &step) {
        None => Next::Do(step),
        Some(refusal) => patiently(input, Wait::Etcd { without: name, missing: refusal.to_string() }),
    }
}
