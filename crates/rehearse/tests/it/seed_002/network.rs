//! A workload cluster that cannot be reached for a while.

use windlass_sim::fault::{Fault, LoadBalancerFault, Pattern, Requests, Silence, Span, When};

use super::{End, Row, check, fault};

fn unreachable(name: &str, on: Requests, when: When) -> windlass_sim::fault::Scenario {
    fault(name, Fault::Unreachable { clusters: Pattern::default(), on, how: Silence::Refused }, when)
}

#[test]
fn an_api_that_does_not_answer_for_a_while_is_waited_for() {
    for minutes in [1, 14] {
        let when = When::from(Span::minutes(1)).lasting(Span::minutes(minutes));
        let scenario = unreachable("the only API server is away", Requests::default(), when);
        check(&Row { id: "F5", size: (1, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
    }
}

#[test]
fn an_address_that_leads_to_a_machine_that_is_gone_costs_at_most_an_attempt() {
    let dead = Fault::LoadBalancer { clusters: Pattern::default(), how: LoadBalancerFault::DeadBackend };
    let when = When::default().lasting(Span::minutes(16));
    let scenario = fault("the address stays with what is gone", dead, when);
    check(&Row { id: "F6", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
    // The log of the notes: after the machine is gone, kubeadm's list of endpoints cannot be read for a quarter of an hour.
    let object = "kube-system/kubeadm-config".into();
    let endpoints = Requests { resource: "configmaps".into(), object, ..Requests::default() };
    let when = When::from(Span::minutes(3)).lasting(Span::minutes(16));
    let scenario = unreachable("no route to host", endpoints, when);
    check(&Row { id: "F6", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
}
