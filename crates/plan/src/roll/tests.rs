//! One table for each rule. Machines and members are written as words; what comes next is written as a line.

mod abort;
mod hold;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_api::name::{ClusterSecret, MachineName, NodeName, Uid};

use super::*;
use crate::gate::{Gate, Gates};
use crate::inventory::{MachineState, Milestone};
use crate::step::Revision;

const NOW: &str = "2026-01-01T12:00:00Z";

/// `a` is a machine that is to be replaced, `a7` what replaces it.
fn machine_name(word: &str) -> String {
    let letters = word.trim_end_matches(|mark: char| !mark.is_alphanumeric());
    match letters.strip_suffix('7') {
        Some(base) => format!("{base}-7"),
        None => letters.to_owned(),
    }
}

/// One machine for each word: a name, then `.` if it is not marked, `@` if another update has marked it, `?` if it has no
/// providerID, `!` if it is not well, `~` if it is being deleted, `^` if it had its time before the run began, `_` if it had
/// its time just now.
fn machines(text: &str) -> Vec<Machine> {
    text.split_whitespace().map(machine).collect()
}

fn machine(word: &str) -> Machine {
    let name = machine_name(word);
    let node = || NodeName::new(&name).unwrap();
    let age_minutes = if word.contains('^') {
        16
    } else if word.contains('_') {
        15
    } else {
        2
    };
    let state = if word.contains('~') {
        MachineState::Deleting { node: (!word.contains('?')).then(node) }
    } else if word.contains('?') {
        MachineState::Joining { awaits: Milestone::ProviderId }
    } else if word.contains('!') {
        MachineState::Unhealthy { node: node(), why: "it is unwell".to_owned() }
    } else {
        MachineState::Ready { node: node() }
    };
    Machine {
        revision: Revision { uid: Uid::new(&format!("uid-{name}")).unwrap(), resource_version: "5".to_owned() },
        base: name.strip_suffix("-7").map(|base| MachineName::new(base).unwrap()),
        update: match word {
            _ if word.contains('@') => Some("9".parse().unwrap()),
            _ if word.contains('.') => None,
            _ => Some("7".parse().unwrap()),
        },
        created: now() - SignedDuration::from_mins(age_minutes),
        version: "v1.15.5".parse().unwrap(),
        image: None,
        class: None,
        storage_class: None,
        registration: None,
        state,
        name: MachineName::new(&name).unwrap(),
    }
}

/// One member for each word: the name of a machine, then `*` if it leads, `?` if it is a learner, `!` if it is not healthy,
/// `$` if it has no space.
fn members(text: &str) -> Vec<EtcdMember> {
    let member = |(id, word): (u64, &str)| EtcdMember {
        id,
        name: machine_name(word),
        healthy: !word.contains('!'),
        learner: word.contains('?'),
        leader: word.contains('*'),
        version: None,
        alarms: word.contains('$').then_some(crate::inventory::Alarm::NoSpace).into_iter().collect(),
    };
    (1..).zip(text.split_whitespace()).map(member).collect()
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// An attempt that is prepared, and began 40 s ago.
fn input(machines_text: &str, members_text: &str) -> RollInput {
    RollInput {
        attempt: Attempt {
            cluster: "my-tkc".parse().unwrap(),
            id: "7".parse().unwrap(),
            version: "v1.16.7".parse().unwrap(),
            machine_timeout: SignedDuration::from_mins(15),
            etcd_timeout: SignedDuration::from_mins(5),
        },
        observed: Observed {
            hands_off: None,
            machines: machines(machines_text),
            leaving: BTreeMap::new(),
            parts: BTreeMap::new(),
            etcd: Ok(members(members_text)),
            certificates: ClusterSecret::CERTIFICATES.map(|secret| (secret, Ownership::Cluster)).into(),
            unprepared: BTreeSet::new(),
            endpoints: BTreeSet::new(),
        },
        began: now() - SignedDuration::from_secs(40),
        released: None,
        waiting: None,
        now: now(),
        gates: Gates::all(),
    }
}

fn said(input: &RollInput) -> String {
    told(input, next(input))
}

fn told(input: &RollInput, next: Next) -> String {
    let member = |id: &u64| {
        let members = input.observed.etcd.as_deref().unwrap_or_default();
        let found = members.iter().find(|member| member.id == *id).unwrap();
        if found.name.is_empty() { format!("number {id}") } else { found.name.clone() }
    };
    match next {
        Next::Do(step) => match &step {
            RollStep::OwnCertificate { secret } => format!("own {secret}"),
            RollStep::Prepare { preparation } => format!("prepare {preparation:?}"),
            RollStep::ForgetEndpoint { node } => format!("forget {node}"),
            RollStep::Mark { machine, base } => format!("mark {machine} of {base}"),
            RollStep::CreateInfrastructure { original, name } => format!("infrastructure {name} for {original}"),
            RollStep::CreateConfiguration { original, name } => format!("configuration {name} for {original}"),
            RollStep::CreateMachine { original, name } => format!("machine {name} for {original}"),
            RollStep::MoveLeader { to } => format!("lead {}", member(to)),
            RollStep::RemoveMember { id } => format!("remove {}", member(id)),
            RollStep::DeleteMachine { machine, .. } => format!("delete {machine}"),
            RollStep::Unmark { machine } => format!("unmark {machine}"),
            RollStep::DeletePart { machine, part } => format!("delete the {part:?} of {machine}"),
            RollStep::RestoreKubeadmConfig => "restore".to_owned(),
        },
        Next::Wait { wait: Wait::Released { by }, until } if until == Timestamp::MAX => format!("held by {by}"),
        Next::Wait { wait, until } => format!("wait {}s {}", until.duration_since(input.now).as_secs(), waited(&wait)),
        Next::Blocked(blocked) => format!("blocked: {blocked}"),
        Next::Failed(Failure::TimedOut { wait }) => format!("too late {}", waited(&wait)),
        Next::Failed(Failure::ReplacementLost { machine, why }) => format!("lost {machine}: {why}"),
        Next::Failed(failure) => format!("failed: {failure:?}"),
        Next::Done => "done".to_owned(),
    }
}

fn waited(wait: &Wait) -> String {
    let missing = wait.missing();
    match wait {
        Wait::Healthy { machine, .. } => format!("for {machine}: {missing}"),
        Wait::AtRest { .. } => format!("for rest: {missing}"),
        Wait::Etcd { without, .. } => format!("for etcd without {without}: {missing}"),
        Wait::Released { by } => format!("for ever, held by {by}"),
        Wait::Gone { machine, .. } if missing == outcome::STILL_THERE => format!("for {machine} to go"),
        Wait::Gone { machine, .. } => format!("for {machine} to go: {missing}"),
        Wait::PartGone { machine, part } => format!("for the {part:?} of {machine} to go"),
    }
}

fn check(machines: &str, members: &str, expected: &str) {
    assert_eq!(said(&input(machines, members)), expected, "{machines} | {members}");
}

/// As above, with an edit to the input.
fn check_with(machines: &str, members: &str, edit: impl FnOnce(&mut RollInput), expected: &str) {
    let mut input = input(machines, members);
    edit(&mut input);
    assert_eq!(said(&input), expected, "{machines} | {members}");
}

fn waiting(input: &mut RollInput, minutes: i64) {
    let Next::Wait { wait, .. } = next(input) else { panic!("{}", said(input)) };
    input.waiting = Some(Waiting { wait, since: now() - SignedDuration::from_mins(minutes) });
}

#[test]
fn an_attempt_is_the_only_one_and_has_machines() {
    check("", "", "failed: NoMachines");
    check("a b@ c", "a* b c", r#"failed: ForeignAttempt { machine: MachineName("b"), theirs: UpdateId(9) }"#);
    let mut two = input("a b", "a* b");
    two.observed.machines[1].base = Some("a".parse().unwrap());
    assert!(said(&two).starts_with("failed: SharedBase"), "{}", said(&two));
}

#[test]
fn every_machine_is_marked_before_any_is_replaced() {
    check("c. b. a.", "a* b c", "mark a of a");
    check("a b. c.", "a* b c", "mark b of b");
    check("a. b. b7", "a* b b7", "mark b of b");
}

#[test]
fn certificates_belong_to_the_cluster_before_anything_else_is_done() {
    let of_others = |input: &mut RollInput| {
        input.observed.certificates.insert(ClusterSecret::Etcd, Ownership::Others);
        input.observed.unprepared = [Preparation::KubeadmConfig].into();
    };
    check_with("a a7", "a7*", of_others, "own etcd");
    check_with("a.", "a*", of_others, "own etcd");
    let missing = |input: &mut RollInput| {
        input.observed.certificates.remove(&ClusterSecret::ServiceAccount);
    };
    check_with("a.", "a*", missing, "failed: CertificateMissing { secret: ServiceAccount }");
}

#[test]
fn the_workload_cluster_is_prepared_before_a_machine_joins_and_kubeadm_last() {
    let unprepared = |all: &[Preparation]| {
        let all: BTreeSet<Preparation> = all.iter().copied().collect();
        move |input: &mut RollInput| input.observed.unprepared = all
    };
    let all = [
        Preparation::KubeadmConfig,
        Preparation::NodesAccess,
        Preparation::KubeletConfigAccess,
        Preparation::KubeletConfig,
    ];
    check_with("a.", "a*", unprepared(&all), "prepare KubeletConfig");
    check_with("a.", "a*", unprepared(&all[..3]), "prepare KubeletConfigAccess");
    check_with("a.", "a*", unprepared(&all[..2]), "prepare NodesAccess");
    check_with("a.", "a*", unprepared(&all[..1]), "prepare KubeadmConfig");
}

#[test]
fn endpoints_of_machines_that_are_gone_are_forgotten_below_1_22() {
    let endpoints = |text: &str| -> BTreeSet<NodeName> {
        text.split(' ').map(|word| machine_name(word).parse().unwrap()).collect()
    };
    let gone = |input: &mut RollInput| input.observed.endpoints = endpoints("a b gone");
    check_with("a b", "a* b", gone, "forget gone");
    check_with("a7 b", "a7* b", |input| input.observed.endpoints = endpoints("a a7 b"), "forget a");
    check_with("a b", "a* b", |input| input.observed.endpoints = endpoints("a b"), "infrastructure a-7 for a");
    // The node that nobody has may be that of the machine that has none yet.
    check_with("a b b7?", "a* b", gone, "wait 780s for b-7: it has no providerID");
    let later = |input: &mut RollInput| {
        gone(input);
        input.attempt.version = "v1.22.0".parse().unwrap();
    };
    check_with("a b", "a* b", later, "infrastructure a-7 for a");
}

#[test]
fn nothing_is_begun_unless_the_control_plane_is_at_rest() {
    check("a b c", "a* b c", "infrastructure a-7 for a");
    check("a b! c", "a* b c", "wait 300s for rest: Machine b is not ready: it is unwell");
    check("a b~ c", "a* b c", "wait 300s for rest: Machine b is not ready: it is on the way out");
    check("a b? c", "a* b c", "wait 300s for rest: Machine b is not ready: it is on the way to being a node");
    check("a b c", "a* b! c", "wait 300s for rest: the member b of etcd is not healthy");
    check("a b c", "a* b? c", "wait 300s for rest: the member b of etcd does not vote yet");
    check("a b c", "a* b$ c", "wait 300s for rest: the member b of etcd warns: it has no more space");
    check("a b c", "a* b", "wait 300s for rest: Machine c is no member of etcd");
    check("a b", "a* b c", "wait 300s for rest: the member c of etcd belongs to no machine");
    check_with(
        "a b",
        "",
        |input| input.observed.etcd = Err("no answer".to_owned()),
        "wait 300s for rest: Etcd could not be observed: no answer",
    );
}

#[test]
fn rest_is_waited_for_as_long_as_etcd_may_take() {
    check_with("a b!", "a* b", |input| waiting(input, 4), "wait 60s for rest: Machine b is not ready: it is unwell");
    check_with("a b!", "a* b", |input| waiting(input, 5), "too late for rest: Machine b is not ready: it is unwell");
}

#[test]
fn what_was_begun_is_ended_first_and_then_it_goes_by_name() {
    check("c b a", "a* b c", "infrastructure a-7 for a");
    check("a b b7", "a* b b7", "remove b");
    check_with(
        "a b",
        "a* b",
        |input| {
            let parts = Parts { infrastructure: PartState::Present, configuration: PartState::Absent };
            input.observed.parts.insert("b-7".parse().unwrap(), parts);
        },
        "configuration b-7 for b",
    );
}

fn check_parts(infrastructure: PartState, configuration: PartState, expected: &str) {
    let parts = Parts { infrastructure, configuration };
    check_with("a", "a*", |input| drop(input.observed.parts.insert("a-7".parse().unwrap(), parts)), expected);
}

#[test]
fn a_replacement_is_created_part_by_part_and_nothing_foreign_is_used() {
    use PartState::{Absent, Foreign, Leaving, Present};
    let foreign = || Foreign { why: "it is mine".to_owned() };
    check_parts(Absent, Absent, "infrastructure a-7 for a");
    check_parts(Present, Absent, "configuration a-7 for a");
    check_parts(Present, Present, "machine a-7 for a");
    check_parts(Leaving, Absent, "wait 300s for the Infrastructure of a-7 to go");
    check_parts(Present, Leaving, "wait 300s for the Configuration of a-7 to go");
    check_parts(
        foreign(),
        Present,
        r#"failed: Foreign { machine: MachineName("a-7"), part: Infrastructure, why: "it is mine" }"#,
    );
    check_parts(
        Present,
        foreign(),
        r#"failed: Foreign { machine: MachineName("a-7"), part: Configuration, why: "it is mine" }"#,
    );
    check(
        "a a7.",
        "a* a7",
        r#"failed: Foreign { machine: MachineName("a-7"), part: Machine, why: "it does not carry the id 7" }"#,
    );
}

#[test]
fn the_time_of_a_replacement_is_counted_from_its_creation() {
    check("a a7?", "a*", "wait 780s for a-7: it has no providerID");
    check("a a7!", "a* a7", "wait 780s for a-7: it is unwell");
    check("a a7!", "a* !", "wait 780s for a-7: it is unwell");
    check("a a7_?", "a*", "too late for a-7: it has no providerID");
}

#[test]
fn a_replacement_that_had_its_time_is_made_anew_while_its_original_votes() {
    check("a b a7^?", "a* b", "delete a-7");
    check("a b a7^!", "a* b a7!", "remove a-7");
    check("a b a7^!", "a b a7*", "lead a");
    check("a b a7^!", "a* b", "delete a-7");
    // It has joined etcd, though it is no node yet; then it is not known by another name, or nobody knows by which.
    check("a b a7^?", "a* b a7", "remove a-7");
    let unclaimed = "wait 300s for etcd without a-7: the member other of etcd belongs to no machine";
    check("a b a7^?", "a* b other", unclaimed);
    check("a b a7^!", "a* b other", unclaimed);
    // A last look.
    let just_begun = |input: &mut RollInput| input.began = now() - SignedDuration::from_secs(10);
    check_with("a b a7^!", "a* b a7", just_begun, "wait 20s for a-7: it is unwell");
    check("a b a7^", "a b* a7", "remove a");
}

#[test]
fn the_member_of_a_failed_replacement_leaves_only_if_the_others_can_do_without_it() {
    check(
        "a b a7^!",
        "a* b! a7!",
        "wait 300s for etcd without a-7: of the 2 voters that etcd would have, 1 may not answer: it could lose its quorum",
    );
    check(
        "a a7^!",
        "a* a7!",
        "wait 300s for etcd without a-7: without the member a-7, etcd would have no voter, or one that may not answer",
    );
    let silent = |input: &mut RollInput| input.observed.etcd = Err("no answer".to_owned());
    check_with("a a7^!", "", silent, "wait 300s for etcd without a-7: no answer");
    check_with("a a7~", "", silent, "wait 300s for etcd without a-7: no answer");
}

#[test]
fn a_replacement_whose_member_has_yet_to_start_is_not_deleted_where_that_member_is_needed() {
    let needed = "wait 300s for etcd without a-7: of the 2 voters that etcd would have, 1 may not answer: it could lose its quorum";
    check("a a7^?", "a* !", needed);
    check("a a7^?", "a* !?", "delete a-7");
    check("a b c a7^?", "a* b c !", "delete a-7");
    let needed = "wait 300s for etcd without a-7: of the 4 voters that etcd would have, 2 may not answer: it could lose its quorum";
    check("a b c a7^?", "a* b! c !", needed);
}

#[test]
fn a_replacement_that_has_left_etcd_and_becomes_healthy_is_still_made_anew() {
    check("a b a7^", "a* b", "delete a-7");
    check("a b a7^", "b*", "wait 300s for etcd without a: Machine a-7 is no member of etcd");
}

#[test]
fn a_replacement_that_goes_is_waited_for_and_then_made_again() {
    check("a b a7~", "a* b a7", "remove a-7");
    check("a b a7~", "a* b", "wait 900s for a-7 to go");
    check_with("a b a7~", "a* b", |input| waiting(input, 15), "too late for a-7 to go");
    check("a b", "a* b", "infrastructure a-7 for a");
}

#[test]
fn a_member_that_never_started_is_removed_when_the_machine_that_was_joining_is_gone_for_good() {
    check("a b a7^?", "a* b !", "delete a-7");
    check("a b a7~?", "a* b !", "wait 900s for a-7 to go");
    check("a b c", "a* b c !", "remove number 4");
    check("a b c", "a* b c !?", "remove number 4");
    check("a b c", "a* b! c !", "remove number 4");
    check("a b c?", "a* b !", "wait 300s for rest: Machine c is not ready: it is on the way to being a node");
    check("a7 b7", "a7* b7 !", "remove number 3");
}

#[test]
fn a_replacement_without_a_stand_in_is_never_deleted() {
    let why = "a, which it replaces, is no healthy etcd member any more";
    check("a b a7^!", "a7 b*", "wait 300s for a-7: it is unwell");
    check_with("a b a7^!", "a7 b*", |input| waiting(input, 5), &format!("lost a-7: {why}"));
    check_with("a b a7^!", "a! a7 b*", |input| waiting(input, 5), &format!("lost a-7: {why}"));
    check_with("a b a7!", "a7 b*", |input| waiting(input, 5), "wait 780s for a-7: it is unwell");
    check_with("a~ b a7^!", "a a7 b*", |input| waiting(input, 5), "lost a-7: a, which it replaces, is being deleted");
    check("a b a7~", "a7 b*", &format!("lost a-7: {why}"));
    // The original is gone.
    check("a7^! b", "a7 b*", "wait 300s for rest: Machine a-7 is not ready: it is unwell");
    check_with("a7^! b", "a7 b*", |input| waiting(input, 5), "lost a-7: the machine of a that it replaces is gone");
    check_with("a7~ b", "a7 b*", |input| waiting(input, 5), "lost a-7: the machine of a that it replaces is gone");
    check_with("a7^? b", "b*", |input| waiting(input, 5), "lost a-7: the machine of a that it replaces is gone");
}

#[test]
fn the_member_leaves_before_the_machine_and_never_while_it_leads() {
    check("a b c a7", "a* b c a7", "lead a-7");
    check("a b c a7", "a b* c a7", "remove a");
    check("a b c a7", "b* c a7", "delete a");
    check("a~ b c a7", "a b* c a7", "remove a");
    check("a~ b c a7", "b* c a7", "wait 900s for a to go");
    check("a a7", "a a7*", "remove a");
    check("a a7", "a7*", "delete a");
    // A machine that is not well is the first that may leave.
    check("a! b c a7", "a! b* c a7", "remove a");
    check("a? b c a7", "a b* c a7", "remove a");
    check("a? b c a7", "other b* c a7", "wait 300s for etcd without a: the member other of etcd belongs to no machine");
}

#[test]
fn a_member_leaves_only_if_the_others_can_do_without_it() {
    check("a b a7", "a b* a7?", "wait 300s for etcd without a: the member a-7 of etcd does not vote yet");
    check("a b a7", "a b* a7!", "wait 300s for etcd without a: the member a-7 of etcd is not healthy");
    check("a b a7", "a b*! a7", "wait 300s for etcd without a: the member b of etcd is not healthy");
    check("a b a7", "a b* a7 !", "wait 300s for etcd without a: a member of etcd has been added and has not started");
    check("a b a7", "a b*", "wait 300s for etcd without a: Machine a-7 is no member of etcd");
    check("a b a7", "a* a7", "wait 300s for etcd without a: Machine b is no member of etcd");
    check(
        "a a7",
        "a! a7*",
        "wait 300s for etcd without a: without the member a, etcd would have no voter, or one that may not answer",
    );
    check("a b! a7", "a b* a7", "wait 300s for etcd without a: Machine b is not ready: it is unwell");
    check("a b~ a7", "a b* a7", "wait 300s for etcd without a: Machine b is not ready: it is on the way out");
    check("a b a7", "a b* a7$", "wait 300s for etcd without a: the member a-7 of etcd warns: it has no more space");
    check_with(
        "a b a7",
        "a b* a7!",
        |input| waiting(input, 5),
        "too late for etcd without a: the member a-7 of etcd is not healthy",
    );
}

#[test]
fn a_machine_is_deleted_only_while_its_replacement_is_still_healthy() {
    check("a b a7!", "b* a7", "wait 780s for a-7: it is unwell");
    check("a b a7", "b* a7!", "wait 300s for etcd without a: the member a-7 of etcd is not healthy");
    check("a b a7", "b*! a7", "wait 300s for etcd without a: the member b of etcd is not healthy");
}

#[test]
fn marks_go_last_and_only_from_a_control_plane_at_rest() {
    check("a7 b7", "a7* b7", "unmark a-7");
    check("a7. b7", "a7* b7", "unmark b-7");
    check("a7. b7!", "a7* b7", "wait 300s for rest: Machine b-7 is not ready: it is unwell");
    check("a7. b7", "a7*", "wait 300s for rest: Machine b-7 is no member of etcd");
    check("a7. b7.", "a7* b7", "done");
    // What becomes of them later is no matter of this update.
    check("a7. b7.!", "a7* b7!", "done");
}

#[test]
fn what_is_in_flight_is_the_replacement_whose_original_is_there() {
    let name = |text: &str| in_flight(&machines(text), "7".parse().unwrap()).map(|found| found.name.to_string());
    assert_eq!(name("a b"), None);
    assert_eq!(name("a7 b"), None);
    assert_eq!(name("a7 b b7?"), Some("b-7".to_owned()));
}
