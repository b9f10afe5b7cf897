//! V: which versions fit.

use serde_json::{Value, json};

use super::{check, check_with};
use crate::timeline::script::{NEW, OLD, Script};

#[test]
fn v1_no_kubelet_is_newer_than_an_api_server() {
    check(&["V1"], |script| {
        script.worker("w-1", OLD);
        script.power("w-1", NEW, true);
        script.node("w-1", NEW, false, false);
    });
    check(&[], |script| script.node("w-1", NEW, false, false));
}

#[test]
fn v1_is_exempt_for_the_new_control_plane_machine_of_an_update_that_is_not_over_and_no_further() {
    let join = |script: &mut Script, version: &str, control_plane| {
        script.control_plane_machine("cp-0-1", "cp-0", OLD, "0");
        script.power("cp-0-1", version, true);
        script.node("cp-0-1", version, control_plane, false);
    };
    let mut script = Script::running(1);
    script.update(NEW, "Running");
    join(&mut script, NEW, true);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["V1".to_owned()]));
    // What an update that gave up has made stays until somebody lets it go on. When it is over, so is the exception.
    script.update(NEW, "Failed");
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["V1".to_owned()]));
    script.update(NEW, "Succeeded");
    assert_eq!(script.violated(), ["V1"]);

    check_with(1, &["V1"], |script| join(script, NEW, true));
    // An update of before, which gave up, is no reason for a machine of another version.
    check_with(1, &["V1"], |script| {
        script.update("v1.16.9+vmware.1", "Failed");
        join(script, NEW, true);
    });
    check_with(1, &["V1"], |script| {
        script.update(NEW, "Running");
        script.worker("w-1", OLD);
        script.power("w-1", NEW, true);
        script.node("w-1", NEW, false, false);
    });
    // The label of a node may come late; its Machine says what it is for.
    check_with(1, &[], |script| {
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
fn v5_is_exempt_on_the_new_control_plane_machine_of_an_update_that_is_not_over_and_no_further() {
    let mut script = Script::running(1);
    script.update(NEW, "Running");
    script.component("kube-proxy", "cp-0", NEW);
    assert_eq!((script.violated(), script.exempted()), (vec![], vec!["V5".to_owned()]));
    script.update(NEW, "Failed");
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
    let raised = |to: &str| {
        let mut script = Script::new();
        script.power("cp-0", OLD, true);
        script.component("kube-apiserver", "cp-0", OLD);
        script.remove("pods", "kube-system/kube-apiserver-cp-0");
        script.component("kube-apiserver", "cp-0", to);
        script.violated()
    };
    assert_eq!(raised("v1.17.0"), [""; 0]);
    assert_eq!(raised("v1.18.0"), ["V6"]);
}

#[test]
fn v2_no_kubelet_is_much_older_than_an_api_server() {
    let with_kubelet = |version: &str| {
        let mut script = Script::new();
        script.power("cp-0", "v1.30.0", true);
        script.component("kube-apiserver", "cp-0", "v1.30.0");
        script.power("w-0", version, true);
        script.node("w-0", version, false, false);
        script.violated()
    };
    assert_eq!(with_kubelet("v1.27.0"), [""; 0]);
    assert_eq!(with_kubelet("v1.26.0"), ["V2"]);
}

#[test]
fn v4_what_runs_beside_an_api_server_fits_to_it() {
    let with = |program: &str, version: &str| {
        let mut script = Script::new();
        script.power("cp-0", "v1.30.0", true);
        script.component("kube-apiserver", "cp-0", "v1.30.0");
        script.component(program, "cp-0", version);
        script.violated()
    };
    for program in ["kube-controller-manager", "kube-scheduler"] {
        assert_eq!(with(program, "v1.29.0"), [""; 0]);
        assert_eq!(with(program, "v1.31.0"), ["V4"]);
        assert_eq!(with(program, "v1.28.0"), ["V4"]);
    }
}

#[test]
fn v4_is_exempt_before_1_19_1_while_a_control_plane_is_rolled_and_no_further() {
    let roll = |from: &str, to: &str, running: bool| {
        let mut script = Script::rolled_by_cluster_api(1, from);
        if running {
            script.control_plane(1, to, Some(from));
        }
        script.power("cp-1", to, true);
        script.component("kube-apiserver", "cp-1", to);
        script.component("kube-scheduler", "cp-1", to);
        let of = |ids: Vec<String>| ids.into_iter().filter(|id| id == "V4").count();
        (of(script.violated()), of(script.exempted()))
    };
    assert_eq!(roll("v1.18.0", "v1.19.0", true), (0, 1));
    assert_eq!(roll("v1.18.0", "v1.19.0", false), (1, 0), "nobody asked for it");
    // The one beside it is of its own version, and it talks to no other.
    assert_eq!(roll("v1.18.0", "v1.19.1", true), (0, 0));
    assert_eq!(roll("v1.19.16", "v1.20.0", true), (0, 0));
    // The new one is too new for the old server, and the two old ones too old for the new server.
    assert_eq!(roll("v1.17.0", "v1.19.0", true), (3, 0));
}

#[test]
fn v4_is_exempt_until_the_update_is_over_that_brought_the_machine() {
    let mut script = Script::running(1);
    script.update(NEW, "Running");
    script.power("cp-0-1", NEW, true);
    script.component("kube-apiserver", "cp-0-1", NEW);
    script.component("kube-scheduler", "cp-0-1", NEW);
    let of = |ids: Vec<String>| ids.into_iter().filter(|id| id == "V4").count();
    let before = of(script.exempted());
    script.update(NEW, "Failed");
    assert!(before > 0 && of(script.violated()) == 0, "{:?}", script.violated());
    script.update(NEW, "Succeeded");
    assert_eq!(of(script.violated()), before, "it is as it was, without the exception");
}

#[test]
fn v4_is_exempt_at_1_19_0_and_at_1_19_1_it_is_not() {
    let beside_an_older_server = |to: &str| {
        let mut script = Script::rolled_by_cluster_api(1, "v1.18.0");
        script.control_plane(1, to, Some("v1.18.0"));
        script.power("cp-1", to, true);
        script.component("kube-apiserver", "cp-1", "v1.18.0");
        script.component("kube-scheduler", "cp-1", to);
        let of = |ids: Vec<String>| ids.into_iter().filter(|id| id == "V4").count();
        (of(script.violated()), of(script.exempted()))
    };
    assert_eq!(beside_an_older_server("v1.19.0+vmware.1"), (0, 1));
    assert_eq!(beside_an_older_server("v1.19.1+vmware.1"), (1, 0));
}

#[test]
fn v5_kube_proxy_and_the_kubelet_beside_it_are_not_far_apart() {
    let mut script = Script::new();
    script.power("cp-0", "v1.30.0", true);
    script.component("kube-apiserver", "cp-0", "v1.30.0");
    script.power("w-0", "v1.30.0", true);
    script.component("kube-proxy", "w-0", "v1.27.0");
    script.node("w-0", "v1.30.0", false, false);
    assert_eq!(script.violated(), [""; 0]);
    script.node("w-0", "v1.31.0", false, false);
    assert_eq!(script.violated(), ["V1", "V5"]);
}

#[test]
fn v7_a_control_plane_does_not_go_where_its_nodes_cannot_follow() {
    let raised = |to: &str| {
        let mut script = Script::rolled_by_cluster_api(3, "v1.27.0");
        script.control_plane(3, to, Some("v1.27.0"));
        script.rolled_machine("cp-3", to);
        script.violated()
    };
    assert_eq!(raised("v1.30.0"), [""; 0]);
    // Four nodes, each with a kubelet and a kube-proxy.
    assert_eq!(raised("v1.31.0"), ["V7"; 8]);
}

#[test]
fn v8_versions_go_up() {
    let mut script = Script::rolled_by_cluster_api(3, "v1.30.2");
    script.rolled_machine("cp-3", "v1.30.1");
    // The worker that is there is newer than it, too.
    assert_eq!(script.violated(), ["D2", "V8"]);
}

#[test]
fn v9_cluster_api_makes_workers_for_a_control_plane_of_their_minor_that_is_at_rest() {
    let worker = |at: &str, reached: &str| {
        let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
        script.control_plane(1, "v1.30.0", Some(reached));
        script.worker("w-1", at);
        script.violated()
    };
    assert_eq!(worker("v1.30.0", "v1.30.0"), [""; 0]);
    assert_eq!(worker("v1.29.0", "v1.30.0"), ["V9"]);
    assert_eq!(worker("v1.30.0", "v1.29.0"), ["V9"]);
    // Where we roll it ourselves, workers of the old version may come until the pool is switched.
    check(&[], |script| {
        script.upgrade_control_plane(3);
        script.worker("w-1", OLD);
    });
}

#[test]
fn v10_etcd_goes_from_minor_to_minor() {
    let upgrade = |from: &str, to: &str| {
        let mut script = Script::new();
        let member = |version: &str| json!({"learner": false, "started": true, "leader": false, "version": version});
        for node in ["cp-0", "cp-1"] {
            script.power(node, "v1.30.0", true);
        }
        script.member_as("cp-0", &member(from));
        script.member_as("cp-1", &json!({"learner": true, "started": true, "leader": false}));
        script.member_as("cp-1", &member(to));
        script.violated()
    };
    assert_eq!(upgrade("v3.4.3", "v3.5.0"), [""; 0]);
    assert_eq!(upgrade("v3.5.31", "v3.6.0"), ["V10"]);
    assert_eq!(upgrade("v3.5.32", "v3.6.0"), [""; 0]);
    // It skips a minor, and is two apart from the other.
    assert_eq!(upgrade("v3.4.3", "v3.6.0"), ["V10", "V10"]);
}

#[test]
fn v11_no_object_is_left_of_a_kind_that_is_gone() {
    let raised = |to: &str| {
        let mut script = Script::rolled_by_cluster_api(1, "v1.24.0");
        script.put("podsecuritypolicies.policy", "restricted", Value::Null);
        script.control_plane(1, to, Some("v1.24.0"));
        script.rolled_machine("cp-1", to);
        script.violated()
    };
    assert_eq!(raised("v1.24.9"), [""; 0]);
    assert_eq!(raised("v1.25.0"), ["V11"]);
}

#[test]
fn v12_what_is_stored_is_served() {
    let definition = |served: bool| {
        let versions = json!([{"name": "v1", "served": true}, {"name": "v1beta1", "served": served}]);
        json!({"spec": {"versions": versions}, "status": {"storedVersions": ["v1beta1", "v1"]}})
    };
    let resource = "customresourcedefinitions.apiextensions.k8s.io";
    check(&[], |script| script.put(resource, "things.example.com", definition(true)));
    check(&["V12"], |script| script.put(resource, "things.example.com", definition(false)));
}
