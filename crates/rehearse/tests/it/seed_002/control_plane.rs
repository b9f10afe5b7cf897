//! A replacement that does not come as far as it must, or is lost.

use windlass_rehearse::rehearsal::Change;
use windlass_sim::fault::{Fault, MachineFault, NodeFault, Span, When};

use super::{End, Row, check, fault, first_replacement, late_role};

#[test]
fn a_replacement_that_never_becomes_a_node_is_given_up_and_named() {
    let machine = |how| Fault::Machine { of: first_replacement(), how };
    let node = |how| Fault::Node { of: first_replacement(), how };
    for (scenario, because) in [
        (fault("never boots", machine(MachineFault::NeverBoots), When::default()), &["my-tkc-control-plane-0-"][..]),
        (
            fault("has the provider id of another", node(NodeFault::WrongProviderId), When::default()),
            &["my-tkc-control-plane-0-", "node"][..],
        ),
        (late_role(When::default()), &["is not labelled as one of the control plane"][..]),
    ] {
        check(&Row { id: "F2", size: (1, 1), scenario, end: End::Failed, tolerated: &[], because });
    }
}

#[test]
fn a_label_that_is_late_costs_attempts_and_not_the_upgrade() {
    for minutes in [14, 20] {
        let scenario = late_role(When::default().lasting(Span::minutes(minutes)));
        check(&Row { id: "F2", size: (3, 1), scenario, end: End::Reached, tolerated: &[], because: &[] });
    }
}

#[test]
fn a_replacement_that_dies_after_its_original_is_never_deleted() {
    let vanishes = Fault::Machine { of: first_replacement(), how: MachineFault::Vanishes { after: Span::minutes(4) } };
    let scenario = fault("the machine vanishes when its original has gone", vanishes, When::default());
    let because = &["my-tkc-control-plane-0-"];
    // The next one is booting when it happens, and kubeadm adds it to etcd without asking anybody.
    let tolerated = &["E2", "E5"];
    let ended = check(&Row { id: "F3", size: (3, 1), scenario, end: End::Failed, tolerated, because });
    let rehearsal = &ended.rehearsal;
    let replacement = rehearsal.machines.iter().find(|machine| machine.change == Change::Created).unwrap();
    let deleted = |name: &str| rehearsal.machines.iter().any(|it| it.change == Change::Deleted && it.name == name);
    assert!(!deleted(&replacement.name), "{rehearsal}");
}
