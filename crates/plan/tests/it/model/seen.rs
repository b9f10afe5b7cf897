//! What the planner and the roll are shown of a state: an inventory as `observe` would make it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::name::{
    AddonName, ClusterSecret, MachineName, NameLimit, NodeName, ObjectName, PoolName, Uid, replacement_name,
};
use windlass_plan::gate::Gates;
use windlass_plan::inventory as real;
use windlass_plan::planner::PlanningInput;
use windlass_plan::render::Scope;
use windlass_plan::step::Revision;
use windlass_plan::target::Target;

use super::era::{Era, update_id};
use super::state::{Awaits, Job, Life, Machine, Member, Package, RecordState, SLOTS, Seat, State, Version, WorkerLife};

/// Which number in the names of machines each slot has. The order of names must not matter, so the roll is shown all.
pub type Names = [u32; SLOTS];

/// The plain order.
pub const IN_ORDER: Names = [0, 1, 2];

pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;
pub const MACHINE_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);
/// For how long a machine that is overdue has been so.
const OVERDUE_BY: SignedDuration = SignedDuration::from_mins(1);

pub fn machine_name(target: &Target, names: Names, seat: Seat) -> MachineName {
    let base = base_name(target, names, seat.slot);
    replacement_name(&base, update_id(target, seat.is_new), NameLimit::LabelValue)
}

pub fn base_name(target: &Target, names: Names, slot: usize) -> MachineName {
    Scope { target, update: update_id(target, true) }.control_plane_base(names[slot])
}

/// One state of the object that is known by this.
pub fn revision(of: &str) -> Revision {
    Revision { uid: Uid::new(&format!("uid-of-{of}")).unwrap(), resource_version: "1".to_owned() }
}

/// The ids of members: those on machines by their seats, those without by what they are.
pub fn member_id(seat: Seat) -> u64 {
    1 + 2 * u64::try_from(seat.slot).unwrap() + u64::from(seat.is_new)
}

pub const GHOST_VOTER: u64 = 100;
pub const GHOST_UNSTARTED: u64 = 200;
pub const GHOST_LEARNER: u64 = 300;

/// What a planner is asked.
pub fn planning_input(era: &Era, state: &State, gates: &Gates, hidden: Option<usize>) -> PlanningInput {
    PlanningInput {
        target: era.target(state.target()).clone(),
        inventory: inventory(era, state, hidden),
        now: NOW,
        gates: gates.clone(),
    }
}

/// With a slot of the control plane that could not be read, if there is one.
fn inventory(era: &Era, state: &State, hidden: Option<usize>) -> real::Inventory {
    let target = era.target(state.target());
    let mut secrets: std::collections::BTreeSet<ClusterSecret> = ClusterSecret::CERTIFICATES.into();
    if state.certificate_lost {
        secrets.pop_first();
    }
    let gap = |_| real::Gap { object: "Machine".to_owned(), why: "forbidden".to_owned() };
    let is_seen = |seat: Seat| hidden != Some(seat.slot);
    real::Inventory {
        as_of: NOW,
        cluster: real::ClusterState::Present {
            uid: Uid::new("uid-of-the-cluster").unwrap(),
            infrastructure_ready: true,
            initialized: state.initialized,
            network: Some(target.network.clone()),
            paused: state.paused.then(|| "somebody looks at it".to_owned()),
        },
        secrets,
        control_plane: real::ControlPlane {
            machines: machines(era, state, IN_ORDER, is_seen),
            job: job(target, state),
            earlier_jobs: Vec::new(),
            kubeadm: None,
        },
        pools: pools(era, state),
        topology: None,
        workload: workload(era, state, IN_ORDER),
        update: state.record.map(|record| real::UpdateRecord {
            name: ObjectName::new("my-tkc-1").unwrap(),
            ordinal: 1,
            id: update_id(target, true),
            from: era.end(record.from),
            envelope_digest: era.digest(record.from, record.to).to_owned(),
            state: match record.state {
                RecordState::Running => real::UpdateRecordState::Running,
                RecordState::Succeeded => real::UpdateRecordState::Succeeded,
                RecordState::Failed => real::UpdateRecordState::Failed,
            },
            waiting: Vec::new(),
            progress: Vec::new(),
        }),
        orders: real::Orders::default(),
        gaps: hidden.map(gap).into_iter().collect(),
        consent: None,
        releases: releases(target),
        earlier_templates: Vec::new(),
        deployed: None,
    }
}

/// Releases are kept before the first step that is modelled, and never lost.
fn releases(target: &Target) -> real::Releases {
    let digest = target.release.original_digest().unwrap().to_owned();
    let name = ObjectName::new("my-tkc-release").unwrap();
    let kept = real::KeptRelease { name, digest, revision: revision("release") };
    real::Releases { kept: vec![kept], ..real::Releases::default() }
}

fn job(target: &Target, state: &State) -> Option<real::Job> {
    let update = update_id(target, true);
    let state = match state.job {
        Job::None => return None,
        Job::Active { failed_attempts } => real::JobState::Active { failed_attempts: failed_attempts.into() },
        Job::Complete => real::JobState::Complete,
        Job::Failed => real::JobState::Failed { message: "it took too long".to_owned() },
    };
    Some(real::Job { name: update.job_name(), update, state })
}

/// The machines of the control plane, by name.
pub fn machines(era: &Era, state: &State, names: Names, is_seen: impl Fn(Seat) -> bool) -> Vec<real::Machine> {
    let target = era.target(state.target());
    let seen = state.machines().filter(|(seat, _)| is_seen(*seat));
    let mut machines: Vec<real::Machine> =
        seen.map(|(seat, machine)| shown(era, target, names, seat, machine)).collect();
    machines.sort_by(|left, right| left.name.cmp(&right.name));
    machines
}

fn shown(era: &Era, target: &Target, names: Names, seat: Seat, machine: Machine) -> real::Machine {
    let release = &era.releases[usize::from(machine.version)];
    let name = machine_name(target, names, seat);
    let node = NodeName::new(name.as_str()).unwrap();
    real::Machine {
        revision: revision(name.as_str()),
        base: Some(base_name(target, names, seat.slot)),
        update: machine.marked.then(|| update_id(target, true)),
        created: if machine.overdue { NOW - MACHINE_TIMEOUT - OVERDUE_BY } else { NOW },
        version: release.kubernetes.clone(),
        image: release.image().cloned(),
        class: target.control_plane.class.clone(),
        storage_class: target.control_plane.storage_class.clone(),
        registration: None,
        state: match machine.life {
            Life::Joining(Awaits::Node) => real::MachineState::Joining { awaits: real::Milestone::Node },
            Life::Joining(Awaits::Components) => real::MachineState::Joining { awaits: real::Milestone::Components },
            Life::Joining(Awaits::RoleLabel) => real::MachineState::Joining { awaits: real::Milestone::RoleLabel },
            Life::Ready => real::MachineState::Ready { node },
            Life::Unwell => real::MachineState::Unhealthy { node, why: "its node is not ready".to_owned() },
            Life::Leaving => real::MachineState::Deleting { node: Some(node) },
            Life::Stillborn => real::MachineState::Deleting { node: None },
        },
        name,
    }
}

/// The members of etcd.
pub fn members(era: &Era, state: &State, names: Names) -> Vec<real::EtcdMember> {
    let target = era.target(state.target());
    let learns = windlass_api::version::facts::joins_etcd_as_learner(&target.release.kubernetes);
    let member = |id: u64, name: String, is: Member, leader: bool| real::EtcdMember {
        id,
        name,
        healthy: matches!(is, Member::Voter | Member::Learner),
        learner: is == Member::Learner || (is == Member::Unstarted && learns),
        leader,
        version: Some("v3.3.15".parse().unwrap()),
        alarms: [].into(),
    };
    let live = state.machines().filter(|(_, machine)| !matches!(machine.member, Member::None | Member::Left)).map(
        |(seat, machine)| {
            let is_named = machine.member != Member::Unstarted;
            let name = if is_named { machine_name(target, names, seat).to_string() } else { String::new() };
            member(member_id(seat), name, machine.member, machine.leads)
        },
    );
    let ghosts = |count: u8, first: u64, is: Member| (0..u64::from(count)).map(move |it| (first + it, is));
    let dead = ghosts(state.ghosts.voters, GHOST_VOTER, Member::Sick)
        .chain(ghosts(state.ghosts.unstarted, GHOST_UNSTARTED, Member::Unstarted))
        .map(|(id, is)| {
            member(id, if is == Member::Unstarted { String::new() } else { format!("gone-{id}") }, is, false)
        });
    let learners = ghosts(state.ghosts.learners, GHOST_LEARNER, Member::Learner)
        .map(|(id, is)| real::EtcdMember { healthy: false, ..member(id, format!("gone-{id}"), is, false) });
    let mut members: Vec<real::EtcdMember> = live.chain(dead).chain(learners).collect();
    members.sort_by_key(|member| member.id);
    members
}

fn pools(era: &Era, state: &State) -> BTreeMap<PoolName, real::Pool> {
    if !state.pool.exists {
        return BTreeMap::new();
    }
    let pool = &state.pool;
    let [infrastructure_template, bootstrap_template] = era.templates(pool.version, pool.is_of_record).clone();
    let count = |counts: &dyn Fn(&super::state::Worker) -> bool| {
        u32::try_from(state.workers().filter(|worker| counts(worker)).count()).unwrap()
    };
    let progress = real::PoolProgress {
        observed: pool.observed,
        replicas: count(&|_| true),
        up_to_date: count(&|worker| worker.version == pool.version),
        available: count(&|worker| worker.life == WorkerLife::Ready),
    };
    let shown = real::Pool {
        revision: revision("pool"),
        replicas: era.workers.into(),
        version: era.kubernetes(pool.version).clone(),
        infrastructure_template,
        bootstrap_template,
        progress,
        machines: Vec::new(),
        moved_at: None,
        live: serde_json::Value::Null,
    };
    [(PoolName::new("default").unwrap(), shown)].into()
}

fn workload(era: &Era, state: &State, names: Names) -> real::Workload {
    if !state.initialized {
        return real::Workload::NotYet;
    }
    if !state.answers {
        return real::Workload::Unreachable { why: "no route to host".to_owned() };
    }
    let target = era.target(state.target());
    let node = |name: String, control_plane: bool, version: Version, ready: bool| real::Node {
        name: NodeName::new(&name).unwrap(),
        control_plane,
        labelled: control_plane,
        kubelet: era.kubernetes(version).clone(),
        distribution: Some(era.releases[usize::from(version)].distribution.clone()),
        ready,
    };
    let mut nodes: Vec<real::Node> = state
        .machines()
        .filter(|(_, machine)| machine.is_node())
        .map(|(seat, machine)| {
            let name = machine_name(target, names, seat).to_string();
            node(name, true, machine.version, machine.life == Life::Ready)
        })
        .collect();
    let workers = state.workers().enumerate().filter(|(_, worker)| worker.life != WorkerLife::Joining);
    nodes.extend(workers.map(|(number, worker)| {
        node(format!("worker-{number}"), false, worker.version, worker.life == WorkerLife::Ready)
    }));
    let addons = addons(era, state);
    let applied = Some(applied(target, &addons));
    let etcd = members(era, state, names);
    real::Workload::Reachable { nodes, addons, etcd, foreign: BTreeMap::new(), applied }
}

/// A record that is always up to date: what it is for is not part of the model.
fn applied(target: &Target, addons: &BTreeMap<AddonName, Vec<real::AddonObject>>) -> real::AppliedAddons {
    let entry = |addon: &AddonName, object: &Value| {
        let mut entry = real::AppliedObject::of(addon, object);
        let found = addons.get(addon).and_then(|found| found.iter().find(|found| entry.is(&found.live)));
        entry.uid = found.map(|found| found.revision.uid.clone());
        entry
    };
    let release = target.release.addons.iter();
    let entries = release.flat_map(|(addon, release)| release.objects.iter().map(move |object| (addon, object)));
    let objects = entries.map(|(addon, object)| entry(addon, object)).collect();
    real::AppliedAddons { revision: revision("record"), objects }
}

/// How many nodes have this version: what is bound to it runs on them, and nowhere else.
fn nodes_of(state: &State, version: Version) -> usize {
    let control_plane = state.machines().filter(|(_, machine)| machine.is_node() && machine.version == version);
    let workers = state.workers().filter(|worker| worker.life != WorkerLife::Joining && worker.version == version);
    control_plane.count() + workers.count()
}

fn addons(era: &Era, state: &State) -> BTreeMap<AddonName, Vec<real::AddonObject>> {
    let object = |addon: &str, version: Version| {
        let addons = &era.releases[usize::from(version)].addons;
        addons[&AddonName::new(addon).unwrap()].objects[0].clone()
    };
    let mut found: BTreeMap<AddonName, Vec<real::AddonObject>> = BTreeMap::new();
    let mut add = |addon: &str, version: Version, live: Value| {
        let object = real::AddonObject { revision: revision(&format!("{addon}-{version}")), live };
        found.entry(AddonName::new(addon).unwrap()).or_default().push(object);
    };
    if state.dns.is != Package::Absent {
        let is_new = |version: Version| version == state.dns.version;
        let runs = state.machines().any(|(_, machine)| machine.is_node() && is_new(machine.version));
        let mut live = object("coredns", state.dns.version);
        live["metadata"]["generation"] = 1.into();
        live["status"] = json!({
            "observedGeneration": u8::from(state.dns.is != Package::Unseen),
            "availableReplicas": if state.dns.is == Package::Unwell { 1 } else { 2 },
            "updatedReplicas": if runs { 2 } else { 1 },
        });
        add("coredns", state.dns.version, live);
    }
    for (version, package) in (0..).zip(state.proxies) {
        if package != Package::Absent {
            let mut live = object("kube-proxy", version);
            live["metadata"]["generation"] = 1.into();
            let nodes = nodes_of(state, version);
            live["status"] = json!({
                "observedGeneration": u8::from(package != Package::Unseen),
                "desiredNumberScheduled": nodes,
                "numberReady": if package == Package::Unwell { 0 } else { nodes },
                "updatedNumberScheduled": nodes,
            });
            add("kube-proxy", version, live);
        }
    }
    found
}
