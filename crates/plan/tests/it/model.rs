//! A small-model search: every state that a small cluster can get into, by every step that the real planner and the real roll
//! admit, in every order, and by everything that can happen to it meanwhile.
//!
//! ```text
//! state          what is true, in as few bits as the rules need
//! seen           what `observe` would show of it: the real Inventory, the real RollInput
//! ours, roll     the real plan() and the real roll::next(), and what their steps do to a state
//! environment    what can happen by itself, and what people do
//! rule           what must never be, judged on states: shares types with the planner, and no code
//! search         breadth first over all of it; then: does every walk end well, or in a reason?
//! ```
//!
//! **What is in a state.** A control plane of one or three machines, each with its version, how far it is (awaiting its node, its
//! programs or its label; ready; unwell; on its way out), its member of etcd (none, unstarted, learner, voter, unhealthy voter,
//! removed; who leads), whether it is marked and whether it has had its time. For each place the machine that is there and the one
//! that the update on record makes. Members of etcd that are left without a machine. Up to two workers and one more while they
//! roll. Two packages: one that is there once, and one for each release. The record of the update, its Job, what the owner asks
//! for, whether the cluster is paused, whether its API answers, whether a certificate is lost. There are three releases.
//!
//! **What is left out.** What only another object refers to (templates, configurations, infrastructure) comes and goes with it,
//! but for the parts of a replacement. Names and ids are those of the update on record and of one before it. Times are "soon
//! enough" and "too late". A machine that is deleted before it was a node does not join etcd any more. All certificates belong
//! to the cluster, and what the roll prepares in the workload cluster is one thing. Members of etcd run one version, without alarms.
//! Of several workers, and of several places in the control plane, it does not matter which is which: states are the same up to
//! that, and the roll is asked under every order of names.
//!
//! **What can happen.** Machines start, join, fail, recover and go; members are added (kubeadm first looks whether all others
//! answer), start, are promoted, fail and recover; packages are looked at, fail and recover; the API stops and starts to answer; the
//! controller of a `MachineDeployment` makes and removes workers, one more at a time; pods of the Job crash; time runs out; the
//! planner is shown an inventory with a gap; a step is done after one more thing has happened, if its expectation still holds.
//! People delete a Job that failed, pause, unpause, and ask for any version and size. At most one thing is unwell at a time.
//!
//! `WINDLASS_MODEL=large cargo test --release -p windlass-plan --test it model -- --nocapture` lets two things be unwell at a
//! time, and every version be asked for. How large that is has not been measured; a search ends at six million states. The largest
//! that is always run, 3+2 at three versions, has 888,852 states and 10,464,205 transitions.

mod environment;
mod era;
mod memory;
mod moves;
mod ours;
mod roll;
mod rule;
mod search;
mod seen;
mod state;

use windlass_plan::gate::{Gate, Gates};

use crate::sample;
use environment::Limits;
use era::Era;
use moves::What;
use rule::{EXEMPTIONS, Event, Exemption, judge};
use search::{Found, Search};
use state::{Asked, Record, RecordState, State, WorkerLife};

/// Before learners, and before kubelets that use only the API server beside them.
const OLD: [&str; 3] = ["v1.15.5+vmware.1-guest.1", "v1.16.7+vmware.1-guest.1", "v1.17.4+vmware.1-guest.1"];
/// After both.
const NEW: [&str; 3] = ["v1.31.1+vmware.1-guest.1", "v1.32.2+vmware.1-guest.1", "v1.33.3+vmware.1-guest.1"];
/// The first upgrade that needs no exemption for kubelets.
const EDGE: [&str; 3] = ["v1.30.1+vmware.1-guest.1", "v1.31.1+vmware.1-guest.1", "v1.32.2+vmware.1-guest.1"];
/// Two releases of the same Kubernetes: machines are replaced, and no version changes.
const SAME: [&str; 3] = ["v1.31.1+vmware.1-guest.1", "v1.31.1+vmware.1-guest.2", "v1.32.2+vmware.1-guest.1"];
/// kubeadm began to let controller managers and schedulers use the API server beside them with the last of these.
const PATCHED: [&str; 3] = ["v1.18.8+vmware.1-guest.1", "v1.19.0+vmware.1-guest.1", "v1.19.1+vmware.1-guest.1"];
/// With a gap in it.
const FAR: [&str; 3] = ["v1.15.5+vmware.1-guest.1", "v1.17.4+vmware.1-guest.1", "v1.18.2+vmware.1-guest.1"];

const LIMITS: Limits =
    Limits { failures: 1, attempts: None, certificates: false, gaps: false, control_plane: 1, versions: 2 };

/// A search from one state.
struct Case {
    releases: [&'static str; 3],
    workers: u8,
    start: State,
    limits: Limits,
}

/// One machine and one worker, with all that can go wrong.
fn one_and_one(releases: [&'static str; 3]) -> Case {
    let limits = Limits { certificates: true, gaps: true, ..LIMITS };
    Case { releases, workers: 1, start: State::at_rest(1, 1, 0), limits }
}

fn three_and(workers: u8, releases: [&'static str; 3]) -> Case {
    let limits = Limits { control_plane: 3, versions: 3, ..LIMITS };
    Case { releases, workers, start: State::at_rest(3, workers, 0), limits }
}

/// A control plane of one that is asked to have three, and whose API server may be upgraded on the way.
fn growing(releases: [&'static str; 3]) -> Case {
    let limits = Limits { control_plane: 3, versions: 1, gaps: true, ..LIMITS };
    Case { releases, workers: 1, start: State::at_rest(1, 1, 0), limits }
}

/// Three machines that an update has left as they were, which was about workers.
fn after_an_update() -> Case {
    let mut start = State::at_rest(3, 1, 0);
    start.record = Some(Record { from: start.asked, to: start.asked, state: RecordState::Succeeded });
    let limits = Limits { control_plane: 3, versions: 1, gaps: true, ..LIMITS };
    Case { releases: NEW, workers: 1, start, limits }
}

/// Workers that were left behind.
fn left_behind() -> Case {
    let mut start = State::at_rest(1, 1, 1);
    start.pool = State::at_rest(1, 1, 0).pool;
    start.proxies = State::at_rest(1, 1, 0).proxies;
    start.proxies[1] = state::Package::Well;
    Case { releases: FAR, workers: 1, start, limits: Limits { versions: 3, ..LIMITS } }
}

/// A worker that its pool was led past, and that is still there: nobody would miss it by the version of the pool.
fn straggler() -> Case {
    let mut start = left_behind().start;
    (start.pool.version, start.pool.observed) = (1, true);
    Case { start, ..left_behind() }
}

#[allow(clippy::disallowed_methods, reason = "how long a search may take is said from outside")]
fn is_large() -> bool {
    std::env::var("WINDLASS_MODEL").is_ok_and(|size| size == "large")
}

impl Case {
    fn run(&self, gates: Gates, exemptions: &[Exemption], stops_at_a_breach: bool) -> Found {
        let era = Era::new(self.releases, self.workers);
        let mut limits = self.limits;
        if is_large() {
            (limits.failures, limits.versions) = (2, 3);
        }
        let search = Search { era: &era, gates, limits, exemptions, stops_at_a_breach };
        let mut found = search.run(self.start);
        if found.breaches.is_empty() {
            found.ends = search.liveness(&found);
        }
        found
    }

    /// No rule is broken, and every walk ends at the target or in one of these reasons.
    #[allow(clippy::print_stdout, reason = "how much was searched is told to whoever asks with --nocapture")]
    /// Those in which some do are returned.
    fn check(&self, name: &str, reasons: &[&str]) -> Vec<String> {
        let found = self.run(sample::gates(), &EXEMPTIONS, false);
        println!("{name}: {} states, {} transitions, {} questions", found.states.len(), found.transitions, found.asked);
        let walks: Vec<String> = found.breaches.values().map(|(breach, walk)| format!("{breach:?}\n{walk}")).collect();
        assert!(walks.is_empty(), "{}", walks.join("\n\n"));
        let ends = found.ends.as_ref().unwrap_or_else(|walk| panic!("{walk}"));
        for (end, (count, first)) in ends {
            println!("  {count:>6} end with {end}");
            let known = end.split(", ").all(|reason| reason == "at the target" || reasons.contains(&reason));
            assert!(known, "nobody can act on {end}:\n{}\n{:?}", found.walk(*first), found.states[*first as usize]);
        }
        assert!(ends.contains_key("at the target"), "{ends:?}");
        ends.keys().cloned().collect()
    }
}

/// What people can do something about: they unpause, delete the Job that failed, ask for another version. With one of them,
/// what waits for it may be told, too.
const PEOPLE_CAN_ACT: [&str; 7] = [
    "Paused",
    "ControlPlaneUpdateFailed",
    "VersionRefused",
    "ControlPlaneBehind",
    "PackageNotReady",
    "PoolRolling",
    "ControlPlaneUpdateRunning",
];

#[test]
fn one_machine_and_one_worker_of_old_releases() {
    one_and_one(OLD).check("1+1, 1.15 to 1.16", &PEOPLE_CAN_ACT);
}

#[test]
fn one_machine_and_one_worker_of_old_releases_with_every_attempt_counted() {
    let case = Case { limits: Limits { attempts: Some(4), ..LIMITS }, ..one_and_one(OLD) };
    case.check("1+1, 1.15 to 1.16, four attempts", &PEOPLE_CAN_ACT);
}

#[test]
fn one_machine_and_one_worker_over_two_minors() {
    let case = Case { limits: Limits { versions: 3, ..LIMITS }, ..one_and_one(NEW) };
    case.check("1+1, 1.31 to 1.33", &PEOPLE_CAN_ACT);
}

#[test]
fn three_machines_and_two_workers_of_old_releases() {
    three_and(2, OLD).check("3+2, 1.15 to 1.17", &PEOPLE_CAN_ACT);
}

#[test]
fn three_machines_and_two_workers_of_new_releases() {
    three_and(2, NEW).check("3+2, 1.31 to 1.33", &PEOPLE_CAN_ACT);
}

#[test]
fn the_first_upgrade_without_the_exemption_of_kubelets() {
    one_and_one(EDGE).check("1+1, 1.30 to 1.31", &PEOPLE_CAN_ACT);
}

#[test]
fn machines_are_replaced_without_a_new_version() {
    let case = Case { workers: 2, start: State::at_rest(1, 2, 0), ..one_and_one(SAME) };
    let case = Case { limits: LIMITS, ..case };
    case.check("1+2, another release of 1.31", &PEOPLE_CAN_ACT);
}

#[test]
fn a_control_plane_grows_from_one_to_three() {
    growing(OLD).check("1+1 to 3+1, 1.15", &PEOPLE_CAN_ACT);
    growing(NEW).check("1+1 to 3+1, 1.31", &PEOPLE_CAN_ACT);
}

#[test]
fn a_cluster_is_created() {
    let limits = Limits { control_plane: 3, versions: 1, ..LIMITS };
    let case = Case { releases: NEW, workers: 1, start: State::unborn(3, 0), limits };
    let reasons: Vec<&str> = PEOPLE_CAN_ACT.into_iter().chain(["NoWorkloadApi"]).collect();
    case.check("created 3+1, 1.31", &reasons);
}

#[test]
fn what_cannot_be_read_is_not_made_again() {
    after_an_update().check("3+1 with gaps, 1.31", &PEOPLE_CAN_ACT);
}

#[test]
fn workers_that_were_left_behind_hold_the_control_plane() {
    let ends = left_behind().check("left behind, 1.15 beside 1.17", &PEOPLE_CAN_ACT);
    assert!(ends.iter().any(|end| end.contains("VersionRefused")), "{ends:?}");
}

#[test]
fn a_worker_that_was_forgotten_holds_the_control_plane_until_it_is_replaced() {
    let ends = straggler().check("a straggler, 1.15 beside 1.17", &PEOPLE_CAN_ACT);
    assert!(
        !ends.iter().any(|end| end.contains("TooOld")),
        "it is replaced, and nothing waits for it for ever: {ends:?}"
    );
}

#[test]
fn every_exemption_is_needed() {
    for exemption in EXEMPTIONS {
        let others: Vec<Exemption> = EXEMPTIONS.into_iter().filter(|other| *other != exemption).collect();
        let found = one_and_one(OLD).run(Gates::all(), &others, true);
        let rules: Vec<&str> = found.breaches.keys().map(|(rule, _)| *rule).collect();
        assert_eq!(rules, [exemption.rule], "{}", exemption.why);
    }
}

#[test]
fn from_1_31_on_only_kube_proxy_needs_an_exemption() {
    let only: Vec<Exemption> = EXEMPTIONS.into_iter().filter(|exemption| exemption.rule == "V5").collect();
    let found = one_and_one(NEW).run(Gates::all(), &only, true);
    assert!(found.breaches.is_empty(), "{:?}", found.breaches);
    let found = one_and_one(NEW).run(Gates::all(), &[], true);
    assert_eq!(found.breaches.keys().map(|(rule, _)| *rule).collect::<Vec<_>>(), ["V5"]);
}

/// The exemption of controller managers and schedulers is as wide as kubeadm needs it, to the patch.
#[test]
fn up_to_1_19_0_new_managers_need_an_exemption_and_from_1_19_1_on_they_do_not() {
    let others: Vec<Exemption> = EXEMPTIONS.into_iter().filter(|exemption| exemption.rule != "V4").collect();
    let case = |releases| Case { limits: LIMITS, ..one_and_one(releases) };
    let [minor, unpatched, patched] = PATCHED;
    let found = case([minor, unpatched, patched]).run(Gates::all(), &others, true);
    assert_eq!(found.breaches.keys().map(|(rule, _)| *rule).collect::<Vec<_>>(), ["V4"]);
    let found = case([minor, patched, patched]).run(Gates::all(), &others, true);
    assert!(found.breaches.is_empty(), "{:?}", found.breaches);
}

/// The rules that a state breaks.
fn check_state(change: impl FnOnce(&mut State), broken: &[&str]) {
    let era = Era::new(OLD, 1);
    let mut state = State::at_rest(3, 1, 0);
    change(&mut state);
    let what = What::PoolIsSeen;
    let exemptions = &EXEMPTIONS;
    let event = Event { era: &era, before: &state, decided_on: &state, what, after: &state, exemptions };
    let found: Vec<&str> = judge(&event).into_iter().map(|breach| breach.rule).collect();
    assert_eq!(found, broken);
}

#[test]
fn exemptions_cover_new_machines_of_the_control_plane_and_only_until_the_update_has_ended() {
    let [from, to] = [0, 1].map(|version| Asked { version, control_plane: 3 });
    let record = |state| Some(Record { from, to, state });
    let new_machine = |state: &mut State| state.slots[0].old.as_mut().unwrap().version = 1;
    check_state(|_| {}, &[]);
    check_state(
        |state| {
            new_machine(state);
            state.record = record(RecordState::Running);
        },
        &[],
    );
    check_state(
        |state| {
            new_machine(state);
            state.record = record(RecordState::Failed);
        },
        &[],
    );
    check_state(
        |state| {
            new_machine(state);
            state.record = record(RecordState::Succeeded);
        },
        &["V1", "V4"],
    );
    check_state(new_machine, &["V1", "V4"]);
    check_state(
        |state| {
            // The exemption is for machines of the control plane, and not for workers.
            state.record = record(RecordState::Running);
            let worker = state.pool.machines.iter_mut().flatten().next().unwrap();
            (worker.version, worker.life) = (1, WorkerLife::Ready);
        },
        &["V1"],
    );
}

/// Without this gate the search finds this rule broken.
fn check_without(gate: Gate, case: &Case, rule: &str) {
    let found = case.run(Gates::without(&[gate]), &EXEMPTIONS, true);
    let rules: Vec<&str> = found.breaches.keys().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, [rule], "without {gate}: {} states", found.states.len());
}

/// Most of the other gates are not missed alone: another one, or the order of the loop, forbids the same. Each has a test of its
/// own.
#[test]
fn without_a_gate_a_rule_is_broken() {
    check_without(Gate::VersionPath, &one_and_one(OLD), "V8");
    check_without(Gate::KubeletsNotTooOld, &straggler(), "V7");
    check_without(Gate::EtcdQuorum, &one_and_one(OLD), "E2");
    check_without(Gate::LeaderMovesFirst, &one_and_one(OLD), "E6");
    check_without(Gate::OneMachineAtATime, &growing(OLD), "C1");
    check_without(Gate::PackagesFirst, &one_and_one(OLD), "D1");
    check_without(Gate::WorkerOrder, &one_and_one(OLD), "D2");
    check_without(Gate::NotPaused, &one_and_one(OLD), "D4");
    check_without(Gate::CertificatesPresent, &one_and_one(OLD), "C9");
}
