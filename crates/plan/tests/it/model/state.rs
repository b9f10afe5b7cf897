//! What is true of a cluster, in as few bits as the rules need.
//!
//! A state is the ground truth. What the planner and the roll are shown is made from it in `seen`; what the rules judge is
//! this and nothing else.

/// The largest control plane.
pub const SLOTS: usize = 3;
/// The most workers at a time: two, and one more while they are rolled.
pub const WORKERS_MAX: usize = 3;
/// The versions that a search knows.
pub const VERSIONS: usize = 3;

/// A release, by its place among those that a search knows. Later ones are newer.
pub type Version = u8;

/// A cluster.
#[allow(clippy::struct_excessive_bools, reason = "each is a bit of the truth, and all combinations are possible")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// What its owner asks for.
    pub asked: Asked,
    /// Somebody said to leave it alone.
    pub paused: bool,
    /// A certificate is lost.
    pub certificate_lost: bool,
    /// Its API has answered once.
    pub initialized: bool,
    /// Its API answers.
    pub answers: bool,
    /// The one package that is there once for all releases.
    pub dns: Dns,
    /// The packages that are bound to a release, one for each.
    pub proxies: [Package; VERSIONS],
    /// The update on record.
    pub record: Option<Record>,
    /// The Job of that update.
    pub job: Job,
    /// What the roll does once for each update was done.
    pub prepared: bool,
    /// kubeadm remembers a machine that is gone.
    pub stale_endpoint: bool,
    /// The places of the control plane.
    pub slots: [Slot; SLOTS],
    /// Members of etcd whose machines are gone.
    pub ghosts: Ghosts,
    /// The pool of workers.
    pub pool: Pool,
}

/// What the owner of a cluster asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    pub version: Version,
    /// Machines of the control plane.
    pub control_plane: u8,
}

/// How a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Package {
    Absent,
    /// It was written, and nobody has looked at it since.
    Unseen,
    Unwell,
    Well,
}

/// The package that is there once: of one release, which a write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dns {
    pub version: Version,
    pub is: Package,
}

/// An update on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// What the cluster was: the oldest version in it, and the size of its control plane.
    pub from: Asked,
    pub to: Asked,
    pub state: RecordState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordState {
    Running,
    Succeeded,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    None,
    Active { failed_attempts: u8 },
    Complete,
    Failed,
}

/// A place in the control plane: the machine that has it, and the one that this update makes for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Made by an earlier update, or with the cluster.
    pub old: Option<Machine>,
    /// Made by the update on record.
    pub new: Option<Machine>,
    /// What the machine of this update will be made from.
    pub parts: Parts,
}

/// What a machine is made from, before it is there and after it is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parts {
    #[default]
    None,
    Infrastructure,
    Both,
    /// The machine that was made from them is gone, and they are on their way out.
    Leaving,
}

/// A machine of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Machine {
    pub version: Version,
    pub life: Life,
    pub member: Member,
    /// Its member of etcd leads.
    pub leads: bool,
    /// It carries the id of the update on record.
    pub marked: bool,
    /// It has had its time to become healthy.
    pub overdue: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    Joining(Awaits),
    Ready,
    Unwell,
    Leaving,
    /// On its way out without ever having been a node.
    Stillborn,
}

/// What a machine that joins does not have yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Awaits {
    Node,
    Components,
    RoleLabel,
}

/// The member of etcd on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    None,
    /// Added, and not started.
    Unstarted,
    Learner,
    Voter,
    /// A voter that does not answer.
    Sick,
    /// Removed. It never comes back by itself.
    Left,
}

/// Members of etcd whose machines are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ghosts {
    pub voters: u8,
    pub unstarted: u8,
    pub learners: u8,
}

/// The pool of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// It is there.
    pub exists: bool,
    /// What its template says.
    pub version: Version,
    /// Its template was made by the update on record.
    pub is_of_record: bool,
    /// Its controller has seen the latest change.
    pub observed: bool,
    /// Its machines, sorted: one is like another.
    pub machines: [Option<Worker>; WORKERS_MAX],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    pub version: Version,
    pub life: WorkerLife,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerLife {
    Joining,
    Ready,
    Unwell,
}

/// One of the machines of the control plane: its slot, and whether it is the one that the update on record made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    pub slot: usize,
    pub is_new: bool,
}

impl Machine {
    pub fn is_node(self) -> bool {
        !matches!(self.life, Life::Joining(Awaits::Node) | Life::Stillborn)
    }

    /// Whether its API server runs.
    pub fn serves(self) -> bool {
        matches!(self.life, Life::Joining(Awaits::RoleLabel) | Life::Ready | Life::Unwell | Life::Leaving)
    }

    pub fn is_leaving(self) -> bool {
        matches!(self.life, Life::Leaving | Life::Stillborn)
    }

    /// Whether all that a control plane needs works on it.
    pub fn is_whole(self) -> bool {
        self.life == Life::Ready && self.member == Member::Voter
    }
}

impl State {
    /// A cluster that is as it was asked to be.
    pub fn at_rest(control_plane: u8, workers: u8, version: Version) -> Self {
        let asked = Asked { version, control_plane };
        let mut slots = [Slot::default(); SLOTS];
        for (ordinal, slot) in slots.iter_mut().take(control_plane.into()).enumerate() {
            slot.old = Some(Machine {
                version,
                life: Life::Ready,
                member: Member::Voter,
                leads: ordinal == 0,
                marked: false,
                overdue: false,
            });
        }
        let mut proxies = [Package::Absent; VERSIONS];
        proxies[usize::from(version)] = Package::Well;
        let mut machines = [None; WORKERS_MAX];
        machines[..usize::from(workers)].fill(Some(Worker { version, life: WorkerLife::Ready }));
        Self {
            asked,
            paused: false,
            certificate_lost: false,
            initialized: true,
            answers: true,
            dns: Dns { version, is: Package::Well },
            proxies,
            record: None,
            job: Job::None,
            prepared: false,
            stale_endpoint: false,
            slots,
            ghosts: Ghosts::default(),
            pool: Pool { exists: true, version, is_of_record: false, observed: true, machines },
        }
        .canonical()
    }

    /// A cluster that is about to get its first machine.
    pub fn unborn(control_plane: u8, version: Version) -> Self {
        let mut state = Self::at_rest(0, 0, version);
        state.asked.control_plane = control_plane;
        (state.initialized, state.answers) = (false, false);
        state.dns.is = Package::Absent;
        state.proxies = [Package::Absent; VERSIONS];
        state.pool.exists = false;
        state
    }

    /// What the cluster is to be: what the update on record was begun for, until that has succeeded.
    pub fn target(&self) -> Asked {
        self.unfinished().map_or(self.asked, |record| record.to)
    }

    /// The update that has not ended well yet.
    pub fn unfinished(&self) -> Option<Record> {
        self.record.filter(|record| record.state != RecordState::Succeeded)
    }

    /// The machines of the control plane.
    pub fn machines(&self) -> impl Iterator<Item = (Seat, Machine)> + '_ {
        self.slots.iter().enumerate().flat_map(|(slot, places)| {
            let old = places.old.map(|machine| (Seat { slot, is_new: false }, machine));
            old.into_iter().chain(places.new.map(|machine| (Seat { slot, is_new: true }, machine)))
        })
    }

    pub fn seat(&mut self, seat: Seat) -> &mut Option<Machine> {
        let slot = &mut self.slots[seat.slot];
        if seat.is_new { &mut slot.new } else { &mut slot.old }
    }

    /// The machine in a seat that is taken.
    pub fn machine(&mut self, seat: Seat) -> &mut Machine {
        self.seat(seat).as_mut().unwrap()
    }

    pub fn workers(&self) -> impl Iterator<Item = Worker> + '_ {
        self.pool.machines.iter().flatten().copied()
    }

    /// How many voters etcd has, and how many of them are healthy.
    pub fn quorum(&self, joins_as_learner: bool) -> (u8, u8) {
        let counts = |member: Member| match member {
            Member::Voter | Member::Sick => true,
            Member::Unstarted => !joins_as_learner,
            Member::None | Member::Learner | Member::Left => false,
        };
        let live = self.machines().filter(|(_, machine)| counts(machine.member)).count();
        let healthy = self.machines().filter(|(_, machine)| machine.member == Member::Voter).count();
        let dead = self.ghosts.voters + if joins_as_learner { 0 } else { self.ghosts.unstarted };
        (u8::try_from(live).unwrap() + dead, u8::try_from(healthy).unwrap())
    }

    /// Whether every member of etcd is a voter that answers.
    pub fn etcd_is_sound(&self) -> bool {
        let sound = |machine: Machine| matches!(machine.member, Member::None | Member::Voter | Member::Left);
        self.ghosts == Ghosts::default() && self.machines().all(|(_, machine)| sound(machine))
    }

    /// The same for all that differ only in which of several alike machines is which.
    pub fn canonical(mut self) -> Self {
        self.pool.machines.sort_by(|left, right| right.cmp(left));
        self.slots.sort_by(|left, right| right.cmp(left));
        if self.machines().all(|(_, machine)| !machine.leads) {
            self.elect_if_only_one();
        }
        self
    }

    fn elect_if_only_one(&mut self) {
        let healthy: Vec<Seat> =
            self.machines().filter(|(_, it)| it.member == Member::Voter).map(|(seat, _)| seat).collect();
        if let [only] = healthy.as_slice() {
            self.machine(*only).leads = true;
        }
    }

    /// The states in which somebody leads, after the one who did cannot any more.
    pub fn elections(self) -> Vec<Self> {
        let leads = |machine: Machine| machine.leads && machine.member == Member::Voter;
        let mut state = self;
        for seat in self.machines().map(|(seat, _)| seat).collect::<Vec<_>>() {
            let machine = state.machine(seat);
            machine.leads = leads(*machine);
        }
        let healthy: Vec<Seat> =
            state.machines().filter(|(_, it)| it.member == Member::Voter).map(|(seat, _)| seat).collect();
        if state.machines().any(|(_, machine)| machine.leads) || healthy.is_empty() {
            return vec![state];
        }
        let elected = |seat: &Seat| {
            let mut state = state;
            state.machine(*seat).leads = true;
            state
        };
        healthy.iter().map(elected).collect()
    }
}
