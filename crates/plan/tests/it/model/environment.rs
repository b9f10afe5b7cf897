//! What the environment and people can do to a cluster.

use windlass_api::version::facts;

use super::era::Era;
use super::moves::{By, What};
use super::state::{
    Asked, Awaits, Job, Life, Machine, Member, Package, Parts, Seat, State, VERSIONS, Version, WORKERS_MAX, Worker,
    WorkerLife,
};

/// How much may go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many things may be unwell at a time.
    pub failures: usize,
    /// How many pods of a Job may fail before the Job gives up. Without a number any may be the last: as the roll remembers
    /// nothing, that is the same to all rules, and a fraction of the states.
    pub attempts: Option<u8>,
    /// Whether certificates are lost.
    pub certificates: bool,
    /// Whether the planner is shown inventories with gaps, too.
    pub gaps: bool,
    /// How large a control plane may be asked for.
    pub control_plane: u8,
    /// Which versions may be asked for.
    pub versions: u8,
}

/// What happens, and what is then true.
pub type Moved = (By, What, State);

/// All that can happen by itself, or because a person wants it.
pub fn moves(era: &Era, state: &State, limits: &Limits) -> Vec<Moved> {
    let mut moved = Vec::new();
    let mut push = |by, what, after: State| moved.push((by, what, after));
    for (seat, machine) in state.machines() {
        machine_moves(era, state, seat, machine, &mut push);
    }
    for slot in 0..state.slots.len() {
        if state.slots[slot].parts == Parts::Leaving {
            push(By::Kind, What::PartsAreGone { slot }, with(state, |it| it.slots[slot].parts = Parts::None));
        }
    }
    package_moves(state, &mut push);
    pool_moves(era, state, &mut push);
    if !state.answers && state.initialized {
        push(By::Kind, What::ApiRecovers, with(state, |it| it.answers = true));
    }
    if state.certificate_lost {
        push(By::Kind, What::CertificateIsRestored, with(state, |it| it.certificate_lost = false));
    }
    if unwell(state) < limits.failures {
        failures(state, limits, &mut push);
    }
    if matches!(state.job, Job::Active { .. }) {
        for after in attempt_failed(state, limits) {
            push(By::Adverse, What::PodCrashes, after);
        }
    }
    person_moves(state, limits, &mut push);
    moved.into_iter().filter(|(_, _, after)| after != state).collect()
}

fn with(state: &State, change: impl FnOnce(&mut State)) -> State {
    let mut after = *state;
    change(&mut after);
    after
}

/// A pod of the Job has failed: there is another, until there were enough.
pub fn attempt_failed(state: &State, limits: &Limits) -> Vec<State> {
    let Job::Active { failed_attempts } = state.job else { return Vec::new() };
    let becomes = |job| with(state, |it| it.job = job);
    match limits.attempts {
        None => vec![*state, becomes(Job::Failed)],
        Some(most) if failed_attempts + 1 >= most => vec![becomes(Job::Failed)],
        Some(_) => vec![becomes(Job::Active { failed_attempts: failed_attempts + 1 })],
    }
}

/// How many things are unwell that were well once.
fn unwell(state: &State) -> usize {
    let machines = state.machines().filter(|(_, machine)| machine.life == Life::Unwell).count();
    let members = state.machines().filter(|(_, machine)| machine.member == Member::Sick).count();
    let workers = state.workers().filter(|worker| worker.life == WorkerLife::Unwell).count();
    let others = [state.initialized && !state.answers, state.dns.is == Package::Unwell, state.certificate_lost];
    machines + members + workers + others.into_iter().filter(|is| *is).count()
}

fn failures(state: &State, limits: &Limits, push: &mut impl FnMut(By, What, State)) {
    for (seat, machine) in state.machines() {
        if machine.life == Life::Ready {
            push(By::Adverse, What::MachineFails(seat), with(state, |it| it.machine(seat).life = Life::Unwell));
        }
        if machine.member == Member::Voter {
            let after = with(state, |it| it.machine(seat).member = Member::Sick);
            for after in after.elections() {
                push(By::Adverse, What::MemberFails(seat), after);
            }
        }
    }
    if state.answers {
        push(By::Adverse, What::ApiFails, with(state, |it| it.answers = false));
    }
    if state.dns.is == Package::Well {
        push(By::Adverse, What::DnsFails, with(state, |it| it.dns.is = Package::Unwell));
    }
    if limits.certificates {
        push(By::Adverse, What::CertificateIsLost, with(state, |it| it.certificate_lost = true));
    }
    for position in 0..WORKERS_MAX {
        if let Some(Worker { version, life: WorkerLife::Ready }) = state.pool.machines[position] {
            let worker = Some(Worker { version, life: WorkerLife::Unwell });
            let after = with(state, |it| it.pool.machines[position] = worker);
            push(By::Adverse, What::WorkerFails(version), after);
        }
    }
}

/// What becomes of a machine of the control plane. kubeadm registers the node first, then adds the member of etcd (only while
/// all members answer: it checks), then starts the programs, then labels the node.
fn machine_moves(era: &Era, state: &State, seat: Seat, machine: Machine, push: &mut impl FnMut(By, What, State)) {
    let changed = |change: &dyn Fn(&mut Machine)| with(state, |it| change(it.machine(seat)));
    let progress = |life: Life| changed(&|it| it.life = life);
    match machine.life {
        Life::Joining(Awaits::Node) => {
            push(By::Kind, What::MachineProgresses(seat), progress(Life::Joining(Awaits::Components)));
        }
        Life::Joining(Awaits::Components) if machine.member == Member::Voter => {
            push(By::Kind, What::MachineProgresses(seat), progress(Life::Joining(Awaits::RoleLabel)));
        }
        Life::Joining(Awaits::Components) => {
            for (what, after) in join_etcd(era, state, seat, machine) {
                push(By::Kind, what, after);
            }
        }
        Life::Joining(Awaits::RoleLabel) => {
            let after = with(&progress(Life::Ready), |it| {
                (it.initialized, it.answers) = (true, state.answers || !state.initialized);
            });
            push(By::Kind, What::MachineProgresses(seat), after);
        }
        Life::Unwell => push(By::Kind, What::MachineRecovers(seat), progress(Life::Ready)),
        Life::Leaving | Life::Stillborn => {
            for after in gone(era, state, seat, machine).elections() {
                push(By::Kind, What::MachineIsGone(seat), after);
            }
        }
        Life::Ready => {}
    }
    if machine.member == Member::Sick && !machine.is_leaving() {
        let after = changed(&|it| it.member = Member::Voter);
        for after in after.elections() {
            push(By::Kind, What::MemberRecovers(seat), after);
        }
    }
    let is_late = seat.is_new && !machine.overdue && !machine.is_leaving() && state.slots[seat.slot].old.is_some();
    if is_late && matches!(state.job, Job::Active { .. }) {
        push(By::Adverse, What::TimeIsUp(seat), changed(&|it| it.overdue = true));
    }
}

fn join_etcd(era: &Era, state: &State, seat: Seat, machine: Machine) -> Vec<(What, State)> {
    let learns = facts::joins_etcd_as_learner(era.kubernetes(machine.version));
    let becomes = |member: Member| with(state, |it| it.machine(seat).member = member);
    match machine.member {
        Member::None if !state.initialized => {
            let first = with(&becomes(Member::Voter), |it| it.machine(seat).leads = true);
            vec![(What::MemberIsAdded(seat), first)]
        }
        Member::None if state.etcd_is_sound() && state.machines().any(|(_, it)| it.member == Member::Voter) => {
            vec![(What::MemberIsAdded(seat), becomes(Member::Unstarted))]
        }
        Member::Unstarted if learns => vec![(What::MemberStarts(seat), becomes(Member::Learner))],
        Member::Unstarted => vec![(What::MemberStarts(seat), becomes(Member::Voter))],
        Member::Learner => vec![(What::MemberIsPromoted(seat), becomes(Member::Voter))],
        Member::None | Member::Voter | Member::Sick | Member::Left => Vec::new(),
    }
}

/// A machine is gone. What it did not take out of etcd stays there, dead.
fn gone(era: &Era, state: &State, seat: Seat, machine: Machine) -> State {
    with(state, |it| {
        *it.seat(seat) = None;
        if seat.is_new {
            it.slots[seat.slot].parts = Parts::Leaving;
        }
        match machine.member {
            Member::None | Member::Left => {}
            Member::Unstarted => it.ghosts.unstarted += 1,
            Member::Learner => it.ghosts.learners += 1,
            Member::Voter | Member::Sick => it.ghosts.voters += 1,
        }
        let was_api_server = machine.life == Life::Leaving;
        it.stale_endpoint |= was_api_server && facts::has_cluster_status(era.kubernetes(machine.version));
    })
}

fn package_moves(state: &State, push: &mut impl FnMut(By, What, State)) {
    match state.dns.is {
        Package::Unseen => push(By::Kind, What::DnsIsSeen, with(state, |it| it.dns.is = Package::Well)),
        Package::Unwell => push(By::Kind, What::DnsRecovers, with(state, |it| it.dns.is = Package::Well)),
        Package::Absent | Package::Well => {}
    }
    for (version, package) in (0..).zip(state.proxies) {
        if package == Package::Unseen {
            let after = with(state, |it| it.proxies[usize::from(version)] = Package::Well);
            push(By::Kind, What::ProxyIsSeen(version), after);
        }
    }
}

/// The controller of a `MachineDeployment`, with one machine more than asked for and none less. It rests while the cluster is
/// paused.
fn pool_moves(era: &Era, state: &State, push: &mut impl FnMut(By, What, State)) {
    let pool = &state.pool;
    for position in 0..WORKERS_MAX {
        let Some(worker) = pool.machines[position] else { continue };
        let after = with(state, |it| {
            it.pool.machines[position] = Some(Worker { life: WorkerLife::Ready, ..worker });
        });
        match worker.life {
            WorkerLife::Joining => push(By::Kind, What::WorkerJoins(worker.version), after),
            WorkerLife::Unwell => push(By::Kind, What::WorkerRecovers(worker.version), after),
            WorkerLife::Ready => {}
        }
    }
    if !pool.exists || state.paused {
        return;
    }
    if !pool.observed {
        push(By::Kind, What::PoolIsSeen, with(state, |it| it.pool.observed = true));
        return;
    }
    let wanted = usize::from(era.workers);
    let count = |counts: &dyn Fn(&Worker) -> bool| state.workers().filter(|worker| counts(worker)).count();
    let (all, new) = (count(&|_| true), count(&|worker| worker.version == pool.version));
    if all < (wanted + 1).min(WORKERS_MAX) && new < wanted {
        let made = Some(Worker { version: pool.version, life: WorkerLife::Joining });
        let place = pool.machines.iter().position(Option::is_none).unwrap();
        push(By::Kind, What::WorkerIsMade(pool.version), with(state, |it| it.pool.machines[place] = made));
    }
    let new_unavailable = count(&|worker| worker.version == pool.version && worker.life != WorkerLife::Ready);
    let removable = all.saturating_sub(wanted).saturating_sub(new_unavailable);
    let is_old = |worker: &Worker| worker.version != pool.version;
    let has_unwell = state.workers().any(|worker| is_old(&worker) && worker.life != WorkerLife::Ready);
    for position in 0..WORKERS_MAX {
        let Some(worker) = pool.machines[position].filter(is_old) else { continue };
        if removable > 0 && (worker.life != WorkerLife::Ready || !has_unwell) {
            let after = with(state, |it| it.pool.machines[position] = None);
            push(By::Kind, What::WorkerIsRemoved(worker.version), after);
        }
    }
}

fn person_moves(state: &State, limits: &Limits, push: &mut impl FnMut(By, What, State)) {
    if state.job == Job::Failed {
        push(By::Person, What::DeletesJob, with(state, |it| it.job = Job::None));
    }
    let what = if state.paused { What::Unpauses } else { What::Pauses };
    push(By::Person, what, with(state, |it| it.paused = !state.paused));
    let versions = 0..Version::try_from(VERSIONS).unwrap().min(limits.versions);
    let sizes = [state.asked.control_plane, limits.control_plane.max(state.asked.control_plane)];
    for asked in versions.flat_map(|version| sizes.map(|control_plane| Asked { version, control_plane })) {
        push(By::Person, What::Asks(asked), with(state, |it| it.asked = asked));
    }
}
