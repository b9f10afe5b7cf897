//! Until when an attempt can be given up, and how.

use super::*;

fn check_irrevocable(machines: &str, etcd: Result<&str, &str>, expected: Option<&str>) {
    let mut input = input(machines, etcd.unwrap_or_default());
    input.observed.etcd = etcd.map(members).map_err(ToOwned::to_owned);
    let etcd = input.observed.etcd.as_deref().map_err(String::as_str);
    let why = irrevocable(&input.observed.machines, etcd, input.attempt.id).map(|why| why.to_string());
    assert_eq!(why.as_deref(), expected, "{machines} | {etcd:?}");
}

#[test]
fn an_attempt_can_be_given_up_until_the_first_member_leaves() {
    check_irrevocable("a. b.", Ok("a* b"), None);
    check_irrevocable("a b", Err("no answer"), None);
    check_irrevocable("a b a7?", Ok("a* b !"), None);
    check_irrevocable("a b a7", Ok("a* b a7"), None);
    check_irrevocable("a b a7", Ok("a7* b"), Some("the member of the machine a has left etcd"));
    check_irrevocable("a b a7", Err("no answer"), Some("it is not known whether a member has left etcd: no answer"));
    check_irrevocable("b a7", Ok("a7* b"), Some("the machine a-7 has taken another's place"));
    check_irrevocable("b a7", Err("no answer"), Some("the machine a-7 has taken another's place"));
}

/// What is done to give up, on a control plane whose kubeadm has the new version on record, with an edit.
fn check_abort(machines: &str, members: &str, edit: impl FnOnce(&mut RollInput), expected: &str) {
    let mut input = input(machines, members);
    input.observed.unprepared = [Preparation::KubeadmConfig].into();
    edit(&mut input);
    let next = crate::roll::abort::next(&input);
    if let Next::Do(step) = &next {
        let findings = crate::check::roll(&input, step);
        assert!(findings.is_empty(), "{machines} | {members}: {findings:?}");
    }
    assert_eq!(told(&input, next), expected, "{machines} | {members}");
}

#[test]
fn whoever_gives_up_deletes_what_has_come_and_then_unmarks() {
    let restored = |input: &mut RollInput| input.observed.unprepared.clear();
    check_abort("a b a7", "a b a7*", |_| (), "lead a");
    check_abort("a b a7", "a* b a7", |_| (), "remove a-7");
    check_abort("a b a7!", "a* b a7!", |_| (), "remove a-7");
    check_abort("a b a7", "a* b", |_| (), "delete a-7");
    check_abort("a b a7?", "a* b", |_| (), "delete a-7");
    check_abort("a b a7~", "a* b", |_| (), "wait 900s for a-7 to go");
    check_abort("a b", "a* b !", |_| (), "remove number 3");
    check_abort("a b", "a* b", |_| (), "restore");
    check_abort("a b", "a* b", restored, "unmark a");
    check_abort("a. b", "a* b", restored, "unmark b");
    check_abort("a. b.", "a* b", restored, "done");
}

#[test]
fn what_no_machine_was_made_from_goes_and_what_is_of_others_stays() {
    use PartState::{Absent, Leaving, Present};
    let parts = |infrastructure, configuration| {
        move |input: &mut RollInput| {
            input.observed.parts.insert("b-7".parse().unwrap(), Parts { infrastructure, configuration });
        }
    };
    check_abort("a b", "a* b", parts(Present, Present), "delete the Infrastructure of b-7");
    check_abort("a b", "a* b", parts(Leaving, Present), "wait 300s for the Infrastructure of b-7 to go");
    check_abort("a b", "a* b", parts(Absent, Present), "delete the Configuration of b-7");
    let foreign = PartState::Foreign { why: "it is somebody's".to_owned() };
    check_abort("a b", "a* b", parts(foreign, Absent), "restore");
}

#[test]
fn whoever_cannot_give_up_says_so_and_who_does_not_know_waits() {
    let late = |input: &RollInput| told(input, crate::roll::abort::next(input));
    assert!(late(&input("a b a7", "a7* b")).contains("MemberLeft"));
    assert!(late(&input("b a7", "a7* b")).contains("Replaced"));
    let mut unknown = input("a b a7", "");
    unknown.observed.etcd = Err("no answer".to_owned());
    assert_eq!(late(&unknown), "wait 300s for rest: no answer");
    let held = |input: &mut RollInput| input.observed.hands_off = Some(HandsOff::Held { by: "Ann".to_owned() });
    check_abort("a b a7", "a* b a7", held, "held by Ann");
    check_abort("a b@", "a* b", |_| (), r#"failed: ForeignAttempt { machine: MachineName("b"), theirs: UpdateId(9) }"#);
    // A member that was added and has not started, and only one that has: nobody can agree to anything until it starts.
    let quorum = "of the 2 voters that etcd would have, 1 may not answer: it could lose its quorum";
    check_abort("a a7?", "a* !", |_| (), &format!("wait 300s for etcd without a-7: {quorum}"));
}
