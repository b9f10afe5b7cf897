//! What kubeadm looks for and does not find, and members of etcd that are no machines.

use windlass_sim::fault::{Action, Span};

use super::{End, Row, Told, action, check, delete};

const CLUSTER: &str = "default/my-tkc";

#[test]
fn a_kubelet_configuration_that_is_missing_is_named() {
    let config = delete(Some(CLUSTER), "v1", "ConfigMap", "kube-system/kubelet-config-1.15");
    let scenario = action("the configuration of kubelets is deleted", Span::default(), config);
    let told = Told::Words(&["kubelet-config-1.15"]);
    check(&Row { ids: &["F8", "#56", "kubeadm#1511"], size: (1, 1), scenario, end: End::Failed, tolerated: &[], told });
}

fn stranger() -> Action {
    Action::AddMember { cluster: CLUSTER.parse().unwrap(), name: "stranger".parse().unwrap() }
}

fn remove(name: &str) -> Action {
    Action::RemoveMember { cluster: CLUSTER.parse().unwrap(), name: name.into() }
}

/// A member that was added before an upgrade begins is waited for; one that comes in the middle and never starts is what a
/// replacement leaves that died while it joined, and is removed.
#[test]
fn a_member_that_is_no_machine_is_told_or_goes() {
    // It has no name before it starts, only a number.
    let told = Told::Words(&["of etcd has been added and has not started", "if it lasts, remove the member"]);
    let scenario = action("somebody adds a member", Span::default(), stranger());
    let scenario = scenario.then(Span::minutes(20), remove("stranger"));
    check(&Row { ids: &["F7"], size: (3, 1), scenario, end: End::Reached, tolerated: &["E4", "E8"], told });
    let scenario = action("somebody adds a member in the middle", Span::seconds(200), stranger());
    let told = Told::Nothing;
    check(&Row { ids: &["F7"], size: (3, 1), scenario, end: End::Reached, tolerated: &["E4", "E8"], told });
}

#[test]
fn a_machine_whose_member_was_removed_is_told() {
    for (seconds, end) in [(0, End::Waits), (200, End::Failed)] {
        let scenario = action("somebody removes a member", Span::seconds(seconds), remove("my-tkc-control-plane-2-*"));
        let told = Told::Words(&["Machine my-tkc-control-plane-2-", "is no member of etcd"]);
        check(&Row { ids: &["F7"], size: (3, 1), scenario, end, tolerated: &["E8"], told });
    }
}
