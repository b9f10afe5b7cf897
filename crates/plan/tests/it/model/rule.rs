//! The rules, judged on the ground truth. Nothing here is shared with the gates, the second opinion or the World.
//!
//! Rules about versions hold in every state. Rules about etcd and machines are about what we do: a member that dies by itself
//! breaks no rule of ours. A step that was planned on an older state is judged by what was true when it was planned, where the
//! rule is about when something may be done, and by what it led to, where the rule is about what may be.

use windlass_api::version::facts;

use super::era::Era;
use super::moves::{Ghost, What};
use super::state::{Life, Machine, Member, Package, RecordState, Seat, State, Version, WorkerLife};

/// The id of a rule.
pub type Id = &'static str;

/// A rule that a version cannot keep for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exemption {
    pub rule: Id,
    /// Only for versions below this minor and patch of 1.
    pub below: (u64, u64),
    pub why: &'static str,
}

/// All exemptions. What they cover is said where the rule is judged: only machines of the control plane that the update on
/// record made, and only until that has succeeded.
pub const EXEMPTIONS: [Exemption; 4] = [
    Exemption {
        rule: "V1",
        below: (31, 0),
        why: "the kubelet of a new control-plane machine reaches older API servers through the address of the cluster",
    },
    Exemption {
        rule: "V4",
        below: (19, 1),
        why: "kubeadm lets controller manager and scheduler use the address of the cluster, too",
    },
    Exemption {
        rule: "V5",
        below: (u64::MAX, 0),
        why: "a new control-plane machine has only the new kube-proxy on its disk",
    },
    Exemption { rule: "E1", below: (27, 0), why: "kubeadm adds a member of etcd as a voter before it has started" },
];

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    pub rule: Id,
    pub why: String,
}

/// Something that happened.
pub struct Event<'a> {
    pub era: &'a Era,
    pub before: &'a State,
    /// What the decision was made on; the same as `before` unless it was an old one.
    pub decided_on: &'a State,
    pub what: What,
    pub after: &'a State,
    /// The exemptions that are granted.
    pub exemptions: &'a [Exemption],
}

/// What must not be, whatever happened. Whether a state keeps these is the same however it was reached.
const OF_STATES: [fn(&Event<'_>) -> Option<Breach>; 7] = [
    v1_kubelets_are_not_newer,
    v2_kubelets_are_not_too_old,
    v3_servers_are_close,
    v4_managers_are_close,
    v5_proxies_are_close,
    e3_one_change_at_a_time,
    c1_one_machine_at_a_time,
];

/// What must not happen.
const OF_EVENTS: [fn(&Event<'_>) -> Option<Breach>; 12] = [
    v6_minors_are_not_skipped,
    v7_old_kubelets_go_first,
    v8_nothing_goes_back,
    e1_quorum_is_kept,
    e2_quorum_is_kept_if_the_worst_happens,
    e6_the_leader_is_not_removed,
    c2_one_machine_is_whole,
    c3_replacements_come_first,
    c9_certificates_come_first,
    d1_packages_come_first,
    d2_workers_come_last,
    d4_paused_is_left_alone,
];

/// The rules that the state broke that an event led to.
pub fn judge_state(event: &Event<'_>) -> Option<Breach> {
    OF_STATES.iter().find_map(|rule| rule(event))
}

/// The rules that an event broke.
pub fn judge_event(event: &Event<'_>) -> Option<Breach> {
    OF_EVENTS.iter().find_map(|rule| rule(event))
}

/// All rules that an event broke, with what it led to.
pub fn judge(event: &Event<'_>) -> Vec<Breach> {
    OF_STATES.iter().chain(&OF_EVENTS).filter_map(|rule| rule(event)).collect()
}

#[allow(clippy::unnecessary_wraps, reason = "it is how a rule ends")]
fn breach(rule: Id, why: impl Into<String>) -> Option<Breach> {
    Some(Breach { rule, why: why.into() })
}

impl Event<'_> {
    fn minor(&self, version: Version) -> u64 {
        self.era.minor(version)
    }

    /// The minors of the API servers that run.
    fn servers(&self) -> Vec<u64> {
        self.after.machines().filter(|(_, it)| it.serves()).map(|(_, it)| self.minor(it.version)).collect()
    }

    /// Whether a rule is waived for a machine of the control plane: it is what the update on record leads to, and that update
    /// has not succeeded.
    fn is_exempt(&self, rule: Id, version: Version) -> bool {
        let is_new = self.after.unfinished().is_some_and(|record| record.to.version == version);
        is_new && self.exemption(rule, version)
    }

    fn exemption(&self, rule: Id, version: Version) -> bool {
        let version = self.era.minor_and_patch(version);
        self.exemptions.iter().any(|exemption| exemption.rule == rule && version < exemption.below)
    }

    /// The version of a machine of the control plane that was created, and the one it takes the place of.
    fn created(&self) -> Option<(Machine, Option<Machine>)> {
        let (What::Replaces { slot } | What::CreatesMachine { slot }) = self.what else { return None };
        let made = |state: &State| state.machines().map(|(seat, _)| seat).collect::<Vec<Seat>>();
        let seats = made(self.before);
        let new = self.after.machines().find(|(seat, _)| seat.slot == slot && !seats.contains(seat))?;
        Some((new.1, self.before.slots[slot].old.filter(|_| new.0.is_new)))
    }

    fn learns(&self) -> bool {
        let newest = self.after.machines().map(|(_, machine)| machine.version).max().unwrap_or_default();
        facts::joins_etcd_as_learner(self.era.kubernetes(newest))
    }
}

/// How far behind an API server a kubelet of this minor may be.
fn behind_max(kubelet: u64) -> u64 {
    if kubelet < 25 { 2 } else { 3 }
}

/// The kubelets that run: on machines of the control plane, and on workers.
fn kubelets(state: &State) -> impl Iterator<Item = (Option<Machine>, Version)> + '_ {
    let control_plane =
        state.machines().filter(|(_, it)| it.is_node()).map(|(_, machine)| (Some(machine), machine.version));
    let workers = state.workers().filter(|worker| worker.life != WorkerLife::Joining);
    control_plane.chain(workers.map(|worker| (None, worker.version)))
}

fn v1_kubelets_are_not_newer(event: &Event<'_>) -> Option<Breach> {
    let oldest = event.servers().into_iter().min()?;
    for (machine, version) in kubelets(event.after) {
        let minor = event.minor(version);
        let is_local = machine.is_some() && minor >= 31;
        if minor > oldest && !is_local && !(machine.is_some() && event.is_exempt("V1", version)) {
            return breach("V1", format!("a kubelet of 1.{minor} and an API server of 1.{oldest}"));
        }
    }
    None
}

fn v2_kubelets_are_not_too_old(event: &Event<'_>) -> Option<Breach> {
    let newest = event.servers().into_iter().max()?;
    let minors = kubelets(event.after).map(|(_, version)| event.minor(version));
    let old = minors.into_iter().find(|minor| minor + behind_max(*minor) < newest)?;
    breach("V2", format!("a kubelet of 1.{old} and an API server of 1.{newest}"))
}

fn v3_servers_are_close(event: &Event<'_>) -> Option<Breach> {
    let servers = event.servers();
    let (oldest, newest) = (servers.iter().min()?, servers.iter().max()?);
    if newest - oldest > 1 { breach("V3", format!("API servers of 1.{oldest} and 1.{newest}")) } else { None }
}

fn v4_managers_are_close(event: &Event<'_>) -> Option<Breach> {
    let servers = event.servers();
    let (oldest, newest) = (*servers.iter().min()?, *servers.iter().max()?);
    for (_, machine) in event.after.machines().filter(|(_, it)| it.serves()) {
        let minor = event.minor(machine.version);
        let is_local = event.era.minor_and_patch(machine.version) >= (19, 1);
        let (oldest, newest) = if is_local { (minor, minor) } else { (oldest, newest) };
        if (minor > oldest || minor + 1 < newest) && !event.is_exempt("V4", machine.version) {
            return breach(
                "V4",
                format!("a controller manager of 1.{minor} and API servers of 1.{oldest} to 1.{newest}"),
            );
        }
    }
    None
}

fn v5_proxies_are_close(event: &Event<'_>) -> Option<Breach> {
    let servers = event.servers();
    let (oldest, newest) = (*servers.iter().min()?, *servers.iter().max()?);
    // Bound to the release of their node: where there is none for it, none runs.
    let runs = |version: Version| event.after.proxies[usize::from(version)] != Package::Absent;
    for (machine, version) in kubelets(event.after).filter(|(_, version)| runs(*version)) {
        let minor = event.minor(version);
        let is_exempt = machine.is_some() && event.is_exempt("V5", version);
        if (minor > oldest && !is_exempt) || minor + behind_max(minor) < newest {
            return breach("V5", format!("a kube-proxy of 1.{minor} and API servers of 1.{oldest} to 1.{newest}"));
        }
    }
    None
}

fn v6_minors_are_not_skipped(event: &Event<'_>) -> Option<Breach> {
    let (new, old) = event.created()?;
    let (new, old) = (event.minor(new.version), event.minor(old?.version));
    if new > old + 1 { breach("V6", format!("1.{old} is replaced by 1.{new}")) } else { None }
}

fn v7_old_kubelets_go_first(event: &Event<'_>) -> Option<Breach> {
    let begins = matches!(event.what, What::CreatesJob | What::Replaces { .. });
    let to = event.minor(event.decided_on.target().version);
    let minors = kubelets(event.decided_on).map(|(_, version)| event.minor(version));
    let old = minors.into_iter().filter(|_| begins).find(|minor| minor + behind_max(*minor) < to)?;
    breach("V7", format!("a kubelet of 1.{old} is left, and the control plane goes to 1.{to}"))
}

fn v8_nothing_goes_back(event: &Event<'_>) -> Option<Breach> {
    let kubernetes = |version: Version| event.era.kubernetes(version);
    let (new, old) = match (event.what, event.created()) {
        (What::SwitchesPool(version), _) => (version, event.before.pool.version),
        (_, Some((new, Some(old)))) => (new.version, old.version),
        _ => return None,
    };
    if kubernetes(new) < kubernetes(old) {
        breach("V8", format!("{} -> {}", kubernetes(old), kubernetes(new)))
    } else {
        None
    }
}

fn has_quorum(voters: u8, healthy: u8) -> bool {
    healthy > voters / 2
}

/// After what we did, and after what had to follow from it: a machine that we created adds its member, one that we deleted
/// takes its own with it.
fn e1_quorum_is_kept(event: &Event<'_>) -> Option<Breach> {
    let (voters, healthy) = event.after.quorum(event.learns());
    let joining = match event.what {
        What::MemberIsAdded(seat) => Some(seat),
        What::RemovesMember(_) | What::RemovesGhost(_) | What::MachineIsGone(_) | What::MemberIsPromoted(_) => None,
        _ => return None,
    };
    if has_quorum(voters, healthy) {
        return None;
    }
    let version = |seat: Seat| event.after.machines().find(|(at, _)| *at == seat).map(|(_, machine)| machine.version);
    // No wider than the one member that joins: without it there is a quorum.
    let is_window = |seat: Seat| {
        let covered = version(seat).is_some_and(|version| event.exemption("E1", version));
        covered && has_quorum(voters - 1, healthy)
    };
    let was_lost = {
        let (voters, healthy) = event.before.quorum(event.learns());
        !has_quorum(voters, healthy)
    };
    if joining.is_some_and(is_window) || was_lost {
        return None;
    }
    breach("E1", format!("{healthy} of {voters} voters are healthy"))
}

/// What would be left if the member that comes never starts, and nothing unnamed or unhealthy ever does.
fn e2_quorum_is_kept_if_the_worst_happens(event: &Event<'_>) -> Option<Breach> {
    let state = event.decided_on;
    let (voters, healthy) = state.quorum(event.learns());
    let member = |seat: Seat| state.machines().find(|(at, _)| *at == seat).map_or(Member::None, |(_, it)| it.member);
    let unsettled = |but: Option<Seat>| {
        let learning = |it: Machine| matches!(it.member, Member::Learner | Member::Unstarted);
        state.machines().any(|(seat, machine)| Some(seat) != but && learning(machine))
    };
    let (voters_then, healthy_then, but) = match event.what {
        What::CreatesMachine { .. } | What::Replaces { .. } if voters == 0 => return None,
        What::CreatesMachine { .. } | What::Replaces { .. } => (voters + 1, healthy + u8::from(voters == 1), None),
        What::RemovesMember(seat) => match member(seat) {
            Member::Voter => (voters - 1, healthy - 1, None),
            Member::Sick => (voters - 1, healthy, None),
            Member::Unstarted if !event.learns() => (voters - 1, healthy, Some(seat)),
            Member::Unstarted | Member::Learner | Member::None | Member::Left => (voters, healthy, Some(seat)),
        },
        What::RemovesGhost(Ghost::Voter) => (voters - 1, healthy, None),
        // Its member stays behind, dead.
        What::DeletesMachine(seat) if member(seat) == Member::Voter => (voters, healthy - 1, None),
        What::DeletesMachine(seat) => (voters, healthy, Some(seat)),
        _ => return None,
    };
    if voters_then == 0 || !has_quorum(voters_then, healthy_then) {
        return breach("E2", format!("{healthy_then} of {voters_then} voters would be healthy"));
    }
    if unsettled(but) { breach("E2", "a member has not caught up") } else { None }
}

fn e3_one_change_at_a_time(event: &Event<'_>) -> Option<Breach> {
    let on_machines =
        event.after.machines().filter(|(_, it)| matches!(it.member, Member::Unstarted | Member::Learner)).count();
    let count = on_machines + usize::from(event.after.ghosts.unstarted + event.after.ghosts.learners);
    if count > 1 { breach("E3", format!("{count} members are on their way into etcd")) } else { None }
}

fn e6_the_leader_is_not_removed(event: &Event<'_>) -> Option<Breach> {
    let What::RemovesMember(seat) = event.what else { return None };
    let leads = event.decided_on.machines().any(|(at, machine)| at == seat && machine.leads);
    if leads { breach("E6", "the leader is removed") } else { None }
}

fn c1_one_machine_at_a_time(event: &Event<'_>) -> Option<Breach> {
    let machines = || event.after.machines().map(|(_, machine)| machine);
    let moving = machines().filter(|it| it.is_leaving() || matches!(it.life, Life::Joining(_))).count();
    if moving > 1 {
        return breach("C1", format!("{moving} machines come or go at once"));
    }
    let asked = event.after.target().control_plane;
    let surge = usize::from(event.after.unfinished().is_some());
    let count = machines().count();
    if count > usize::from(asked) + surge {
        breach("C1", format!("{count} machines where {asked} are asked for"))
    } else {
        None
    }
}

fn c2_one_machine_is_whole(event: &Event<'_>) -> Option<Breach> {
    let is_ours = matches!(event.what, What::RemovesMember(_) | What::DeletesMachine(_) | What::MachineIsGone(_));
    let whole = |state: &State| state.machines().filter(|(_, machine)| machine.is_whole()).count();
    if is_ours && whole(event.before) > 0 && whole(event.after) == 0 {
        return breach("C2", "no machine of the control plane is whole");
    }
    None
}

/// A machine leaves only when its replacement does its work, and a replacement that does not become healthy only while what it
/// was to replace still votes.
fn c3_replacements_come_first(event: &Event<'_>) -> Option<Breach> {
    let What::DeletesMachine(seat) = event.what else { return None };
    let slot = event.decided_on.slots[seat.slot];
    let stands_in = if seat.is_new {
        slot.old.is_some_and(|original| original.member == Member::Voter && !original.is_leaving())
    } else {
        slot.new.is_some_and(Machine::is_whole)
    };
    if stands_in { None } else { breach("C3", "a machine is deleted that nothing stands in for") }
}

fn c9_certificates_come_first(event: &Event<'_>) -> Option<Breach> {
    let makes = matches!(
        event.what,
        What::CreatesMachine { .. } | What::CreatesPool | What::SwitchesPool(_) | What::CreatesJob
    );
    if makes && event.decided_on.certificate_lost { breach("C9", "a certificate is missing") } else { None }
}

/// Nothing of a new release is made before its packages are there and were looked at; nothing is begun before they are well.
fn d1_packages_come_first(event: &Event<'_>) -> Option<Breach> {
    let state = event.decided_on;
    let record = state.record.filter(|record| record.state == RecordState::Running)?;
    let to = record.to.version;
    let proxy = state.proxies[usize::from(to)];
    let made = match event.what {
        What::Replaces { .. } | What::CreatesMachine { .. } => true,
        What::WorkerIsMade(version) => version == to,
        What::CreatesJob | What::SwitchesPool(_) => {
            let well = state.dns.version == to && state.dns.is == Package::Well && proxy == Package::Well;
            return if well { None } else { breach("D1", "a package is not well") };
        }
        _ => false,
    };
    let seen = |package: Package| matches!(package, Package::Well | Package::Unwell);
    let applied = state.dns.version == to && seen(state.dns.is) && seen(proxy);
    if made && !applied { breach("D1", "a package is not applied") } else { None }
}

fn d2_workers_come_last(event: &Event<'_>) -> Option<Breach> {
    let state = event.decided_on;
    let (version, is_raised) = match event.what {
        What::SwitchesPool(version) => {
            (version, event.era.kubernetes(version) > event.era.kubernetes(state.pool.version))
        }
        What::WorkerIsMade(version) => (version, false),
        _ => return None,
    };
    let to = event.era.kubernetes(version);
    let behind = state.machines().any(|(_, machine)| event.era.kubernetes(machine.version) < to);
    let leaving = is_raised && state.machines().any(|(_, machine)| machine.is_leaving());
    if behind || leaving { breach("D2", format!("a worker of {to} before the control plane")) } else { None }
}

fn d4_paused_is_left_alone(event: &Event<'_>) -> Option<Breach> {
    let is_ours = matches!(
        event.what,
        What::CreatesJob
            | What::CreatesMachine { .. }
            | What::CreatesPool
            | What::SwitchesPool(_)
            | What::AppliesDns(_)
            | What::AppliesProxy(_)
            | What::DeletesProxy(_)
            | What::Replaces { .. }
            | What::CreatesInfrastructure { .. }
            | What::CreatesConfiguration { .. }
            | What::RemovesMember(_)
            | What::DeletesMachine(_)
            | What::MovesLead { .. }
            | What::Prepares
            | What::Marks(_)
            | What::Unmarks(_)
    );
    if is_ours && event.decided_on.paused { breach("D4", "it is paused") } else { None }
}
