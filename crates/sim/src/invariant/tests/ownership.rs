//! O: who owns what.

use serde_json::{Value, json};
use windlass_api::label;

use super::{MACHINES, TKC, check};
use crate::timeline::script::{CLUSTER, OLD, Script};

#[test]
fn o2_certificates_live_as_long_as_the_cluster() {
    check(&["O2", "O5"], |script| script.secret("ca", "uid-of-another"));
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
fn o1_the_secrets_are_there_as_long_as_the_cluster() {
    check(&["O1"], |script| script.remove("secrets", "default/my-tkc-etcd"));
    check(&["O1"], |script| script.remove("secrets", "default/my-tkc-kubeconfig"));
    check(&[], |script| {
        script.delete(TKC, CLUSTER);
        script.remove("secrets", "default/my-tkc-ca");
    });
}

#[test]
fn o2_a_control_plane_that_cluster_api_rolls_may_own_certificates() {
    let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
    assert_eq!(script.violated(), [""; 0]);
    script.delete("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "default/my-tkc-control-plane");
    assert_eq!(script.violated(), ["O2"; 4]);
}

#[test]
fn o3_garbage_collection_reaches_no_certificate_before_the_cluster_goes() {
    let owned_by = |uids: &[&str]| {
        let owners: Vec<Value> = uids.iter().map(|uid| json!({"kind": "Thing", "name": "x", "uid": uid})).collect();
        let mut script = Script::rolled_by_cluster_api(1, "v1.30.0");
        script.edit("kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "default/my-tkc-control-plane", |object| {
            object["metadata"]["ownerReferences"] = json!(owners);
        });
        script.worker("w-1", "v1.30.0");
        script.violated()
    };
    assert_eq!(owned_by(&["uid-1"]), [""; 0]);
    assert_eq!(owned_by(&["uid-1", "uid-of-a-machine"]), [""; 0]);
    assert_eq!(owned_by(&["uid-of-a-machine"]), ["O3"; 4]);
}

#[test]
fn o4_the_authorities_of_a_cluster_stay_what_they_are() {
    let change = |script: &mut Script| {
        script.edit("secrets", "default/my-tkc-ca", |object| object["data"]["tls.key"] = "another".into());
    };
    check(&["O4"], change);
    // Nor by way of a new Secret.
    check(&["O1", "O4"], |script| {
        script.remove("secrets", "default/my-tkc-ca");
        let metadata = json!({"labels": {label::CLUSTER_NAME.name: "my-tkc"}, "ownerReferences": [{"name": "my-tkc", "uid": "uid-1"}]});
        script.put("secrets", "default/my-tkc-ca", json!({"metadata": metadata, "data": {"tls.key": "another"}}));
    });
}

#[test]
fn o5_a_certificate_changes_hands_without_being_dropped() {
    check(&["O2", "O5"], |script| script.secret("ca", "uid-of-another"));
    check(&[], |script| {
        let both = json!([{"name": "my-tkc", "uid": "uid-1"}, {"name": "cp-0", "uid": "uid-of-another"}]);
        script.edit("secrets", "default/my-tkc-ca", |object| object["metadata"]["ownerReferences"] = both);
        script.secret("ca", "uid-1");
    });
}

#[test]
fn o6_no_machine_runs_that_nobody_knows() {
    check(&["O6"], |script| script.power("w-1", OLD, true));
    check(&["O6"], |script| {
        script.worker("w-1", OLD);
        script.edit(MACHINES, "default/w-1", |object| object["metadata"]["finalizers"] = Value::Null);
        script.power("w-1", OLD, true);
    });
    check(&["O6"], |script| script.remove(MACHINES, "default/w-0"));
}
