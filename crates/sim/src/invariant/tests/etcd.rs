//! E: etcd.

use serde_json::{Value, json};

use super::{MACHINES, MEMBERS, TKC, check, check_with};
use crate::timeline::script::{CLUSTER, NEW, OLD, Script};

#[test]
fn e1_more_than_half_of_the_voters_are_healthy() {
    check(&[], |script| script.power("cp-0", OLD, false));
    check(&["E1"], |script| {
        script.power("cp-0", OLD, false);
        script.power("cp-1", OLD, false);
    });
}

#[test]
fn e1_who_does_not_reach_the_others_does_not_count() {
    let cut_off = |script: &mut Script, node: &str| {
        script.put("troubles.sim.windlass.dev", node, json!({"record": {"cutOff": true}}));
    };
    check(&[], |script| cut_off(script, "cp-0"));
    check(&["E1"], |script| {
        cut_off(script, "cp-0");
        cut_off(script, "cp-1");
    });
}

/// A machine of the control plane is asked for.
fn asked(script: &mut Script, node: &str) {
    script.control_plane_machine(node, node, OLD, "0");
}

#[test]
fn e1_is_exempt_for_one_machine_that_joins_below_1_27_and_no_further() {
    // The machine is on, kubeadm is old enough, and there is one.
    let mut script = Script::running(1);
    asked(&mut script, "cp-1");
    script.power("cp-1", "v1.26.9", true);
    script.member("cp-1", false);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["E1".to_owned(), "E4".to_owned()]));

    check_with(1, &["E1", "E4"], |script| {
        asked(script, "cp-1");
        script.power("cp-1", "v1.27.0", true);
        script.member("cp-1", false);
    });
    check_with(1, &["E1", "E4"], |script| {
        asked(script, "cp-1");
        script.member("cp-1", false);
    });
    check_with(1, &["E1"], |script| {
        asked(script, "cp-1");
        script.power("cp-1", OLD, true);
        script.member("cp-1", false);
        script.power("cp-1", OLD, false);
    });
    check_with(1, &["C1", "C1", "E1", "E2", "E3", "E5"], |script| {
        for node in ["cp-1", "cp-2"] {
            asked(script, node);
            script.power(node, OLD, true);
            script.member(node, false);
        }
    });
    check_with(1, &["C2", "E1"], |script| {
        asked(script, "cp-1");
        script.power("cp-1", OLD, true);
        script.member("cp-1", false);
        script.power("cp-0", OLD, false);
    });
}

#[test]
fn e5_what_does_not_answer_leaves_etcd_first() {
    check_with(5, &["E5"], |script| {
        script.update(NEW, "Running");
        script.power("cp-0", OLD, false);
        script.remove(MEMBERS, "cp-1");
    });
    check(&["E2", "E5"], |script| {
        script.power("cp-0", OLD, false);
        asked(script, "cp-3");
        script.power("cp-3", OLD, true);
        script.member("cp-3", false);
    });
    check(&[], |script| {
        script.update(NEW, "Running");
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
        script.update(NEW, "Running");
        lead(script, "cp-0", true);
        script.remove(MEMBERS, "cp-0");
    });
    check(&[], |script| {
        script.update(NEW, "Running");
        lead(script, "cp-0", true);
        lead(script, "cp-0", false);
        lead(script, "cp-1", true);
        script.remove(MEMBERS, "cp-0");
    });
}

#[test]
fn e10_etcd_is_never_without_a_voter() {
    check_with(1, &["C2", "E10"], |script| script.remove(MEMBERS, "cp-0"));
    check(&[], |script| {
        script.update(NEW, "Running");
        script.remove(MEMBERS, "cp-0");
        script.remove(MEMBERS, "cp-1");
    });
    check(&["E1", "E10"], |script| {
        script.update(NEW, "Running");
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
fn e2_etcd_could_bear_it_if_a_new_member_never_started() {
    // With one of three away, the fourth could not be missed; and E5 says that the one that is away goes first.
    check(&["E2", "E5"], |script| {
        script.power("cp-0", OLD, false);
        asked(script, "cp-3");
        script.power("cp-3", OLD, true);
        script.member("cp-3", false);
    });
    // Two of three are away after this one has gone.
    check(&["C3", "E2"], |script| {
        script.power("cp-0", OLD, false);
        script.delete(MACHINES, "default/cp-1");
    });
    check_with(1, &[], |script| {
        asked(script, "cp-1");
        script.power("cp-1", OLD, true);
        script.member("cp-1", false);
    });
}

#[test]
fn e3_the_members_of_etcd_change_one_at_a_time() {
    let learner = json!({"learner": true, "started": true, "leader": false});
    check(&["E3"], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner);
        script.member_as("cp-4", &learner);
    });
    check(&["E3"], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner);
        script.remove(MEMBERS, "cp-0");
    });
    check(&[], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner);
        script.remove(MEMBERS, "cp-3");
    });
}

#[test]
fn e4_a_member_learns_before_it_counts() {
    let learner = |started: bool, leader: bool| json!({"learner": true, "started": started, "leader": leader});
    check(&["E4"], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner(true, false));
        script.member_as("cp-3", &learner(true, true));
    });
    check(&["E4"], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner(false, false));
        script.member("cp-3", false);
    });
    check(&[], |script| {
        script.update(NEW, "Running");
        script.member_as("cp-3", &learner(false, false));
        script.member("cp-3", true);
        script.remove(MEMBERS, "cp-3");
    });
}

#[test]
fn e4_is_exempt_below_1_27_and_no_further() {
    let joins_at_once = |version: &str| {
        let mut script = Script::running(3);
        let before = script.exempted();
        asked(&mut script, "cp-3");
        script.power("cp-3", version, true);
        script.member("cp-3", false);
        (script.violated(), script.exempted().split_off(before.len()))
    };
    assert_eq!(joins_at_once("v1.26.9"), (vec![], vec!["E4".to_owned()]));
    assert_eq!(joins_at_once("v1.27.0"), (vec!["E4".to_owned()], vec![]));
}

#[test]
fn e7_a_machine_leaves_etcd_before_it_goes() {
    let go = |script: &mut Script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
        script.join_control_plane("cp-0-1", NEW);
        script.delete(MACHINES, "default/cp-0");
    };
    check(&["E7"], |script| {
        go(script);
        script.power("cp-0", OLD, false);
    });
    check(&[], |script| {
        go(script);
        script.remove(MEMBERS, "cp-0");
        script.power("cp-0", OLD, false);
    });
    // One that fails is off before anybody decides anything.
    check(&[], |script| script.power("cp-0", OLD, false));
}

#[test]
fn e8_at_rest_etcd_is_made_of_the_machines_of_the_control_plane() {
    check(&["E8"], |script| {
        script.member_as("cp-9", &json!({"learner": true, "started": true, "leader": false}));
        script.member("cp-9", true);
        script.worker("w-1", OLD);
    });
    check(&["E8"], |script| script.remove(MEMBERS, "cp-0"));
    check(&[], |script| {
        script.update(NEW, "Running");
        script.remove(MEMBERS, "cp-0");
    });
}

#[test]
fn e9_on_a_machine_that_is_gone_nothing_can_start() {
    let joins = |script: &mut Script| {
        script.control_plane_machine("cp-3", "cp-3", OLD, "0");
        script.power("cp-3", OLD, true);
        script.member("cp-3", false);
    };
    check(&["E8", "E9", "O6"], |script| {
        joins(script);
        script.remove(MACHINES, "default/cp-3");
    });
    check(&["E8"], |script| {
        joins(script);
        script.power("cp-3", OLD, false);
        script.remove(MACHINES, "default/cp-3");
    });
    check(&[], |script| {
        joins(script);
        script.power("cp-3", OLD, false);
        script.remove(MEMBERS, "cp-3");
        script.remove(MACHINES, "default/cp-3");
    });
}

#[test]
fn e12_voters_are_odd_and_stay_where_they_are() {
    check(&["E12"], |script| script.wish(2, OLD, &Value::Null));
    check(&[], |script| script.wish(1, OLD, &Value::Null));
    check(&["E12"], |script| {
        script.kubeadm_config(OLD, &[]);
        script.edit("configmaps", "kube-system/kubeadm-config", |object| {
            object["data"]["ClusterConfiguration"] = "etcd:\n  external:\n    endpoints: []\n".into();
        });
    });
}

#[test]
fn e13_nothing_changes_while_etcd_raises_an_alarm() {
    let alarm = |script: &mut Script| {
        script.put("troubles.sim.windlass.dev", "cp-1", json!({"record": {"alarms": ["noSpace"]}}));
    };
    check(&["E13"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        alarm(script);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    });
    check(&[], |script| {
        alarm(script);
        script.worker("w-1", OLD);
    });
}
