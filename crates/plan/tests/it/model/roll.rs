//! The real roll, asked about a state, and its steps done to it.
//!
//! It remembers nothing but since when it has run and waited, so it is asked as it would be by a run that has just begun, by
//! one that has looked on for long, and by one that has waited for the same for too long. It must not depend on the order of
//! names, so it is asked under every order of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::SignedDuration;
use windlass_api::name::{ClusterSecret, MachineName, NodeName};
use windlass_api::version::facts;
use windlass_plan::check::{self, Finding, Severity};
use windlass_plan::gate::Gates;
use windlass_plan::roll::{
    Attempt, HandsOff, Next, Observed, Ownership, PartState, Parts as RealParts, Preparation, RollInput, RollStep,
    Waiting, next,
};

use super::environment::{Limits, attempt_failed};
use super::era::{Era, update_id};
use super::memory::Memory;
use super::moves::{By, Ghost, What};
use super::ours::new_machine;
use super::seen::{self, GHOST_LEARNER, GHOST_UNSTARTED, GHOST_VOTER, MACHINE_TIMEOUT, NOW, Names};
use super::state::{Job, Life, Machine, Member, Parts, Seat, State};

const LONG: SignedDuration = SignedDuration::from_hours(2);
/// Since a machine that is overdue had its time, and too long for a last look at it.
const A_WHILE: SignedDuration = SignedDuration::from_secs(40);

const ORDERS: [Names; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// What it would do to a state.
type Answers = Memory<State, Rc<BTreeSet<(By, What)>>>;

/// The real roll, asked once about states that look the same to it.
pub struct Roller<'e> {
    era: &'e Era,
    gates: Gates,
    answers: RefCell<Answers>,
}

impl<'e> Roller<'e> {
    pub fn new(era: &'e Era, gates: Gates) -> Self {
        Self { era, gates, answers: RefCell::default() }
    }

    /// How many different questions it was asked.
    pub fn asked(&self) -> usize {
        self.answers.borrow().len()
    }

    /// What a pod of the Job may do next. Giving up is a matter of time where `By` is adverse.
    pub fn moves(&self, state: &State, limits: &Limits) -> Vec<(By, What, State)> {
        if !matches!(state.job, Job::Active { .. }) {
            return Vec::new();
        }
        let visible = visible(state);
        let known = self.answers.borrow().get(&visible).map(Rc::clone);
        let found = known.unwrap_or_else(|| {
            let found = Rc::new(ask(self.era, &visible, &self.gates));
            self.answers.borrow_mut().insert(visible, Rc::clone(&found));
            found
        });
        let mut moved = Vec::new();
        for (by, what) in found.iter() {
            moved.extend(execute(state, *what, limits).into_iter().map(|after| (*by, *what, after)));
        }
        moved
    }
}

/// A state with what the roll does not look at left out: packages, workers, the number of attempts.
fn visible(state: &State) -> State {
    let mut visible = State::at_rest(0, 0, 0);
    visible.asked = state.target();
    visible.job = Job::Active { failed_attempts: 0 };
    (visible.paused, visible.answers) = (state.paused, state.answers);
    visible.certificate_lost = state.certificate_lost;
    (visible.prepared, visible.stale_endpoint) = (state.prepared, state.stale_endpoint);
    (visible.slots, visible.ghosts) = (state.slots, state.ghosts);
    visible
}

fn ask(era: &Era, state: &State, gates: &Gates) -> BTreeSet<(By, What)> {
    let mut found: BTreeSet<(By, What)> = BTreeSet::new();
    // Only the slots that are taken have names that can be in another order.
    let taken = state.slots.iter().filter(|slot| slot.old.is_some() || slot.new.is_some()).count();
    for names in
        ORDERS.into_iter().filter(|names| names.iter().skip(taken).zip(taken..).all(|(n, at)| *n as usize == at))
    {
        let mut ask = |began_ago: SignedDuration, waiting: Option<Waiting>| {
            let input = input(era, state, gates, names, began_ago, waiting);
            let next = next(&input);
            agreed(&input, &next);
            let by = match (&next, began_ago, &input.waiting) {
                (Next::Failed(_), ago, waiting) if !ago.is_zero() || waiting.is_some() => By::Adverse,
                _ => By::Roll,
            };
            found.extend(name(era, state, names, &next).map(|what| (by, what)));
            if let Next::Wait { wait, .. } = next { Some(wait) } else { None }
        };
        if let Some(wait) = ask(SignedDuration::ZERO, None) {
            let waiting = Some(Waiting { wait, since: NOW - LONG });
            for (began_ago, waiting) in [(A_WHILE, None), (LONG, None), (A_WHILE, waiting)] {
                ask(began_ago, waiting);
            }
        }
    }
    found
}

/// The second opinion has nothing against a step.
fn agreed(input: &RollInput, next: &Next) {
    let Next::Do(step) = next else { return };
    let fatal = |finding: &Finding| finding.severity == Severity::Fatal;
    let findings: Vec<Finding> = check::roll(input, step).into_iter().filter(fatal).collect();
    assert_eq!(findings, [], "{step:?} on {:?}", input.observed);
}

fn input(
    era: &Era,
    state: &State,
    gates: &Gates,
    names: Names,
    began_ago: SignedDuration,
    waiting: Option<Waiting>,
) -> RollInput {
    let target = era.target(state.target());
    RollInput {
        attempt: Attempt {
            cluster: target.cluster.name.clone(),
            id: update_id(target, true),
            version: target.release.kubernetes.clone(),
            machine_timeout: MACHINE_TIMEOUT,
            etcd_timeout: SignedDuration::from_mins(5),
        },
        observed: observed(era, state, names),
        began: NOW - began_ago,
        released: None,
        waiting,
        now: NOW,
        gates: gates.clone(),
    }
}

fn observed(era: &Era, state: &State, names: Names) -> Observed {
    let target = era.target(state.target());
    let machines = seen::machines(era, state, names, |_| true);
    let mut parts: BTreeMap<MachineName, RealParts> = BTreeMap::new();
    for (slot, places) in state.slots.iter().enumerate() {
        let (infrastructure, configuration) = match places.parts {
            Parts::None => continue,
            Parts::Infrastructure => (PartState::Present, PartState::Absent),
            Parts::Both => (PartState::Present, PartState::Present),
            Parts::Leaving => (PartState::Leaving, PartState::Leaving),
        };
        let name = seen::machine_name(target, names, Seat { slot, is_new: true });
        parts.insert(name, RealParts { infrastructure, configuration });
    }
    let secrets = ClusterSecret::CERTIFICATES.into_iter().skip(usize::from(state.certificate_lost));
    let has_endpoints = facts::has_cluster_status(&target.release.kubernetes);
    let nodes = state.machines().filter(|(_, machine)| has_endpoints && machine.serves());
    let mut endpoints: BTreeSet<NodeName> =
        nodes.map(|(seat, _)| NodeName::new(seen::machine_name(target, names, seat).as_str()).unwrap()).collect();
    if state.stale_endpoint && has_endpoints {
        endpoints.insert(NodeName::new("gone").unwrap());
    }
    Observed {
        hands_off: state.paused.then(|| HandsOff::Held { by: "paused".to_owned() }),
        machines,
        leaving: BTreeMap::new(),
        parts,
        etcd: if state.answers { Ok(seen::members(era, state, names)) } else { Err("no route to host".to_owned()) },
        certificates: secrets.map(|secret| (secret, Ownership::Cluster)).collect(),
        unprepared: if state.prepared { [].into() } else { [Preparation::KubeadmConfig].into() },
        endpoints,
    }
}

/// What the next thing is to a state; `None` if there is nothing to do now.
fn name(era: &Era, state: &State, names: Names, next: &Next) -> Option<What> {
    let target = era.target(state.target());
    let seats: BTreeMap<MachineName, Seat> = (0..state.slots.len())
        .flat_map(|slot| [false, true].map(|is_new| Seat { slot, is_new }))
        .map(|seat| (seen::machine_name(target, names, seat), seat))
        .collect();
    let seat_of_member = |id: u64| state.machines().map(|(seat, _)| seat).find(|seat| seen::member_id(*seat) == id);
    Some(match next {
        Next::Wait { .. } | Next::Blocked(_) => return None,
        Next::Failed(_) => What::GivesUp,
        Next::Done => What::Completes,
        Next::Do(step) => match step {
            RollStep::Prepare { .. } => What::Prepares,
            RollStep::ForgetEndpoint { .. } => What::ForgetsEndpoint,
            RollStep::Mark { machine, .. } => What::Marks(seats[machine]),
            RollStep::CreateInfrastructure { name, .. } => What::CreatesInfrastructure { slot: seats[name].slot },
            RollStep::CreateConfiguration { name, .. } => What::CreatesConfiguration { slot: seats[name].slot },
            RollStep::CreateMachine { name, .. } => What::Replaces { slot: seats[name].slot },
            RollStep::MoveLeader { to } => What::MovesLead { to: seat_of_member(*to).unwrap() },
            RollStep::RemoveMember { id: GHOST_VOTER..GHOST_UNSTARTED } => What::RemovesGhost(Ghost::Voter),
            RollStep::RemoveMember { id: GHOST_UNSTARTED..GHOST_LEARNER } => What::RemovesGhost(Ghost::Unstarted),
            RollStep::RemoveMember { id: GHOST_LEARNER.. } => What::RemovesGhost(Ghost::Learner),
            RollStep::RemoveMember { id } => What::RemovesMember(seat_of_member(*id).unwrap()),
            RollStep::DeleteMachine { machine, .. } => What::DeletesMachine(seats[machine]),
            RollStep::Unmark { machine } => What::Unmarks(seats[machine]),
            RollStep::OwnCertificate { .. } => panic!("every certificate belongs to the cluster already"),
            RollStep::DeletePart { .. } | RollStep::RestoreKubeadmConfig => panic!("nobody gives up"),
        },
    })
}

/// The states after a step.
fn execute(state: &State, what: What, limits: &Limits) -> Vec<State> {
    let mut after = *state;
    match what {
        What::Prepares => after.prepared = true,
        What::ForgetsEndpoint => after.stale_endpoint = false,
        What::Marks(seat) => after.machine(seat).marked = true,
        What::Unmarks(seat) => after.machine(seat).marked = false,
        What::CreatesInfrastructure { slot } => after.slots[slot].parts = Parts::Infrastructure,
        What::CreatesConfiguration { slot } => after.slots[slot].parts = Parts::Both,
        What::Replaces { slot } => {
            let machine = Machine { marked: true, ..new_machine(state.target().version) };
            after.slots[slot].new = Some(machine);
            after.slots[slot].parts = Parts::None;
        }
        What::MovesLead { to } => {
            for (seat, _) in state.machines() {
                after.machine(seat).leads = seat == to;
            }
        }
        What::RemovesMember(seat) => {
            after.machine(seat).member = Member::Left;
            return after.elections();
        }
        What::RemovesGhost(Ghost::Voter) => after.ghosts.voters -= 1,
        What::RemovesGhost(Ghost::Unstarted) => after.ghosts.unstarted -= 1,
        What::RemovesGhost(Ghost::Learner) => after.ghosts.learners -= 1,
        What::DeletesMachine(seat) => {
            let machine = after.machine(seat);
            machine.life = if machine.is_node() { Life::Leaving } else { Life::Stillborn };
            machine.overdue = false;
        }
        What::GivesUp => return attempt_failed(state, limits),
        What::Completes => after.job = Job::Complete,
        _ => panic!("{what:?} is no step of a roll"),
    }
    vec![after]
}
