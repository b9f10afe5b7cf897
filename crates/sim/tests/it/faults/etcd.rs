//! What goes wrong with etcd.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use windlass_api::name::NamespacedName;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{EtcdFault, Fault, Scenario, Span, When, Whom};
use windlass_sim::workload::{Alarm, Workload};

use super::{code, create, in_world_with, said};
use crate::workload::{answers, grown, member, power_off};
use crate::world::minutes;

/// A control plane of three after eight minutes; the fault lasts from the tenth to the twentieth.
fn check<F: Future<Output = ()>>(how: EtcdFault, names: &str, body: impl FnOnce(Workload) -> F) {
    let fault = Fault::Etcd { of: Whom::named(names), how };
    let scenario = Scenario::default().and(fault, When::between(Span::minutes(10), Span::minutes(20)));
    in_world_with(7, scenario, |world| async move {
        let workload = grown(&world, 3, 0).await;
        minutes(11 - 7).await;
        body(workload).await;
        said(&world, "F22: ");
    });
}

fn leader(workload: &Workload) -> Option<String> {
    let members = workload.members().ok()?;
    members.into_iter().find(|member| member.leader).map(|member| member.name)
}

/// What a pod of the system says of itself.
async fn ready(workload: &Workload, pod: &str) -> Option<String> {
    let pods: Api<Pod> = Api::namespaced(workload.client(), "kube-system");
    let conditions = pods.get(pod).await.unwrap().status?.conditions?;
    conditions.into_iter().find(|condition| condition.type_ == "Ready").map(|condition| condition.status)
}

#[test]
fn a_member_that_is_cut_off_is_sick_and_leads_no_more() {
    check(EtcdFault::CutOff, "cp-0", |workload| async move {
        let sick = workload.members().unwrap().into_iter().find(|member| member.name == "cp-0").unwrap();
        assert!(!sick.healthy && !sick.leader);
        assert_eq!(ready(&workload, "etcd-cp-0").await.as_deref(), Some("False"), "its probe fails");
        power_off(&workload, "cp-1");
        assert!(!answers(&workload.client()).await, "one of three is no quorum");
        minutes(10).await;
        assert!(answers(&workload.client()).await, "two are, now that it is back");
        assert_eq!(ready(&workload, "etcd-cp-0").await.as_deref(), Some("True"));
    });
}

#[test]
fn the_leader_changes_though_nobody_asked() {
    check(EtcdFault::LeaderFlaps { every: Span::seconds(30) }, "*", |workload| async move {
        let mut leaders = Vec::new();
        for _ in 0..4 {
            leaders.push(leader(&workload).unwrap());
            tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        }
        assert!(leaders.windows(2).all(|pair| pair[0] != pair[1]), "{leaders:?}");
    });
}

#[test]
fn without_space_the_api_refuses_writes_and_etcd_raises_an_alarm() {
    check(EtcdFault::NoSpace, "cp-2", |workload| async move {
        let id = member(&workload, "cp-2");
        assert_eq!(workload.alarms()[&id], [Alarm::NoSpace].into());
        assert_eq!(code(create(&workload.client(), "a").await), 500);
        assert!(answers(&workload.client()).await, "it can still be read");
        minutes(10).await;
        create(&workload.client(), "a").await.unwrap();
        assert!(workload.alarms().is_empty());
    });
}

#[test]
fn a_member_with_other_data_raises_an_alarm() {
    check(EtcdFault::Corrupt, "cp-1", |workload| async move {
        let id = member(&workload, "cp-1");
        assert_eq!(workload.alarms()[&id], [Alarm::Corrupt].into());
        create(&workload.client(), "a").await.unwrap();
    });
}

#[test]
fn nobody_else_can_be_made_to_lead() {
    check(EtcdFault::MoveRefused, "*", |workload| async move {
        let before = leader(&workload);
        let refusal = workload.move_leader(member(&workload, "cp-2")).unwrap_err();
        assert!(refusal.0.contains("leader transfer took too long"), "{refusal}");
        assert_eq!(leader(&workload), before);
        minutes(10).await;
        workload.move_leader(member(&workload, "cp-2")).unwrap();
        assert_eq!(leader(&workload).as_deref(), Some("cp-2"));
    });
}

#[test]
fn a_member_is_removed_and_nobody_says_so() {
    check(EtcdFault::RemovalUnanswered, "*", |workload| async move {
        let id = member(&workload, "cp-2");
        let refusal = workload.remove_member(id).unwrap_err();
        assert!(refusal.0.contains("timed out"), "{refusal}");
        assert_eq!(workload.members().unwrap().len(), 2, "it is gone all the same");
        assert!(workload.remove_member(id).unwrap_err().0.contains("not found"));
    });
}

#[test]
fn etcd_answers_late() {
    check(EtcdFault::Slow { by: Span::seconds(7) }, "*", |workload| async move {
        let delay = |cluster: &str| workload.faults().etcd_delay(&cluster.parse::<NamespacedName>().unwrap()).as_secs();
        assert_eq!(delay("default/my-tkc"), 7);
        minutes(10).await;
        assert_eq!(delay("default/my-tkc"), 0);
    });
}

#[test]
fn only_the_clusters_that_are_meant_are_bitten() {
    let fault = Fault::Etcd { of: Whom::of("default/other"), how: EtcdFault::MoveRefused };
    in_world_with(7, Scenario::of(fault), |world| async move {
        let workload = grown(&world, 2, 0).await;
        workload.move_leader(member(&workload, "cp-1")).unwrap();
        create(&world.client_of(Caller::User), "a").await.unwrap();
        assert_eq!(world.faults().bites(), [0]);
    });
}
