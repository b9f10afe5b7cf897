//! A control plane that does what it is told, and looks after every change whether it should have been told so.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_api::name::{ClusterSecret, MachineName, NodeName, Uid, UpdateId};
use windlass_plan::gate::Gates;
use windlass_plan::inventory::{EtcdMember, Machine, MachineState, Milestone};
use windlass_plan::roll::{
    Attempt, Observed, Ownership, Part, PartState, Parts, Preparation, RollInput, RollStep, Waiting,
};
use windlass_plan::step::Revision;

/// A machine has no providerID.
pub const BOOTING: u32 = 0;
/// It has no node, and its member of etcd was added and has not started.
pub const REGISTERING: u32 = 1;
/// Its member has started; its other programs have not.
pub const STARTING: u32 = 2;
/// It is a healthy node.
const READY: u32 = 3;

pub struct Cluster {
    pub now: Timestamp,
    /// New machines that get so far never get further.
    pub stuck_at: Option<u32>,
    /// How old machines were when they were deleted.
    pub deaths: Vec<SignedDuration>,
    count: usize,
    machines: Vec<Fake>,
    members: Vec<EtcdMember>,
    next_id: u64,
    parts: BTreeMap<MachineName, Parts>,
    certificates: BTreeMap<ClusterSecret, Ownership>,
    unprepared: BTreeSet<Preparation>,
    endpoints: BTreeSet<NodeName>,
}

struct Fake {
    machine: Machine,
    stage: u32,
    is_stuck: bool,
    is_deleted: bool,
}

impl Fake {
    fn node(&self) -> NodeName {
        self.machine.name.as_str().parse().unwrap()
    }

    fn is_replacement(&self) -> bool {
        self.machine.name.as_str().ends_with("-7")
    }

    /// The new state of it is another revision.
    fn show(&mut self) {
        let node = self.node();
        let state = match (self.is_deleted, self.stage) {
            (true, READY) => MachineState::Deleting { node: Some(node) },
            (true, _) => MachineState::Deleting { node: None },
            (false, BOOTING) => MachineState::Joining { awaits: Milestone::ProviderId },
            (false, REGISTERING) => MachineState::Joining { awaits: Milestone::Node },
            (false, STARTING) => MachineState::Joining { awaits: Milestone::Components },
            (false, _) => MachineState::Ready { node },
        };
        self.machine.state = state;
        let revision = &mut self.machine.revision.resource_version;
        *revision = (revision.parse::<u64>().unwrap() + 1).to_string();
    }
}

impl Cluster {
    /// A healthy control plane of so many machines. Its certificates belong to the configuration of the first one, and a node
    /// that is long gone is among its endpoints.
    pub fn of(count: usize) -> Self {
        let mut cluster = Self {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            stuck_at: None,
            deaths: Vec::new(),
            count,
            machines: Vec::new(),
            members: Vec::new(),
            next_id: 1,
            parts: BTreeMap::new(),
            certificates: ClusterSecret::CERTIFICATES.map(|secret| (secret, Ownership::Others)).into(),
            unprepared: [
                Preparation::KubeletConfig,
                Preparation::KubeletConfigAccess,
                Preparation::NodesAccess,
                Preparation::KubeadmConfig,
            ]
            .into(),
            endpoints: ["gone".parse().unwrap()].into(),
        };
        for ordinal in 0..count {
            let name = format!("cp-{ordinal}");
            cluster.add(&name, None);
            let fake = cluster.machines.last_mut().unwrap();
            fake.stage = READY;
            fake.show();
            cluster.join();
            let member = cluster.members.last_mut().unwrap();
            member.leader = ordinal == 0;
            cluster.start(&name);
        }
        cluster
    }

    fn add(&mut self, name: &str, base: Option<&str>) {
        let machine = Machine {
            name: name.parse().unwrap(),
            revision: Revision {
                uid: Uid::new(&format!("{name}-{}", self.now)).unwrap(),
                resource_version: "1".to_owned(),
            },
            base: base.map(|base| base.parse().unwrap()),
            update: base.map(|_| id()),
            created: self.now,
            version: "v1.16.7".parse().unwrap(),
            image: None,
            class: None,
            storage_class: None,
            registration: None,
            state: MachineState::Joining { awaits: Milestone::ProviderId },
        };
        self.machines.push(Fake { machine, stage: BOOTING, is_stuck: false, is_deleted: false });
    }

    /// Adds a member that has not started.
    fn join(&mut self) {
        let member = EtcdMember {
            id: self.next_id,
            name: String::new(),
            healthy: false,
            learner: false,
            leader: false,
            version: None,
            alarms: BTreeSet::new(),
        };
        self.next_id += 1;
        self.members.push(member);
    }

    fn start(&mut self, name: &str) {
        let member = self.members.iter_mut().find(|member| member.name.is_empty()).unwrap();
        name.clone_into(&mut member.name);
        member.healthy = true;
        self.endpoints.insert(name.parse().unwrap());
    }

    pub fn input(&self, began: Timestamp, waiting: Option<Waiting>) -> RollInput {
        RollInput {
            attempt: Attempt {
                cluster: "my-tkc".parse().unwrap(),
                id: id(),
                version: "v1.16.7".parse().unwrap(),
                machine_timeout: SignedDuration::from_mins(15),
                etcd_timeout: SignedDuration::from_mins(5),
            },
            observed: Observed {
                hands_off: None,
                machines: self.machines.iter().map(|fake| fake.machine.clone()).collect(),
                leaving: BTreeMap::new(),
                parts: self.parts.clone(),
                etcd: Ok(self.members.clone()),
                certificates: self.certificates.clone(),
                unprepared: self.unprepared.clone(),
                endpoints: self.endpoints.clone(),
            },
            began,
            released: None,
            waiting,
            now: self.now,
            gates: Gates::all(),
        }
    }

    /// The same, as whoever gives up sees it: for them the record of kubeadm is not as it should be once it is the new one.
    pub fn input_of_abort(&self, began: Timestamp, waiting: Option<Waiting>) -> RollInput {
        let mut input = self.input(began, waiting);
        if !input.observed.unprepared.remove(&Preparation::KubeadmConfig) {
            input.observed.unprepared.insert(Preparation::KubeadmConfig);
        }
        input
    }

    /// Time goes by: new machines get on, deleted ones go, and so does what they were made from.
    pub fn pass(&mut self, time: SignedDuration) {
        self.now += time;
        self.parts.retain(|_, parts| parts.infrastructure != PartState::Leaving);
        let gone: Vec<MachineName> =
            self.machines.iter().filter(|fake| fake.is_deleted).map(|fake| fake.machine.name.clone()).collect();
        self.machines.retain(|fake| !fake.is_deleted);
        for name in gone {
            let leaving = Parts { infrastructure: PartState::Leaving, configuration: PartState::Leaving };
            self.parts.insert(name, leaving);
        }
        let (mut joined, mut started) = (0, Vec::new());
        for fake in &mut self.machines {
            fake.is_stuck |= fake.stage != READY && self.stuck_at == Some(fake.stage);
            if fake.is_stuck || fake.stage == READY {
                continue;
            }
            fake.stage += 1;
            fake.show();
            match fake.stage {
                REGISTERING => joined += 1,
                STARTING => started.push(fake.machine.name.to_string()),
                _ => {}
            }
        }
        for _ in 0..joined {
            self.join();
        }
        for name in started {
            self.start(&name);
        }
    }

    pub fn execute(&mut self, step: &RollStep) {
        match step {
            RollStep::OwnCertificate { secret } => {
                assert_eq!(self.certificates.insert(*secret, Ownership::Cluster), Some(Ownership::Others));
            }
            RollStep::Prepare { preparation } => assert!(self.unprepared.remove(preparation), "{preparation:?}"),
            RollStep::ForgetEndpoint { node } => assert!(self.endpoints.remove(node), "{node}"),
            RollStep::Mark { machine, base } => {
                assert_eq!(machine, base);
                let fake = self.machine(machine);
                assert_eq!(fake.machine.update.replace(id()), None);
                fake.machine.base = Some(base.clone());
                fake.show();
            }
            RollStep::CreateInfrastructure { name, .. } => {
                let parts = Parts { infrastructure: PartState::Present, ..Parts::NONE };
                assert_eq!(self.parts.insert(name.clone(), parts), None);
            }
            RollStep::CreateConfiguration { name, .. } => {
                self.parts.get_mut(name).unwrap().configuration = PartState::Present;
            }
            RollStep::CreateMachine { original, name } => {
                let parts = self.parts.remove(name).unwrap();
                assert_eq!(parts, Parts { infrastructure: PartState::Present, configuration: PartState::Present });
                self.add(name.as_str(), Some(original.as_str()));
            }
            RollStep::MoveLeader { to } => {
                assert!(self.members.iter().find(|member| member.id == *to).unwrap().is_sound());
                self.members.iter_mut().for_each(|member| member.leader = member.id == *to);
            }
            RollStep::RemoveMember { id } => self.remove_member(*id),
            RollStep::DeleteMachine { machine, expect } => self.delete(machine, expect),
            RollStep::Unmark { machine } => {
                let fake = self.machine(machine);
                assert_eq!(fake.machine.update.take(), Some(self::id()));
                fake.show();
            }
            RollStep::DeletePart { machine, part } => {
                let parts = self.parts.get_mut(machine).unwrap();
                let state = match part {
                    Part::Infrastructure => &mut parts.infrastructure,
                    Part::Configuration => &mut parts.configuration,
                    Part::Machine => panic!("a machine is no part of itself"),
                };
                assert_eq!(std::mem::replace(state, PartState::Absent), PartState::Present);
            }
            RollStep::RestoreKubeadmConfig => {
                assert!(!self.machines.iter().any(Fake::is_replacement), "a machine was made with the new one");
                assert!(self.unprepared.insert(Preparation::KubeadmConfig));
            }
        }
    }

    fn machine(&mut self, name: &MachineName) -> &mut Fake {
        self.machines.iter_mut().find(|fake| fake.machine.name == *name).unwrap()
    }

    fn remove_member(&mut self, id: u64) {
        let voters = self.members.len();
        let healthy = self.members.iter().filter(|member| member.healthy).count();
        assert!(healthy > voters / 2, "etcd has no quorum to agree with");
        let position = self.members.iter().position(|member| member.id == id).unwrap();
        let removed = self.members.remove(position);
        assert!(!removed.leader, "the member {} leads", removed.name);
        assert!(self.members.iter().all(|member| member.healthy), "one is unwell and another is removed");
    }

    fn delete(&mut self, name: &MachineName, expect: &Revision) {
        let members = self.members.clone();
        let votes = |name: &MachineName| members.iter().any(|m| m.name == name.as_str() && m.healthy);
        assert!(!votes(name), "the member of {name} is still there");
        assert!(self.certificates.values().all(|owner| *owner == Ownership::Cluster));
        let base = self.machine(name).machine.base.clone();
        let other = self.machines.iter().find(|fake| fake.machine.name != *name && fake.machine.base == base);
        let other = other.unwrap_or_else(|| panic!("nobody takes the place of {name}"));
        assert_eq!(other.stage, READY, "{} is not well", other.machine.name);
        assert!(votes(&other.machine.name) && !other.is_deleted, "{} is no stand-in", other.machine.name);
        let now = self.now;
        let fake = self.machine(name);
        assert_eq!(fake.machine.revision, *expect);
        fake.is_deleted = true;
        fake.show();
        let age = now.duration_since(fake.machine.created);
        self.deaths.push(age);
    }

    /// What must hold after every change.
    pub fn check(&self) {
        let healthy = self.members.iter().filter(|member| member.is_sound()).count();
        assert!(healthy > self.count / 2, "etcd has lost its quorum: {:?}", self.members);
        let machines = self.machines.len();
        assert!((self.count..=self.count + 1).contains(&machines), "{machines} machines");
        let changing = self.machines.iter().filter(|fake| fake.is_deleted || fake.stage != READY).count();
        assert!(changing <= 1, "{changing} machines come or go");
        let originals = self.machines.iter().filter(|fake| !fake.is_replacement());
        let first_is_gone = originals.clone().all(|fake| fake.machine.name.as_str() != "cp-0");
        let orphans = self.certificates.values().any(|owner| *owner == Ownership::Others);
        assert!(!(first_is_gone && orphans), "certificates went with the first machine");
        let is_begun = self.machines.iter().any(Fake::is_replacement);
        assert!(!is_begun || self.unprepared.is_empty(), "a machine joins what is not prepared for it");
        let strangers = |member: &&EtcdMember| {
            !member.name.is_empty() && !self.machines.iter().any(|fake| fake.machine.name.as_str() == member.name)
        };
        assert_eq!(self.members.iter().find(strangers), None, "its machine went before it did");
    }

    /// What must hold when an attempt was given up: nothing has come, nothing has gone, and nothing is marked.
    pub fn check_given_up(&self, count: usize) {
        self.check();
        let names: BTreeSet<String> = (0..count).map(|ordinal| format!("cp-{ordinal}")).collect();
        let machines: BTreeSet<String> = self.machines.iter().map(|fake| fake.machine.name.to_string()).collect();
        let members: BTreeSet<String> = self.members.iter().map(|member| member.name.clone()).collect();
        assert_eq!([&machines, &members], [&names; 2]);
        assert!(self.machines.iter().all(|fake| fake.machine.update.is_none() && fake.stage == READY));
        assert!(self.unprepared.contains(&Preparation::KubeadmConfig), "whoever joins gets the new version");
        let left = self.parts.values().any(|parts| parts.infrastructure == PartState::Present);
        assert!(!left, "{:?}", self.parts);
    }

    /// What must hold in the end.
    pub fn check_ended(&self, count: usize) {
        self.check();
        let names: BTreeSet<String> = (0..count).map(|ordinal| format!("cp-{ordinal}-7")).collect();
        let machines: BTreeSet<String> = self.machines.iter().map(|fake| fake.machine.name.to_string()).collect();
        let members: BTreeSet<String> = self.members.iter().map(|member| member.name.clone()).collect();
        let endpoints: BTreeSet<String> = self.endpoints.iter().map(ToString::to_string).collect();
        assert_eq!([&machines, &members, &endpoints], [&names; 3]);
        assert_eq!(self.members.len(), count);
        assert!(self.machines.iter().all(|fake| fake.machine.update.is_none() && fake.stage == READY));
    }
}

fn id() -> UpdateId {
    "7".parse().unwrap()
}
