//! D: add-ons first, workers last.

use serde_json::{Value, json};
use windlass_api::label;

use super::{MACHINES, MEMBERS, TKC, check, check_with};
use crate::actor::{Actor, acting_now};
use crate::timeline::script::{CLUSTER, NEW, OLD, Script};

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
fn d4_what_is_paused_is_left_alone() {
    let paused = |script: &mut Script, paused: bool| {
        script.edit("clusters.cluster.x-k8s.io", CLUSTER, |cluster| cluster["spec"]["paused"] = paused.into());
    };
    let begun = |script: &mut Script| {
        script.update(NEW, "Running");
        script.addons(NEW);
    };
    let job = |script: &mut Script| acting_now(Actor::Windlass, || script.job(0, false));
    let machine = |script: &mut Script| {
        acting_now(Actor::Upgrader, || script.control_plane_machine("cp-0-1", "cp-0", NEW, "1"));
    };
    check(&["D4", "D4"], |script| {
        paused(script, true);
        begun(script);
        job(script);
        machine(script);
    });
    check(&["D4"], |script| {
        script.edit(TKC, CLUSTER, |wish| wish["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""}));
        begun(script);
        job(script);
    });
    // It was under way, or is somebody else's doing, or the pause is over.
    check(&[], |script| {
        begun(script);
        paused(script, true);
        job(script);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    });
    check(&[], |script| {
        paused(script, true);
        begun(script);
        paused(script, false);
        job(script);
        machine(script);
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
fn d1_and_d2_ask_nothing_of_clusters_that_are_not_ours() {
    let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
    script.control_plane(1, "v1.31.0", Some("v1.30.0"));
    script.pool("v1.31.0");
    script.rolled_machine("cp-1", "v1.31.0");
    assert_eq!(script.violated(), [""; 0]);
    // A worker that is newer is one wherever it comes from.
    script.worker("w-1", "v1.31.0");
    assert_eq!(script.violated(), ["D2", "V9"]);
}

#[test]
fn d6_no_pod_of_an_add_on_goes_before_another_has_come_nor_to_where_it_has_no_image() {
    check(&["D6"], |script| {
        script.addon("coredns", NEW);
        script.edit("daemonsets.apps", "kube-system/coredns-v1.17.4", |object| {
            object["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
            object["metadata"]["generation"] = 2.into();
        });
    });
    let deployment = |unavailable: Value| {
        let strategy =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": unavailable}});
        let metadata = json!({"generation": 1, "labels": {label::ADDON.name: "dns"}});
        json!({"metadata": metadata, "spec": {"strategy": strategy}})
    };
    check(&[], |script| script.put("deployments.apps", "kube-system/dns", deployment(json!(0))));
    check(&["D6"], |script| script.put("deployments.apps", "kube-system/dns", deployment(json!("25%"))));
    let short = json!([{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
    check(&["D6"], |script| {
        script.bound_pod("dns", "w-0", OLD);
        script.edit("pods", "default/dns", |pod| pod["status"]["containerStatuses"] = short.clone());
    });
    // What people run has its images elsewhere, or not.
    check(&[], |script| {
        script.pod("web", "w-0");
        script.edit("pods", "default/web", |pod| pod["status"]["containerStatuses"] = short.clone());
    });
}

#[test]
fn d7_what_is_bound_to_a_version_runs_on_nodes_of_that_version() {
    check(&[], |script| script.bound_pod("dns", "w-0", OLD));
    check(&["D7"], |script| script.bound_pod("dns", "w-0", NEW));
}

#[test]
fn d8_an_add_on_that_fails_holds_up_the_control_plane_and_nothing_else() {
    let fails = |script: &mut Script| {
        script.update(NEW, "Running");
        let addons = json!({"csi": {"name": "pvcsi", "status": "error"}});
        script.wish(3, OLD, &json!({"phase": "updating", "addons": addons}));
    };
    check(&["D8"], |script| {
        script.addons(NEW);
        fails(script);
        script.job(0, false);
    });
    check(&["D8"], |script| {
        script.addons(NEW);
        fails(script);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    });
    // It was applied when the Job was created, and cannot be reached since: the machine is none of that.
    let begins = |script: &mut Script, pvcsi: &str| {
        script.addons(NEW);
        script.update(NEW, "Running");
        let addons = json!({"csi": {"name": "pvcsi", "status": pvcsi}});
        script.wish(3, OLD, &json!({"phase": "updating", "addons": addons}));
        script.job(0, false);
        fails(script);
        script.job(1, false);
        script.control_plane_machine("cp-0-1", "cp-0", NEW, "1");
    };
    check(&[], |script| begins(script, "applied"));
    check(&["D8"], |script| begins(script, "pending"));
    check(&["D8"], |script| {
        script.addon("coredns", NEW);
        fails(script);
        script.update(NEW, "Failed");
    });
    check(&[], |script| {
        script.addons(NEW);
        fails(script);
        script.update(NEW, "Failed");
    });
}
