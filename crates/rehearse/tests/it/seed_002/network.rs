//! A workload cluster that cannot be reached for a while.

use windlass_sim::fault::{Fault, LoadBalancerFault, Pattern, Requests, Silence, Span, When};

use super::{End, Row, Told, check, fault};

const DOES_NOT_ANSWER: &str = "the workload cluster does not answer";

fn unreachable(name: &str, on: Requests, when: When) -> windlass_sim::fault::Scenario {
    fault(name, Fault::Unreachable { clusters: Pattern::default(), on, how: Silence::Refused }, when)
}

#[test]
fn an_api_that_does_not_answer_for_a_while_is_waited_for() {
    for (minutes, told) in [
        // Nobody but the Job asks within that minute, and it asks again.
        (1, Told::Nothing),
        (14, Told::Words(&[DOES_NOT_ANSWER])),
        // Longer than an attempt waits: a later one finds it again.
        (40, Told::Words(&[DOES_NOT_ANSWER, "1 of 4 attempts have failed"])),
    ] {
        let when = When::from(Span::minutes(1)).lasting(Span::minutes(minutes));
        let scenario = unreachable("the only API server is away", Requests::default(), when);
        check(&Row {
            ids: &["F5", "#40", "#41", "#136"],
            size: (1, 1),
            scenario,
            end: End::Reached,
            tolerated: &[],
            told,
        });
    }
}

#[test]
fn an_address_that_leads_to_a_machine_that_is_gone_costs_at_most_an_attempt() {
    let dead = Fault::LoadBalancer { clusters: Pattern::default(), how: LoadBalancerFault::DeadBackend };
    let when = When::default().lasting(Span::minutes(16));
    let scenario = fault("the address stays with what is gone", dead, when);
    let told = Told::Words(&[DOES_NOT_ANSWER]);
    check(&Row { ids: &["F6"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
    // After the machine is gone, kubeadm's list of endpoints cannot be read for a quarter of an hour.
    let object = "kube-system/kubeadm-config".into();
    let endpoints = Requests { resource: "configmaps".into(), object, ..Requests::default() };
    let when = When::from(Span::minutes(3)).lasting(Span::minutes(16));
    let scenario = unreachable("no route to host", endpoints, when);
    let told = Told::Words(&["kubeadm-config"]);
    check(&Row { ids: &["F6", "log"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
}
