//! The way to a workload cluster, blocked or leading astray.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ListParams, WatchParams};
use windlass_sim::fault::{Fault, LoadBalancerFault, Requests, Scenario, Silence, Span, When};
use windlass_sim::workload::Workload;

use super::{code, in_world_with, said};
use crate::workload::{answers, grown, member, power_off};
use crate::world::minutes;

fn from_ten_to_twenty(fault: Fault) -> Scenario {
    Scenario::default().and(fault, When::between(Span::minutes(10), Span::minutes(20)))
}

fn check_silence(how: Silence, status: u16, waits: u64) {
    let fault = Fault::Unreachable { clusters: "default/*".into(), on: Requests::default(), how };
    in_world_with(7, from_ten_to_twenty(fault), |world| async move {
        let workload = grown(&world, 1, 0).await;
        let list = || async { Api::<Node>::all(workload.client()).list(&ListParams::default()).await };
        list().await.unwrap();
        minutes(8).await;
        let before = tokio::time::Instant::now();
        assert_eq!(code(list().await), status, "{how:?}");
        assert_eq!(before.elapsed().as_secs(), waits, "{how:?}");
        minutes(10).await;
        list().await.unwrap();
        said(&world, "F26: list nodes (workload)");
    });
}

#[test]
fn a_workload_cluster_is_out_of_reach_for_a_while() {
    check_silence(Silence::Refused, 0, 0);
    check_silence(Silence::Timeout, 0, 295);
    check_silence(Silence::UnknownAuthority, 0, 0);
    check_silence(Silence::Unauthorized, 401, 0);
}

#[test]
fn an_answer_that_begins_does_not_end() {
    let fault = Fault::Unreachable { clusters: "*".into(), on: Requests::default(), how: Silence::Endless };
    in_world_with(7, Scenario::of(fault), |world| async move {
        let workload = grown(&world, 1, 0).await;
        let list = async { Api::<Node>::all(workload.client()).list(&ListParams::default()).await };
        assert!(tokio::time::timeout(std::time::Duration::from_secs(3600), list).await.is_err());
        said(&world, "F26: list nodes (workload): the answer goes on for ever");
    });
}

#[test]
fn a_workload_cluster_is_out_of_reach_for_add_ons_only() {
    let fault = Fault::Unreachable {
        clusters: "*".into(),
        on: Requests { resource: "daemonsets".into(), ..Requests::default() },
        how: Silence::Refused,
    };
    in_world_with(7, Scenario::of(fault), |world| async move {
        let workload = grown(&world, 1, 0).await;
        assert!(answers(&workload.client()).await);
        let daemons: Api<k8s_openapi::api::apps::v1::DaemonSet> = Api::all(workload.client());
        assert_eq!(code(daemons.list(&ListParams::default()).await), 0);
        said(&world, "F26: list daemonsets (workload): nobody listens");
    });
}

/// How many of ten requests are answered.
async fn answered(workload: &Workload) -> usize {
    let mut count = 0;
    for _ in 0..10 {
        count += usize::from(answers(&workload.client()).await);
    }
    count
}

#[test]
fn the_load_balancer_leads_to_a_machine_that_is_gone() {
    let fault = Fault::LoadBalancer { clusters: "*".into(), how: LoadBalancerFault::DeadBackend };
    in_world_with(7, from_ten_to_twenty(fault), |world| async move {
        let workload = grown(&world, 2, 0).await;
        minutes(6).await;
        assert_eq!(answered(&workload).await, 10, "all are there");
        workload.remove_member(member(&workload, "cp-1")).unwrap();
        power_off(&workload, "cp-1");
        let backends: Vec<(String, bool)> =
            workload.backends().into_iter().map(|(node, on)| (node.to_string(), on)).collect();
        assert_eq!(backends, [("cp-0".to_owned(), true), ("cp-1".to_owned(), false)]);
        assert_eq!(answered(&workload).await, 5, "every other one goes astray");
        minutes(10).await;
        assert_eq!(answered(&workload).await, 10, "it has noticed");
        said(&world, "the load balancer leads to a machine that is gone");
    });
}

#[test]
fn an_address_that_moves_breaks_connections_and_is_back_soon() {
    let fault = Fault::LoadBalancer { clusters: "*".into(), how: LoadBalancerFault::Moves };
    in_world_with(7, from_ten_to_twenty(fault), |world| async move {
        let workload = grown(&world, 1, 0).await;
        minutes(6).await;
        let api: Api<ConfigMap> = Api::default_namespaced(workload.client());
        let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        let ended = async { while events.next().await.is_some() {} };
        tokio::time::timeout(std::time::Duration::from_secs(121), ended).await.expect("the watch is cut off");
        assert!(!answers(&workload.client()).await);
        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        assert!(answers(&workload.client()).await);
        said(&world, "F27: ");
    });
}
