//! A replacement that does not come as far as it must, or is lost.

use windlass_rehearse::rehearsal::Change;
use windlass_sim::fault::{Fault, MachineFault, NodeFault, Span, When, Whom};

use super::{End, Row, Told, check, fault, first_replacement, late_role};

#[test]
fn a_replacement_that_never_becomes_a_node_is_given_up_and_named() {
    let machine = |how| Fault::Machine { of: first_replacement(), how };
    let node = |how| Fault::Node { of: first_replacement(), how };
    let boots = fault("never boots", machine(MachineFault::NeverBoots), When::default());
    let strange = fault("has the provider id of another", node(NodeFault::WrongProviderId), When::default());
    for (scenario, words) in [
        (boots, &["my-tkc-control-plane-0-", "it has no providerID yet"][..]),
        (strange, &["my-tkc-control-plane-0-", "providerID"][..]),
        (late_role(When::default()), &["is not labelled as one of the control plane"][..]),
    ] {
        let told = Told::Words(words);
        check(&Row { ids: &["F2", "#157", "(f)"], size: (1, 1), scenario, end: End::Failed, tolerated: &[], told });
    }
}

#[test]
fn a_label_that_is_late_costs_attempts_and_neither_the_upgrade_nor_a_certificate() {
    for (minutes, words) in [
        (14, &["its node has not been labelled as one of the control plane"][..]),
        (20, &["1 of 4 attempts have failed", "is not labelled as one of the control plane"][..]),
    ] {
        let scenario = late_role(When::default().lasting(Span::minutes(minutes)));
        let told = Told::Words(words);
        check(&Row { ids: &["F2", "#149", "#158"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
    }
}

#[test]
fn a_machine_has_the_whole_of_its_time_to_come() {
    let late = Fault::Machine { of: first_replacement(), how: MachineFault::BootsLate { by: Span::minutes(11) } };
    let scenario = fault("a machine takes its time", late, When::default());
    let told = Told::Words(&["is on its way in: it has no providerID yet"]);
    let row = Row { ids: &["#112", "#140"], size: (1, 1), scenario, end: End::Reached, tolerated: &[], told };
    let said = super::said(&check(&row).rehearsal);
    assert!(!said.iter().any(|line| line.contains("attempts have failed")), "{said:#?}");
}

#[test]
fn a_replacement_that_dies_after_its_original_is_never_deleted() {
    let vanishes = Fault::Machine { of: first_replacement(), how: MachineFault::Vanishes { after: Span::minutes(4) } };
    let scenario = fault("the machine vanishes when its original has gone", vanishes, When::default());
    let told = Told::Words(&["gave up replacing the control plane", "Kubelet stopped posting node status"]);
    // The next one is booting when it happens, and kubeadm adds it to etcd without asking anybody.
    let tolerated = &["E2", "E5"];
    let row = Row { ids: &["F3", "(a)"], size: (3, 1), scenario, end: End::Failed, tolerated, told };
    let rehearsal = check(&row).rehearsal;
    let replacement = rehearsal.machines.iter().find(|machine| machine.change == Change::Created).unwrap();
    let deleted = |name: &str| rehearsal.machines.iter().any(|it| it.change == Change::Deleted && it.name == name);
    assert!(!deleted(&replacement.name), "{rehearsal}");
}

#[test]
fn workers_wait_for_the_cloud_provider_of_their_release() {
    let of = Whom::named("*/guest-cluster-cloud-provider*");
    let when = When::default().lasting(Span::minutes(20));
    let scenario = fault("the cloud provider does not run", Fault::CrashLoop { of }, when);
    let told = Told::Words(&["the add-on vmware-guest-cluster is not ready: Deployment/guest-cluster-cloud-provider"]);
    let row = Row { ids: &["#153"], size: (1, 1), scenario, end: End::Reached, tolerated: &[], told };
    let rehearsal = check(&row).rehearsal;
    let worker = rehearsal.machines.iter().find(|machine| machine.name.contains("workers")).unwrap();
    assert!(worker.at.duration_since(rehearsal.began).as_mins() >= 20, "{rehearsal}");
}
