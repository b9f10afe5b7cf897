//! W: how machines are emptied, and pools rolled.

use serde_json::{Value, json};

use super::{MACHINES, check};
use crate::actor::{Actor, acting_now};
use crate::timeline::script::{OLD, Script};

/// The Machine of the worker is to go, its node is closed, and there is a pod on it.
fn leaving(script: &mut Script) {
    script.pod("web", "w-0");
    script.delete(MACHINES, "default/w-0");
    script.edit("nodes", "w-0", |node| node["spec"]["unschedulable"] = true.into());
}

fn limits(script: &mut Script, limits: Value) {
    script.edit(MACHINES, "default/w-0", |machine| machine["spec"]["deletion"] = limits);
}

#[test]
fn w1_pods_leave_a_machine_by_being_evicted() {
    let kill = |script: &mut Script| acting_now(Actor::Machine, || script.delete("pods", "default/web"));
    check(&["W1"], |script| {
        leaving(script);
        kill(script);
    });
    check(&[], |script| {
        leaving(script);
        script.evict("web");
        kill(script);
    });
    // Who made it may take it away; so may a person.
    check(&[], |script| {
        leaving(script);
        acting_now(Actor::Kubernetes, || script.delete("pods", "default/web"));
    });
    let late = |after_seconds| {
        let mut script = Script::running(1);
        limits(&mut script, json!({"nodeDrainTimeoutSeconds": 300}));
        leaving(&mut script);
        script.wait(after_seconds);
        kill(&mut script);
        script.violated()
    };
    assert_eq!(late(200), ["W1"]);
    assert_eq!(late(300), [""; 0]);
}

#[test]
fn w2_no_budget_of_pods_is_overdrawn() {
    check(&["W2"], |script| {
        leaving(script);
        script.budget(0, &[]);
        script.evict("web");
    });
    // It allowed one, wrote down which, and allows none now.
    check(&[], |script| {
        leaving(script);
        script.budget(0, &["web"]);
        script.evict("web");
    });
    check(&[], |script| {
        leaving(script);
        script.budget(0, &[]);
        script.edit("poddisruptionbudgets.policy", "default/web", |budget| {
            budget["spec"]["selector"] =
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]});
        });
        script.evict("web");
    });
}

#[test]
fn w3_a_pool_that_is_rolled_has_neither_too_many_machines_nor_too_few() {
    check(&["W3"], |script| {
        script.worker("w-1", OLD);
        script.worker("w-2", OLD);
    });
    let remove = |script: &mut Script, actor| acting_now(actor, || script.delete(MACHINES, "default/w-0"));
    check(&["W3"], |script| remove(script, Actor::MachineSet));
    check(&[], |script| remove(script, Actor::Person));
    check(&[], |script| {
        script.worker("w-1", OLD);
        script.join("w-1", OLD);
        remove(script, Actor::MachineSet);
    });
    check(&[], |script| {
        let rolling = json!({"maxSurge": 0, "maxUnavailable": "100%"});
        script.edit("machinedeployments.cluster.x-k8s.io", "default/pool", |pool| {
            pool["spec"]["rollout"] = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
        });
        remove(script, Actor::MachineSet);
    });
}

#[test]
fn w4_a_node_is_closed_before_it_is_emptied() {
    check(&["W4"], |script| {
        script.pod("web", "w-0");
        script.delete(MACHINES, "default/w-0");
        script.evict("web");
    });
    check(&["W4"], |script| {
        leaving(script);
        script.edit("pods", "default/web", |pod| {
            pod["metadata"]["ownerReferences"] = json!([{"kind": "DaemonSet", "name": "web", "uid": "1"}]);
        });
        script.evict("web");
    });
    // Where nothing is to go, people may evict what they like.
    check(&[], |script| {
        script.pod("web", "w-0");
        script.evict("web");
    });
    // A Node that somebody deleted in the midst of it takes no pods.
    check(&[], |script| {
        leaving(script);
        script.remove("nodes", "w-0");
        script.evict("web");
    });
}

#[test]
fn w5_a_machine_goes_after_its_volumes() {
    let go = |after_seconds, attached: bool| {
        let mut script = Script::running(1);
        limits(&mut script, json!({"nodeVolumeDetachTimeoutSeconds": 60}));
        script.put("volumeattachments.storage.k8s.io", "disk", json!({"spec": {"nodeName": "w-0"}}));
        script.delete(MACHINES, "default/w-0");
        if !attached {
            script.remove("volumeattachments.storage.k8s.io", "disk");
        }
        script.wait(after_seconds);
        script.power("w-0", OLD, false);
        script.violated()
    };
    assert_eq!(go(0, true), ["W5"]);
    assert_eq!(go(0, false), [""; 0]);
    assert_eq!(go(60, true), [""; 0]);
}

#[test]
fn w6_who_waits_for_a_budget_says_so() {
    let wait = |after_seconds, says: bool| {
        let mut script = Script::running(1);
        leaving(&mut script);
        script.budget(0, &[]);
        if says {
            let condition = json!({"type": "Deleting", "status": "True", "reason": "DrainingNode", "message": "1 pod"});
            script.edit(MACHINES, "default/w-0", |machine| machine["status"]["conditions"] = json!([condition]));
        }
        script.wait(after_seconds);
        script.worker("w-1", OLD);
        script.violated()
    };
    assert_eq!(wait(30, false), [""; 0]);
    assert_eq!(wait(90, false), ["W6"]);
    assert_eq!(wait(90, true), [""; 0]);
}

#[test]
fn w7_a_node_is_deleted_with_its_machine_and_with_no_other() {
    check(&["W7"], |script| script.remove("nodes", "w-0"));
    check(&[], |script| {
        script.delete(MACHINES, "default/w-0");
        script.remove("nodes", "w-0");
    });
    check(&["W7"], |script| {
        script.edit(MACHINES, "default/w-0", |machine| machine["spec"]["providerID"] = "vm://1".into());
        script.edit("nodes", "w-0", |node| node["spec"]["providerID"] = "vm://2".into());
        script.delete(MACHINES, "default/w-0");
        script.remove("nodes", "w-0");
    });
    // What is lost is cleared away.
    check(&[], |script| {
        script.power("w-0", OLD, false);
        script.remove("nodes", "w-0");
    });
}
