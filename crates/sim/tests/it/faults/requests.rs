//! Requests and answers that go wrong.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Fault, Loss, Requests, Scenario, Span, When};
use windlass_sim::world::World;

use super::{code, config_map, create, exists, in_world_with, marks, once, said, seconds};

fn creations() -> Requests {
    Requests::to("create", "configmaps").by(Caller::Controllers)
}

fn check_refusal(status: u16) {
    let fault = Fault::Refusal { on: creations(), code: status, retry_after_seconds: None };
    in_world_with(7, Scenario::default().and(fault, When::nth(2)), |world| async move {
        let client = world.client_of(Caller::Controllers);
        create(&client, "a").await.unwrap();
        assert_eq!(code(create(&client, "b").await), status);
        assert!(!exists(&world, "b").await, "it was refused before it did anything");
        create(&client, "b").await.unwrap();
        create(&world.client_of(Caller::Upgrader), "c").await.unwrap();
        assert_eq!(world.faults().bites(), [1]);
        said(&world, &format!("F04: create configmaps default of the controllers is refused with {status}"));
    });
}

#[test]
fn a_refused_request_does_nothing_and_says_why() {
    for status in [409, 422, 429, 500, 503] {
        check_refusal(status);
    }
}

fn check_loss(loss: Loss, status: u16) {
    let fault = Fault::LostAnswer { on: creations(), instead: loss };
    in_world_with(7, once(fault), |world| async move {
        let client = world.client_of(Caller::Controllers);
        assert_eq!(code(create(&client, "a").await), status);
        assert!(exists(&world, "a").await, "it was done all the same");
        assert_eq!(code(create(&client, "a").await), 409, "whoever tries again without looking finds it there");
        said(&world, "F05: the answer to create configmaps default of the controllers is lost");
    });
}

#[test]
fn what_was_answered_with_an_error_may_have_been_done() {
    check_loss(Loss::InternalError, 500);
    check_loss(Loss::GatewayTimeout, 504);
    check_loss(Loss::Reset, 0);
    check_loss(Loss::Timeout, 0);
}

#[test]
fn a_request_that_is_delivered_twice_is_heard_of_the_second_time() {
    in_world_with(7, once(Fault::Repetition { on: creations() }), |world| async move {
        assert_eq!(code(create(&world.client_of(Caller::Controllers), "a").await), 409);
        assert!(exists(&world, "a").await);
        said(&world, "F06: create configmaps default of the controllers is delivered twice");
    });
}

/// The order in which creations are answered that are sent at once, and in which they are committed.
async fn answered(world: &World) -> (Vec<usize>, Vec<usize>) {
    let client = world.client_of(Caller::Controllers);
    let sent = (0..10).map(|number| {
        let client = client.clone();
        async move { (number, create(&client, &format!("m-{number}")).await.unwrap()) }
    });
    let answers: Vec<(usize, ConfigMap)> = sent.collect::<FuturesUnordered<_>>().collect().await;
    let mut committed = answers.clone();
    let version = |map: &ConfigMap| map.metadata.resource_version.clone().unwrap().parse::<u64>().unwrap();
    committed.sort_by_key(|(_, map)| version(map));
    let numbers = |all: Vec<(usize, ConfigMap)>| all.into_iter().map(|(number, _)| number).collect();
    (numbers(answers), numbers(committed))
}

#[test]
fn slow_requests_are_committed_and_answered_in_another_order() {
    let slow = || Fault::Delay { on: creations(), least: Span::seconds(1), most: Span::seconds(120) };
    let run = |seed| {
        in_world_with(seed, Scenario::of(slow()), |world| async move {
            let before = tokio::time::Instant::now();
            let orders = answered(&world).await;
            let took = before.elapsed().as_secs();
            assert!((1..=120).contains(&took), "{took} s");
            assert_eq!(marks(&world).len(), 1, "once is enough to say: {:?}", marks(&world));
            orders
        })
    };
    let (answers, commits) = run(7);
    assert_ne!(answers, (0..10).collect::<Vec<_>>());
    assert_ne!(answers, commits);
    assert_eq!(run(7), (answers.clone(), commits), "the same seed gives the same order");
    assert_ne!(run(8).0, answers);
}

#[test]
fn what_is_ready_runs_in_any_order() {
    let run = |seed, scenario| in_world_with(seed, scenario, |world| async move { answered(&world).await.1 });
    let plain = run(7, Scenario::default());
    let shuffled = run(7, Scenario::of(Fault::AnyOrder {}));
    assert_ne!(shuffled, plain);
    assert_eq!(run(7, Scenario::of(Fault::AnyOrder {})), shuffled);
    assert_ne!(run(8, Scenario::of(Fault::AnyOrder {})), shuffled);
    in_world_with(7, Scenario::of(Fault::AnyOrder {}), |world| async move {
        seconds(1).await;
        said(&world, "F16: the simulators run in any order");
    });
}

#[test]
fn a_lease_is_not_renewed_while_it_is_lost() {
    let lost = Scenario::default().and(Fault::LeaseLost {}, When::between(Span::seconds(30), Span::seconds(60)));
    in_world_with(7, lost, |world| async move {
        let client = world.client_of(Caller::Controllers);
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        let lease = serde_json::from_value(json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}}));
        leases.create(&PostParams::default(), &lease.unwrap()).await.unwrap();
        let renew = || async {
            let renewed = Patch::Merge(json!({"spec": {"leaseTransitions": 1}}));
            leases.patch("leader", &PatchParams::default(), &renewed).await
        };
        renew().await.unwrap();
        seconds(31).await;
        assert_eq!(code(renew().await), 504);
        create(&client, "a").await.unwrap();
        seconds(30).await;
        renew().await.unwrap();
        said(&world, "F14: patch leases default/leader of the controllers is not answered");
    });
}

#[test]
fn nothing_is_in_the_way_where_nothing_goes_wrong() {
    in_world_with(7, Scenario::default(), |world| async move {
        assert!(world.faults().is_empty() && world.disk().is_none());
        Api::default_namespaced(world.client_of(Caller::Controllers))
            .create(&PostParams::default(), &config_map("a"))
            .await
            .unwrap();
        assert!(marks(&world).is_empty() && world.faults().bites().is_empty());
    });
}
