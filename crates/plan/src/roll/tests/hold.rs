//! What an attempt does while somebody holds the cluster.

use super::*;

#[test]
fn a_cluster_that_is_paused_is_left_alone() {
    let paused = |input: &mut RollInput| input.observed.hands_off = Some(HandsOff::Held { by: "Ann".to_owned() });
    check_with("a b", "a* b", paused, "held by Ann");
    check_with("a b a7", "b* a7", paused, "held by Ann");
    check_with("a b@", "a* b", paused, "held by Ann");
    check_with("a7. b7.", "a7* b7", paused, "done");
    let for_days = |input: &mut RollInput| {
        paused(input);
        waiting(input, 3 * 24 * 60);
    };
    check_with("a b a7!", "a* b a7", for_days, "held by Ann");
    let lost = |input: &mut RollInput| {
        input.observed.hands_off = Some(HandsOff::Lost { state: "being deleted".to_owned() });
    };
    check_with("a b", "a* b", lost, "blocked: the cluster is paused: being deleted");
    let heedless = |input: &mut RollInput| {
        paused(input);
        input.gates = Gates::without(&[Gate::NotPaused]);
    };
    check_with("a b", "a* b", heedless, "infrastructure a-7 for a");
}

#[test]
fn a_machine_that_does_not_go_says_what_it_waits_for() {
    let drains = |input: &mut RollInput| {
        input.observed.leaving.insert("a".parse().unwrap(), "the budget web keeps the pod web-1".to_owned());
    };
    check_with("a~ b c a7", "b* c a7", drains, "wait 900s for a to go: the budget web keeps the pod web-1");
    let for_long = |input: &mut RollInput| {
        waiting(input, 15);
        drains(input);
    };
    check_with("a~ b c a7", "b* c a7", for_long, "too late for a to go: the budget web keeps the pod web-1");
}

#[test]
fn the_time_in_which_a_cluster_was_held_is_not_that_of_a_machine() {
    // It is two minutes old, and would have thirteen more.
    let released =
        |minutes| move |input: &mut RollInput| input.released = Some(now() - SignedDuration::from_mins(minutes));
    check_with("a b a7!", "a* b a7", released(1), "wait 840s for a-7: it is unwell");
    check_with("a b a7!", "a* b a7", released(5), "wait 780s for a-7: it is unwell");
    let late = |input: &mut RollInput| {
        released(15)(input);
        input.observed.machines[2].created = now() - SignedDuration::from_mins(80);
        input.began = now() - SignedDuration::from_mins(85);
    };
    check_with("a b a7!", "a* b a7", late, "too late for a-7: it is unwell");
}
