//! Machines that do not do what they were made for, and an infrastructure that makes none.

use std::collections::BTreeMap;

use kube::api::ListParams;
use kube::{Api, ResourceExt};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::condition;
use windlass_api::kind::wcp::{VmState, WCPMachine};
use windlass_sim::fault::{Fault, InfrastructureFault, MachineFault, Scenario, Span, When, Whom};
use windlass_sim::management::{Infrastructure, Zone};

use super::{is_available, said};
use crate::management::stage::{OLD, Stage, stage_with};

const FIRST: &str = "c-control-plane-0";

/// A cluster with one machine, which is bitten, after so many minutes.
fn bitten<T, F: Future<Output = T>>(scenario: Scenario, minutes: u64, body: impl FnOnce(Stage) -> F) -> T {
    stage_with(scenario, |stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.pass(60 * minutes).await;
        body(stage).await
    })
}

fn machine_fault(how: MachineFault, when: When) -> Scenario {
    Scenario::default().and(Fault::Machine { of: Whom::named("c-*"), how }, when)
}

fn state(machine: &WCPMachine) -> Option<VmState> {
    machine.status.as_ref().and_then(|status| status.vm_state)
}

fn reason(machine: &WCPMachine, type_: &str) -> String {
    let conditions = machine.status.clone().unwrap_or_default().conditions;
    condition(&conditions, type_).map(|found| found.reason.clone()).unwrap_or_default()
}

#[test]
fn a_machine_never_boots_or_boots_when_nobody_waits_any_more() {
    let for_an_hour = When::between(Span::default(), Span::minutes(60));
    bitten(machine_fault(MachineFault::NeverBoots, for_an_hour), 55, |stage| async move {
        assert_eq!(state(&stage.get(FIRST).await), Some(VmState::PoweredOn));
        said(&stage.world, "F19: the machine c-control-plane-0 does not boot");
        stage.pass(600).await;
        assert!(is_available(&stage.get(FIRST).await), "the fault is over");
    });
}

#[test]
fn a_machine_boots_late() {
    let late = MachineFault::BootsLate { by: Span::minutes(20) };
    bitten(machine_fault(late, When::default()), 15, |stage| async move {
        assert_eq!(state(&stage.get(FIRST).await), Some(VmState::PoweredOn));
        stage.until(FIRST, is_available).await;
        let took = stage.elapsed_seconds();
        assert!((1_200..1_800).contains(&took), "{took} s");
        said(&stage.world, "F19: the machine c-control-plane-0 boots late");
    });
}

#[test]
fn a_machine_that_was_made_twice_has_a_node_that_is_not_its_own() {
    bitten(machine_fault(MachineFault::BootsTwice, When::default()), 15, |stage| async move {
        assert_eq!(stage.nodes("c").await, [FIRST]);
        let machine: Machine = stage.get(FIRST).await;
        assert!(machine.status.as_ref().is_none_or(|status| status.node_ref.is_none()), "{:?}", machine.status);
        said(&stage.world, "F19: the machine c-control-plane-0 was made twice");
    });
}

#[test]
fn a_machine_vanishes_and_its_node_is_not_heard_of() {
    let vanishes = MachineFault::Vanishes { after: Span::minutes(10) };
    bitten(machine_fault(vanishes, When::default()), 9, |stage| async move {
        assert!(is_available(&stage.get(FIRST).await));
        stage.pass(300).await;
        assert!(stage.workload("c").running().is_empty() && !stage.workload("c").answers());
        assert_eq!(reason(&stage.get(FIRST).await, "Ready"), "VirtualMachineNotFound");
        said(&stage.world, "F19: c-control-plane-0 is gone: its machine has vanished");
    });
}

#[test]
fn a_machine_runs_and_the_provider_says_that_there_is_none() {
    let when = When::between(Span::minutes(10), Span::minutes(12));
    bitten(machine_fault(MachineFault::Unlisted, when), 11, |stage| async move {
        assert_eq!(reason(&stage.get(FIRST).await, "Ready"), "VirtualMachineNotFound");
        assert_eq!(stage.workload("c").running().len(), 1);
        stage.pass(90).await;
        assert_eq!(reason(&stage.get(FIRST).await, "Ready"), "Booted", "it is seen again");
        said(&stage.world, "F19: c-control-plane-0 runs, and the provider says that there is no such machine");
    });
}

fn check_refused(how: InfrastructureFault, said_reason: &str) {
    let fault = Fault::Infrastructure { of: Whom::default(), how };
    let for_a_while = Scenario::default().and(fault, When::between(Span::default(), Span::minutes(10)));
    bitten(for_a_while, 9, |stage| async move {
        let machine: WCPMachine = stage.get(FIRST).await;
        assert_eq!((state(&machine), &*reason(&machine, "VirtualMachineCreated")), (None, said_reason));
        said(&stage.world, "F36: the machine c-control-plane-0 is refused");
        stage.until(FIRST, is_available).await;
    });
}

#[test]
fn the_infrastructure_refuses_a_machine_for_a_while() {
    check_refused(InfrastructureFault::Quota, "QuotaExceeded");
    check_refused(InfrastructureFault::Throttled, "TooManyRequests");
}

#[test]
fn a_machine_is_made_without_a_disk_and_can_still_be_deleted() {
    let fault = Fault::Infrastructure { of: Whom::default(), how: InfrastructureFault::Partial };
    bitten(Scenario::of(fault), 30, |stage| async move {
        let machine: WCPMachine = stage.get(FIRST).await;
        assert_eq!((state(&machine), &*reason(&machine, "Ready")), (Some(VmState::Created), "DiskNotAttached"));
        assert!(machine.spec.provider_id.is_some(), "the provider has something to remove");
        stage.delete::<Machine>(FIRST).await;
        stage.pass(600).await;
        assert!(stage.list::<WCPMachine>().await.is_empty());
        said(&stage.world, "F36: the machine c-control-plane-0 is made without a disk");
    });
}

#[test]
fn a_machine_is_gone_and_its_object_stays() {
    let fault = Fault::FinalizerStays { of: Whom::named("c-*") };
    let stays = Scenario::default().and(fault, When::between(Span::default(), Span::minutes(60)));
    bitten(stays, 10, |stage| async move {
        stage.delete::<Machine>(FIRST).await;
        stage.pass(2_400).await;
        assert_eq!(stage.list::<WCPMachine>().await, [FIRST]);
        assert!(stage.workload("c").running().is_empty(), "the machine itself is off");
        said(&stage.world, "F30: the machine c-control-plane-0 is gone, and its finalizer stays");
        stage.pass(1_200).await;
        assert!(stage.list::<WCPMachine>().await.is_empty() && stage.list::<Machine>().await.is_empty());
    });
}

async fn zones(stage: &Stage) -> BTreeMap<String, usize> {
    let all = Api::<WCPMachine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
    let mut zones = BTreeMap::new();
    for machine in all.items {
        *zones.entry(machine.labels().get("topology.kubernetes.io/zone").cloned().unwrap_or_default()).or_default() +=
            1;
    }
    zones
}

#[test]
fn machines_are_spread_over_zones_and_wait_where_there_is_no_room() {
    let zone = |name: &str, machines| Zone { name: name.into(), machines: Some(machines) };
    let infrastructure = Infrastructure { zones: vec![zone("a", 2), zone("b", 1)], ..Infrastructure::default() };
    stage_with(Scenario { infrastructure, ..Scenario::default() }, |stage| async move {
        stage.cluster("c").await;
        stage.control_plane_machine("c", 0).await;
        stage.until(FIRST, is_available).await;
        stage.pool("c", 3, OLD).await;
        stage.pass(900).await;
        let full: BTreeMap<String, usize> = [(String::new(), 1), ("a".into(), 2), ("b".into(), 1)].into();
        assert_eq!(zones(&stage).await, full, "three have a place, and one waits");
        let all = Api::<WCPMachine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
        let waiting = all.items.iter().find(|machine| state(machine).is_none()).unwrap();
        assert_eq!(reason(waiting, "VirtualMachineCreated"), "InsufficientCapacity");
        let placed = all.items.iter().find(|machine| state(machine).is_some() && machine.name_any() != FIRST).unwrap();
        stage.delete::<Machine>(&placed.name_any()).await;
        stage.pass(900).await;
        assert_eq!(zones(&stage).await.values().sum::<usize>(), 4, "its place was taken, and one waits again");
    });
}

#[test]
fn a_namespace_has_no_more_machines_and_processors_than_its_quota() {
    let check = |infrastructure: Infrastructure, made: usize| {
        stage_with(Scenario { infrastructure, ..Scenario::default() }, |stage| async move {
            stage.cluster("c").await;
            stage.control_plane_machine("c", 0).await;
            stage.until(FIRST, is_available).await;
            stage.pool("c", 4, OLD).await;
            stage.pass(900).await;
            let all = Api::<WCPMachine>::default_namespaced(stage.client()).list(&ListParams::default()).await.unwrap();
            assert_eq!(all.items.iter().filter(|machine| state(machine).is_some()).count(), made);
            let refused = all.items.iter().filter(|machine| reason(machine, "Ready") == "QuotaExceeded").count();
            assert_eq!(refused, 5 - made);
        });
    };
    check(Infrastructure { machines_per_namespace: Some(3), ..Infrastructure::default() }, 3);
    check(Infrastructure { cpus_per_namespace: Some(5), ..Infrastructure::default() }, 2);
}
