//! Every rule fires on a story in which it is broken, and is silent on the good one; exceptions go as far as they are
//! declared to, and no further.

use serde_json::Value;

use super::{EXEMPTIONS, RULES};
use crate::timeline::script::{CLUSTER, NEW, OLD, Script};

const MACHINES: &str = "machines.cluster.x-k8s.io";
const MEMBERS: &str = "members.etcd.sim.windlass.dev";
const TKC: &str = "tanzukubernetesclusters.run.tanzu.vmware.com";

/// What is done to a running cluster of three and one violates these rules, and no others.
#[track_caller]
fn check(violated: &[&str], act: impl FnOnce(&mut Script)) {
    check_with(3, violated, act);
}

#[track_caller]
fn check_with(control_plane_count: u32, violated: &[&str], act: impl FnOnce(&mut Script)) {
    let mut script = Script::running(control_plane_count);
    assert_eq!(script.violated(), [""; 0], "before anything is done: {:#?}", script.recorder.violations());
    act(&mut script);
    assert_eq!(script.violated(), violated, "{:#?}", script.recorder.violations());
}

#[test]
fn the_rules_have_different_ids_and_exceptions_name_a_rule() {
    let ids: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    assert!(EXEMPTIONS.iter().all(|exemption| ids.contains(exemption.rule)));
    assert!(RULES.iter().all(|rule| rule.demands.ends_with('.')));
}

#[test]
fn a_good_update_violates_nothing_and_its_exceptions_are_told() {
    for count in [1, 3] {
        let mut script = Script::running(count);
        let before = script.exempted();
        script.upgrade(count);
        assert_eq!(script.violated(), [""; 0], "{:#?}", script.recorder.violations());
        let during = &script.exempted()[before.len()..];
        let joins_below_quorum = usize::from(count == 1);
        assert_eq!(during.iter().filter(|id| *id == "E1").count(), joins_below_quorum);
        assert!(during.iter().any(|id| id == "V1") && during.iter().any(|id| id == "V5"), "{during:?}");
    }
}

#[test]
fn what_stays_wrong_is_told_once_and_again_when_it_comes_back() {
    let wrong = |script: &mut Script, on| script.power("cp-0", OLD, on);
    check_with(1, &["E1", "E1"], |script| {
        wrong(script, false);
        script.node("w-0", OLD, false, false);
        wrong(script, true);
        wrong(script, false);
    });
}

#[test]
fn c1_a_control_plane_changes_by_one_machine_at_a_time() {
    let begin = |script: &mut Script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    };
    check(&[], begin);
    check(&["C1"], |script| {
        begin(script);
        script.wish(4, OLD, &Value::Null);
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
    });
    check(&["C1"], |script| {
        begin(script);
        script.join_control_plane("cp-0-1", NEW);
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
    });
    check(&["C1"], |script| {
        begin(script);
        script.join_control_plane("cp-0-1", NEW);
        script.remove(MEMBERS, "cp-0");
        script.delete(MACHINES, "default/cp-0");
        script.wish(4, OLD, &Value::Null);
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
    });
}

#[test]
fn c3_a_machine_goes_only_when_its_replacement_is_ready() {
    check(&["C3"], |script| script.delete(MACHINES, "default/cp-0"));
    check(&["C3"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
        script.join_control_plane("cp-1-1", NEW);
        script.delete(MACHINES, "default/cp-0");
    });
    check(&[], |script| script.delete(MACHINES, "default/w-0"));
    check(&[], |script| {
        script.delete(TKC, CLUSTER);
        script.delete(MACHINES, "default/cp-0");
        script.delete(MACHINES, "default/cp-1");
    });
}

#[test]
fn d1_add_ons_come_before_the_first_machine() {
    let machine = |script: &mut Script| script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    check(&["D1", "D1"], |script| {
        script.update(NEW, "Running");
        machine(script);
    });
    check(&["D1"], |script| {
        script.update(NEW, "Running");
        script.addon("kube-proxy", NEW);
        machine(script);
    });
    check(&["D1"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.remove("configmaps", "kube-system/pvcsi");
        machine(script);
    });
    check(&["D1"], |script| {
        script.addons(NEW);
        machine(script);
    });
    check(&["D1", "D1"], |script| {
        script.update(NEW, "Running");
        script.job(0, false);
    });
    check(&["D1"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.edit("daemonsets.apps", "kube-system/coredns-v1.17.4", |object| {
            object["metadata"]["generation"] = 2.into();
        });
        script.job(0, false);
    });
}

#[test]
fn d1_asks_about_the_first_machine_only() {
    check(&[], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
        script.join_control_plane("cp-0-1", NEW);
        script.retire("cp-0", OLD, true);
        script.remove("daemonsets.apps", "kube-system/coredns-v1.17.4");
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
    });
}

#[test]
fn d2_workers_come_last() {
    check(&["D2"], |script| script.pool(NEW));
    check(&["D2"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.worker("w-1", NEW);
    });
    check(&["D2"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
        script.join_control_plane("cp-0-1", NEW);
        script.pool(NEW);
    });
    check_with(1, &["D2"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
        script.join_control_plane("cp-0-1", NEW);
        script.remove(MEMBERS, "cp-0");
        script.delete(MACHINES, "default/cp-0");
        script.pool(NEW);
    });
}

#[test]
fn e1_more_than_half_of_the_voters_are_healthy() {
    check(&[], |script| script.power("cp-0", OLD, false));
    check(&["E1"], |script| {
        script.power("cp-0", OLD, false);
        script.power("cp-1", OLD, false);
    });
}

#[test]
fn e1_is_exempt_for_one_machine_that_joins_below_1_27_and_no_further() {
    // The machine is on, kubeadm is old enough, and there is one.
    let mut script = Script::running(1);
    script.power("cp-1", "v1.26.9", true);
    script.member("cp-1", false);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["E1".to_owned()]));

    check_with(1, &["E1"], |script| {
        script.power("cp-1", "v1.27.0", true);
        script.member("cp-1", false);
    });
    check_with(1, &["E1"], |script| script.member("cp-1", false));
    check_with(1, &["E1"], |script| {
        script.power("cp-1", OLD, true);
        script.member("cp-1", false);
        script.power("cp-1", OLD, false);
    });
    check_with(1, &["E1", "E5"], |script| {
        for node in ["cp-1", "cp-2"] {
            script.power(node, OLD, true);
            script.member(node, false);
        }
    });
    check_with(1, &["E1"], |script| {
        script.power("cp-1", OLD, true);
        script.member("cp-1", false);
        script.power("cp-0", OLD, false);
    });
}

#[test]
fn e5_what_does_not_answer_leaves_etcd_first() {
    check_with(5, &["E5"], |script| {
        script.power("cp-0", OLD, false);
        script.remove(MEMBERS, "cp-1");
    });
    check(&["E5"], |script| {
        script.power("cp-0", OLD, false);
        script.power("cp-3", OLD, true);
        script.member("cp-3", false);
    });
    check(&[], |script| {
        script.power("cp-0", OLD, false);
        script.remove(MEMBERS, "cp-0");
    });
}

#[test]
fn e6_another_leads_before_the_leader_goes() {
    let lead = |script: &mut Script, node: &str, leads: bool| {
        script.edit(MEMBERS, node, |object| object["record"]["leader"] = leads.into());
    };
    check(&["E6"], |script| {
        lead(script, "cp-0", true);
        script.remove(MEMBERS, "cp-0");
    });
    check(&[], |script| {
        lead(script, "cp-0", true);
        lead(script, "cp-0", false);
        lead(script, "cp-1", true);
        script.remove(MEMBERS, "cp-0");
    });
}

#[test]
fn e10_etcd_is_never_without_a_voter() {
    check_with(1, &["E10"], |script| script.remove(MEMBERS, "cp-0"));
    check(&[], |script| {
        script.remove(MEMBERS, "cp-0");
        script.remove(MEMBERS, "cp-1");
    });
    check(&["E1", "E10"], |script| {
        script.remove(MEMBERS, "cp-0");
        script.power("cp-1", OLD, false);
        script.remove(MEMBERS, "cp-1");
    });
    check_with(1, &[], |script| {
        script.delete(TKC, CLUSTER);
        script.remove(MEMBERS, "cp-0");
    });
}

#[test]
fn o2_certificates_live_as_long_as_the_cluster() {
    check(&["O2"], |script| script.remove("secrets", "default/my-tkc-etcd"));
    check(&["O2"], |script| script.secret("ca", "uid-of-another"));
    check(&["O2"], |script| {
        script.edit("secrets", "default/my-tkc-sa", |object| object["metadata"]["ownerReferences"] = Value::Null);
    });
    check(&["O2"; 4], |script| script.owner("uid-2"));
    check(&[], |script| {
        script.delete("clusters.cluster.x-k8s.io", CLUSTER);
        script.remove("secrets", "default/my-tkc-etcd");
    });
}

#[test]
fn v1_no_kubelet_is_newer_than_an_api_server() {
    check(&["V1"], |script| {
        script.power("w-1", NEW, true);
        script.node("w-1", NEW, false, false);
    });
    check(&[], |script| script.node("w-1", NEW, false, false));
}

#[test]
fn v1_is_exempt_for_the_new_control_plane_machine_of_a_running_update_and_no_further() {
    let join = |script: &mut Script, version: &str, control_plane| {
        script.power("cp-0-1", version, true);
        script.node("cp-0-1", version, control_plane, false);
    };
    let mut script = Script::running(1);
    script.update(NEW, "Running");
    join(&mut script, NEW, true);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["V1".to_owned()]));
    // When the update is over, so is the exception.
    script.update(NEW, "Failed");
    assert_eq!(script.violated(), ["V1"]);

    check_with(1, &["V1"], |script| join(script, NEW, true));
    check_with(1, &["V1"], |script| {
        script.update(NEW, "Running");
        join(script, NEW, false);
    });
    check_with(1, &["V1"], |script| {
        script.update(NEW, "Running");
        join(script, "v1.17.5+vmware.1", true);
    });
}

#[test]
fn v1_from_1_31_on_a_control_plane_kubelet_asks_the_api_server_beside_it() {
    let join = |script: &mut Script, server: &str| {
        script.update("v1.31.1", "Running");
        script.power("cp-0-1", "v1.31.1", true);
        script.component("kube-apiserver", "cp-0-1", server);
        script.node("cp-0-1", "v1.31.1", true, false);
    };
    let violated = |server| {
        let mut script = Script::new();
        script.power("cp-0", "v1.30.0", true);
        script.component("kube-apiserver", "cp-0", "v1.30.0");
        join(&mut script, server);
        script.violated()
    };
    assert_eq!(violated("v1.31.1"), [""; 0]);
    assert_eq!(violated("v1.30.0"), ["V1"]);
}

#[test]
fn v3_api_servers_are_at_most_one_minor_apart() {
    let mut script = Script::new();
    for (node, version) in [("cp-0", "v1.15.5"), ("cp-1", "v1.16.7")] {
        script.power(node, version, true);
        script.component("kube-apiserver", node, version);
    }
    assert_eq!(script.violated(), [""; 0]);
    script.component("kube-apiserver", "cp-2", "v1.17.4");
    assert_eq!(script.violated(), [""; 0], "a machine that is off serves nobody");
    script.power("cp-2", "v1.17.4", true);
    assert_eq!(script.violated(), ["V3"]);
}

#[test]
fn v5_no_kube_proxy_is_newer_than_an_api_server_nor_much_older() {
    check_with(1, &["V5"], |script| script.component("kube-proxy", "w-0", NEW));
    check_with(1, &[], |script| script.component("kube-proxy", "w-0", "v1.14.0"));
    check_with(1, &["V5"], |script| script.component("kube-proxy", "w-0", "v1.13.0"));
    check_with(1, &[], |script| script.component("kube-proxy", "of-a-machine-that-is-off", NEW));
}

#[test]
fn v5_is_exempt_on_the_new_control_plane_machine_of_a_running_update_and_no_further() {
    let mut script = Script::running(1);
    script.update(NEW, "Running");
    script.component("kube-proxy", "cp-0", NEW);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["V5".to_owned()]));
    script.update(NEW, "Succeeded");
    assert_eq!(script.violated(), ["V5"]);

    check_with(1, &["V5"], |script| script.component("kube-proxy", "cp-0", NEW));
    check_with(1, &["V5"], |script| {
        script.update(NEW, "Running");
        script.component("kube-proxy", "w-0", NEW);
    });
    check_with(1, &["V5"], |script| {
        script.update(NEW, "Running");
        script.component("kube-proxy", "cp-0", "v1.18.0");
    });
}

#[test]
fn v6_no_minor_is_skipped() {
    check_with(1, &["V6"], |script| {
        script.remove("pods", "kube-system/kube-apiserver-cp-0");
        script.component("kube-apiserver", "cp-0", "v1.18.0");
    });
    check_with(1, &[], |script| {
        script.remove("pods", "kube-system/kube-apiserver-cp-0");
        script.component("kube-apiserver", "cp-0", "v1.17.0");
    });
}
