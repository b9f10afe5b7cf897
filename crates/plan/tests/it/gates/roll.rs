//! Each gate of the loop that replaces a control plane, asked about one step in one state.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use windlass_api::name::{ClusterSecret, Uid};
use windlass_plan::check;
use windlass_plan::gate;
use windlass_plan::inventory::{Alarm, EtcdMember, Machine, MachineState, Milestone};
use windlass_plan::roll::{Attempt, HandsOff, Next, Observed, Ownership, Preparation, RollInput, RollStep, next};
use windlass_plan::step::Revision;

use crate::sample::gates;

/// One machine for each word: its base, a dash, the update that made it; then `+` if it is joining, `!` if it is not well, `-`
/// if it is on its way out. The update that is under way is 7.
fn machine(word: &str) -> Machine {
    let name = word.trim_end_matches(['+', '!', '-']);
    let (base, _) = name.split_once('-').unwrap();
    let state = match &word[name.len()..] {
        "+" => MachineState::Joining { awaits: Milestone::Node },
        "!" => MachineState::Unhealthy { node: name.parse().unwrap(), why: "no heartbeat".to_owned() },
        "-" => MachineState::Deleting { node: name.parse().ok() },
        "--" => MachineState::Deleting { node: None },
        _ => MachineState::Ready { node: name.parse().unwrap() },
    };
    Machine {
        name: name.parse().unwrap(),
        revision: revision(),
        base: base.parse().ok(),
        update: "7".parse().ok(),
        created: Timestamp::UNIX_EPOCH,
        version: "v1.16.7".parse().unwrap(),
        image: None,
        class: None,
        storage_class: None,
        state,
    }
}

fn revision() -> Revision {
    Revision { uid: Uid::new("uid").unwrap(), resource_version: "1".to_owned() }
}

/// One member for each word: the name of its node, or `_` while it has not started; then `*` if it leads, `?` if it does not
/// vote yet, `!` if it does not answer, `$` if it has no more space.
fn member((id, word): (u64, &str)) -> EtcdMember {
    let name = word.trim_end_matches(['*', '?', '!', '$']);
    EtcdMember {
        id,
        name: name.trim_start_matches('_').to_owned(),
        healthy: !word.contains('!') && name != "_",
        learner: word.contains('?'),
        leader: word.contains('*'),
        version: None,
        alarms: word.contains('$').then_some(Alarm::NoSpace).into_iter().collect(),
    }
}

fn input(machines: &str, members: &str) -> RollInput {
    let attempt = Attempt {
        cluster: "my-tkc".parse().unwrap(),
        id: "7".parse().unwrap(),
        version: "v1.16.7".parse().unwrap(),
        machine_timeout: SignedDuration::from_mins(15),
        etcd_timeout: SignedDuration::from_mins(5),
    };
    let observed = Observed {
        hands_off: None,
        machines: machines.split_whitespace().map(machine).collect(),
        leaving: BTreeMap::new(),
        parts: BTreeMap::new(),
        etcd: Ok((1..).zip(members.split_whitespace()).map(member).collect()),
        certificates: ClusterSecret::CERTIFICATES.map(|secret| (secret, Ownership::Cluster)).into(),
        unprepared: BTreeSet::new(),
        endpoints: BTreeSet::new(),
    };
    let (began, now) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    RollInput { attempt, observed, began, released: None, waiting: None, now, gates: gates() }
}

fn create() -> RollStep {
    RollStep::CreateMachine { original: "b-6".parse().unwrap(), name: "b-7".parse().unwrap() }
}

fn delete(machine: &str) -> RollStep {
    RollStep::DeleteMachine { machine: machine.parse().unwrap(), expect: revision() }
}

fn remove(id: u64) -> RollStep {
    RollStep::RemoveMember { id }
}

/// The step passes if there is no refusal to expect, and is refused in these words otherwise.
fn check_input(input: &RollInput, step: &RollStep, refusal: &str) {
    let said = gate::roll_step(input, step).map(|blocked| blocked.to_string()).unwrap_or_default();
    assert_eq!(said, refusal, "{step:?} of {:?}", input.observed);
    let findings = check::roll(input, step);
    assert_eq!(findings.is_empty(), refusal.is_empty(), "the second opinion: {findings:?}");
}

fn check(machines: &str, members: &str, step: &RollStep, refusal: &str) {
    check_input(&input(machines, members), step, refusal);
}

#[test]
fn a_replacement_that_is_well_passes_every_gate() {
    check("a-6 b-6 c-6", "a-6* b-6 c-6", &create(), "");
    check("a-6", "a-6*", &create(), "");
    check("a-6 b-6 b-7 c-6", "a-6* b-6 c-6 b-7", &remove(2), "");
    check("a-6 b-6 b-7 c-6", "a-6 b-6* c-6 b-7", &RollStep::MoveLeader { to: 4 }, "");
    check("a-6 b-6 b-7 c-6", "a-6* c-6 b-7", &delete("b-6"), "");
    check("a-6 a-7", "a-6 a-7*", &remove(1), "");
    // A replacement that failed is made anew.
    check("a-6 b-6 b-7! c-6", "a-6* b-6 c-6 b-7!", &remove(4), "");
    check("a-6 b-6 b-7+ c-6", "a-6* b-6 c-6 _?", &delete("b-7"), "");
    check("a-6 b-6 c-6", "a-6* b-6 c-6 _", &remove(4), "");
}

#[test]
fn one_machine_comes_or_goes_at_a_time() {
    let coming = "Machine a-7 is not ready: it is on the way to being a node";
    check("a-6 a-7+ b-6 c-6", "a-6* b-6 c-6", &create(), coming);
    check("a-6 a-7+ b-6 b-7 c-6", "a-6* b-6 c-6 b-7", &remove(2), coming);
    check("a-6 a-7+ b-6 b-7 c-6", "a-6* c-6 b-7", &delete("b-6"), coming);
    check("a-6 b-6- c-6", "a-6* c-6", &create(), "Machine b-6 is not ready: it is on the way out");
    let doubled = "Machine a-6 is not ready: there is another one in its place, and one of them is still to go";
    check("a-6 a-7 b-6 c-6", "a-6* b-6 c-6 a-7", &create(), doubled);
}

#[test]
fn no_machine_joins_beside_one_that_is_not_well() {
    check("a-6 b-6 c-6!", "a-6* b-6 c-6", &create(), "Machine c-6 is not ready: no heartbeat");
}

#[test]
fn members_change_one_at_a_time() {
    check("a-6 b-6 c-6", "a-6* b-6 c-6?", &create(), "the member c-6 of etcd does not vote yet");
    check("a-6 b-6 c-6", "a-6* b-6 c-6 _?", &create(), "the member 4 of etcd has been added and has not started");
    let learner = "the member c-6 of etcd does not vote yet";
    check("a-6 b-6 b-7 c-6", "a-6* b-6 c-6? b-7", &remove(2), learner);
}

#[test]
fn the_sick_leave_first() {
    check("a-6 b-6 c-6", "a-6* b-6 c-6!", &create(), "the member c-6 of etcd is not healthy");
    check("a-6 b-6 b-7 c-6", "a-6* b-6 c-6! b-7", &remove(2), "the member c-6 of etcd is not healthy");
    check("a-6 b-6 b-7 c-6", "a-6* b-6! c-6 b-7", &remove(2), "");
}

#[test]
fn a_quorum_stays_when_a_sick_member_goes() {
    let risk = "of the 2 voters that etcd would have, 1 may not answer: it could lose its quorum";
    check("a-6 a-7 b-6", "a-6! b-6! a-7*", &remove(1), risk);
}

#[test]
fn the_last_voter_stays() {
    let last =
        |member: &str| format!("without the member {member}, etcd would have no voter, or one that may not answer");
    check("a-6 a-7", "a-6!", &remove(1), &last("a-6"));
    check("a-6 a-7!", "a-6* a-7!", &remove(2), &last("a-7"));
    check("a-6", "a-6* _", &remove(2), &last("2"));
}

#[test]
fn another_leads_before_the_leader_goes() {
    let leads = "the member b-6 leads etcd, and another has to lead first";
    check("a-6 b-6 b-7 c-6", "a-6 b-6* c-6 b-7", &remove(2), leads);
    let cannot =
        |member: &str| format!("the member {member} of etcd cannot lead: it is not a healthy voter that stays");
    let lead = |to| RollStep::MoveLeader { to };
    check("a-6 b-6 b-7 c-6", "a-6 b-6* c-6 b-7?", &lead(4), &cannot("b-7"));
    check("a-6 b-6 b-7 c-6", "a-6 b-6* c-6! b-7", &lead(3), &cannot("c-6"));
    check("a-6 b-6 b-7- c-6", "a-6 b-6* c-6 b-7", &lead(4), &cannot("b-7"));
    check("a-6 b-6 b-7 c-6", "a-6 b-6* c-6 b-7", &lead(9), &cannot("9"));
}

#[test]
fn a_machine_leaves_etcd_before_it_goes() {
    let stays = "Machine b-6 still is the member b-6 of etcd";
    check("a-6 b-6 b-7 c-6", "a-6* b-6 c-6 b-7", &delete("b-6"), stays);
}

#[test]
fn members_are_machines() {
    check("a-6 b-6 c-6", "a-6* b-6", &create(), "Machine c-6 is no member of etcd");
    check("a-6 b-6 c-6", "a-6* b-6 c-6 x-6", &create(), "the member x-6 of etcd belongs to no machine");
}

#[test]
fn what_has_not_started_stays_while_a_machine_could_start_it() {
    let unknown = "Machine b-7 may still start the member of etcd that has not started";
    check("a-6 b-6 b-7+ c-6", "a-6* b-6 c-6 _", &remove(4), unknown);
    check("a-6 b-6 b-7-- c-6", "a-6* b-6 c-6 _", &remove(4), unknown);
}

#[test]
fn of_two_machines_in_one_place_one_stays_well() {
    let stays = |why: &str| format!("Machine b-6 stays for now: {why}");
    check("a-6 b-6 c-6", "a-6* b-6 c-6", &remove(2), &stays("nothing has taken its place"));
    let sick = stays("Machine b-7 is not ready: no heartbeat");
    check("a-6 b-6 b-7! c-6", "a-6* c-6 b-7", &delete("b-6"), &sick);
    check("a-6 b-6 b-7! c-6", "a-6* b-6 c-6 b-7", &remove(2), &sick);
    check("a-6 b-6 b-7 c-6", "a-6* c-6", &delete("b-6"), &stays("Machine b-7 does not vote in etcd"));
    // The new one may be all that there is.
    let alone = "Machine b-7 stays for now: nothing has taken its place";
    check("a-6 b-7! c-6", "a-6* c-6 b-7!", &remove(3), alone);
}

#[test]
fn one_whole_machine_stays() {
    let none = "without Machine a-7 no machine of the control plane would be well";
    check("a-6! a-7! b-6!", "a-6* a-7 b-6", &remove(2), none);
    check("a-6! a-7! b-6!", "a-6* b-6", &delete("a-7"), none);
}

#[test]
fn an_alarm_stops_every_change_of_members() {
    let alarm = "the member c-6 of etcd warns: it has no more space";
    for step in [create(), remove(2), delete("b-6"), RollStep::MoveLeader { to: 4 }] {
        check("a-6 b-6 b-7 c-6", "a-6* b-6 c-6$ b-7", &step, alarm);
    }
}

#[test]
fn what_holds_the_whole_cluster_holds_every_step() {
    let mark = RollStep::Mark { machine: "a-6".parse().unwrap(), base: "a".parse().unwrap() };
    for step in [create(), mark] {
        let mut held = input("a-6 b-6 c-6", "a-6* b-6 c-6");
        held.observed.hands_off = Some(HandsOff::Held { by: "paused".to_owned() });
        check_input(&held, &step, "the cluster is paused: paused");
        let mut marked = input("a-6 b-6 c-6", "a-6* b-6 c-6");
        marked.observed.machines[1].update = "5".parse().ok();
        check_input(&marked, &step, "Machine b-6 is marked by the update 5");
    }
}

#[test]
fn what_is_not_known_is_not_changed() {
    let mut unknown = input("a-6 b-6 c-6", "");
    unknown.observed.etcd = Err("no leader".to_owned());
    check_input(&unknown, &create(), "Etcd could not be observed: no leader");
    let mut missing = input("a-6 b-6 c-6", "a-6* b-6 c-6");
    missing.observed.certificates.remove(&ClusterSecret::CertificateAuthority);
    check_input(&missing, &create(), "Secret my-tkc-ca is missing");
}

#[test]
fn kubeadm_is_configured_only_for_machines_to_come() {
    let prepare = RollStep::Prepare { preparation: Preparation::KubeadmConfig };
    let check = |machines: &str, next_step: Option<&RollStep>, found: &[&str]| {
        let mut input = input(machines, &machines.replacen(' ', "* ", 1));
        input.observed.unprepared = [Preparation::KubeadmConfig].into();
        input.observed.machines.iter_mut().for_each(|machine| machine.update = None);
        match (next(&input), next_step) {
            (Next::Do(step), Some(wanted)) => assert_eq!(step, *wanted),
            (said, wanted) => assert_eq!(said, Next::Done, "{wanted:?}"),
        }
        let findings = check::roll(&input, &prepare);
        assert_eq!(findings.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), found);
    };
    check("a-6 b-7 c-7", Some(&prepare), &[]);
    check("a-7 b-7 c-7", None, &["C11"]);
    let mut unprepared = input("a-6 b-6 c-6", "a-6* b-6 c-6");
    unprepared.observed.unprepared = [Preparation::KubeadmConfig].into();
    let findings = check::roll(&unprepared, &create());
    assert_eq!(findings.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["C11"]);
}

/// Machines and members in any states, as words.
fn words() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let names = ["a-6", "b-6", "c-6", "a-7", "b-7"];
    let machine = |name: &'static str| {
        prop::sample::select(&["", "", "", "+", "!", "-", "--", "absent"][..]).prop_map(move |state| match state {
            "absent" => String::new(),
            state => format!("{name}{state}"),
        })
    };
    let member = |name: &'static str| {
        prop::sample::select(&["", "", "", "*", "!", "?", "$", "absent", "unnamed"][..]).prop_map(move |state| {
            match state {
                "absent" => String::new(),
                "unnamed" => "_".to_owned(),
                state => format!("{name}{state}"),
            }
        })
    };
    (names.map(machine), names.map(member)).prop_map(|(machines, members)| (machines.into(), members.into()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_gates_admit_has_no_second_opinion_against_it((machines, members) in words()) {
        let input = input(&machines.join(" "), &members.join(" "));
        let count = u64::try_from(members.len()).unwrap();
        let deletes = input.observed.machines.iter().map(|machine| delete(machine.name.as_str()));
        let moves = (1..=count).map(|to| RollStep::MoveLeader { to });
        let steps = [create()].into_iter().chain((1..=count).map(remove)).chain(moves).chain(deletes);
        for step in steps {
            let findings = check::roll(&input, &step);
            let refused = gate::roll_step(&input, &step);
            prop_assert!(refused.is_some() || findings.is_empty(), "{step:?}: {findings:#?}");
        }
    }
}
