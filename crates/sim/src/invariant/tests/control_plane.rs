//! C: how a control plane changes.

use serde_json::{Value, json};
use windlass_api::label;

use super::{MACHINES, MEMBERS, TKC, check, check_with};
use crate::timeline::script::{CLUSTER, NEW, OLD, Script, distribution};

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
        script.wish(5, OLD, &Value::Null);
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
        script.wish(5, OLD, &Value::Null);
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
fn c1_counts_what_cluster_api_makes() {
    let begin = |script: &mut Script| script.control_plane(3, "v1.31.0", Some("v1.30.0"));
    let made = |names: &[&str]| {
        let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
        begin(&mut script);
        for name in names {
            script.rolled_machine(name, "v1.31.0");
        }
        script.violated()
    };
    assert_eq!(made(&["cp-3"]), [""; 0]);
    assert_eq!(made(&["cp-3", "cp-4"]), ["C1", "C1"], "two at once, and two more than asked for");
}

#[test]
fn c2_one_machine_of_the_control_plane_is_always_whole() {
    check_with(1, &["C2"], |script| script.remove("pods", "kube-system/kube-scheduler-cp-0"));
    check_with(1, &["C2"], |script| {
        script.edit("pods", "kube-system/kube-controller-manager-cp-0", |pod| {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
        });
    });
    check(&[], |script| script.remove("pods", "kube-system/kube-scheduler-cp-0"));
}

#[test]
fn c3_cluster_api_removes_a_machine_only_when_there_are_enough_others() {
    let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
    script.delete(MACHINES, "default/cp-0");
    assert_eq!(script.violated(), ["C3"]);

    let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
    script.control_plane(3, "v1.30.1", Some("v1.30.0"));
    script.rolled_machine("cp-3", "v1.30.1");
    script.join_control_plane("cp-3", "v1.30.1");
    script.delete(MACHINES, "default/cp-0");
    assert_eq!(script.violated(), [""; 0]);

    // One that is not well is removed first.
    let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
    script.edit(MACHINES, "default/cp-0", remediated);
    script.delete(MACHINES, "default/cp-0");
    assert_eq!(script.violated(), [""; 0]);
}

/// Cluster API is to replace the machine, as it is not well.
fn remediated(machine: &mut Value) {
    machine["status"]["conditions"] = json!([{"type": "OwnerRemediated", "status": "False"}]);
}

#[test]
fn c4_one_update_at_a_time_and_its_id_stays() {
    let second = |script: &mut Script, id: &str, ordinal: u32| {
        script.update(NEW, "Running");
        let end = |version: &str| json!({"distribution": distribution(version), "kubernetes": version});
        let spec = json!({"cluster": "my-tkc", "ordinal": ordinal, "id": id, "from": end(OLD), "to": end(NEW)});
        script.put("clusterupdates.windlass.dev", &format!("default/my-tkc-{ordinal}"), json!({"spec": spec}));
    };
    check(&["C4"], |script| second(script, "2", 2));
    check(&["C4"], |script| second(script, "another", 1));
    check(&["C4"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.job(0, false);
        let labels = json!({label::CLUSTER_NAME.name: "my-tkc", label::CLUSTER_NAMESPACE.name: "default"});
        script.put("jobs.batch", "vmware-system-tkg/update-2", json!({"metadata": {"labels": labels}}));
    });
}

#[test]
fn c5_after_an_update_has_failed_nothing_is_tried() {
    check(&["C5"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.wish(3, NEW, &json!({"phase": "updateFailed"}));
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    });
    check(&[], |script| {
        script.wish(3, NEW, &json!({"phase": "updateFailed"}));
        script.worker("w-1", OLD);
    });
}

#[test]
fn c6_a_job_is_tried_four_times() {
    let begin = |script: &mut Script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.job(0, false);
    };
    check(&[], |script| {
        begin(script);
        script.job(4, false);
    });
    check(&["C6"], |script| {
        begin(script);
        script.job(5, false);
    });
}

#[test]
fn c7_an_update_does_not_change_its_target_on_the_way() {
    check(&["C7"], |script| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", "v1.17.5+vmware.1", "1");
    });
    let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
    for (name, version) in [("cp-3", "v1.30.1"), ("cp-4", "v1.30.2")] {
        script.control_plane(3, version, Some("v1.30.0"));
        script.rolled_machine(name, version);
        script.join_control_plane(name, version);
    }
    assert_eq!(script.violated(), ["C1", "C7"]);
}

#[test]
fn c8_a_machine_that_is_not_well_is_replaced_alone() {
    let mut script = Script::rolled_by_cluster_api(3, "v1.30.0");
    script.rolled_machine("cp-3", "v1.30.0");
    script.edit(MACHINES, "default/cp-0", remediated);
    script.delete(MACHINES, "default/cp-0");
    assert_eq!(script.violated(), ["C1", "C8"]);

    let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
    script.edit(MACHINES, "default/cp-0", remediated);
    script.delete(MACHINES, "default/cp-0");
    assert_eq!(script.violated(), ["C8"]);
}

#[test]
fn c9_who_joins_finds_the_certificates() {
    check(&["O1", "C9"], |script| {
        script.remove("secrets", "default/my-tkc-ca");
        script.worker("w-1", OLD);
        script.power("w-1", OLD, true);
        script.node("w-1", OLD, false, false);
    });
}

#[test]
fn c10_a_name_stands_for_one_replacement() {
    check(&["C10"], |script| script.control_plane_machine("cp-0", "cp-1", OLD, "0"));
}

#[test]
fn c11_the_record_of_kubeadm_follows_what_was_decided_and_forgets_who_is_gone() {
    check(&["C11"], |script| script.kubeadm_config(NEW, &[]));
    check(&[], |script| {
        script.update(NEW, "Running");
        script.kubeadm_config(NEW, &[]);
    });
    let go = |script: &mut Script, named: &[&str]| {
        script.update(NEW, "Running");
        script.addons(NEW);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
        script.join_control_plane("cp-0-1", NEW);
        script.retire("cp-0", OLD, true);
        script.kubeadm_config(NEW, named);
        script.control_plane_machine("cp-1-1", "cp-1", NEW, "1");
    };
    check(&["C11"], |script| go(script, &["cp-0", "cp-0-1"]));
    check(&[], |script| go(script, &["cp-0-1"]));
}
