//! Whether a cluster fits its class.

use serde_json::{Value, json};

use crate::creation::misfit;

/// What does not fit in a topology with this, of a class with a variable `size` and one `image` that must be said.
#[track_caller]
fn check(more: &Value, external: bool, wanted: Option<&str>) {
    let mut patches = json!([]);
    if external {
        patches = json!([{"name": "x", "external": {"generatePatchesExtension": "x"}}]);
    }
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "small"},
        "spec": {
            "variables": [{"name": "TKR_DATA", "required": true}, {"name": "size"}, {"name": "image", "required": true}],
            "workers": {"machineDeployments": [{"class": "tkg-worker"}]}, "patches": patches,
        },
    });
    let mut cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wl"},
        "spec": {"topology": {"classRef": {"name": "small"}, "version": "v1", "variables": [{"name": "image", "value": "a"}],
            "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "md-0"}]}}},
    });
    more.as_object().unwrap().iter().for_each(|(key, value)| cluster["spec"]["topology"][key] = value.clone());
    let found = misfit(&serde_json::from_value(cluster).unwrap(), &serde_json::from_value(class).unwrap());
    assert_eq!(found.map(|misfit| misfit.to_string()).as_deref(), wanted);
}

#[test]
fn what_does_not_fit_its_class_is_named_with_what_would() {
    check(&json!({}), false, None);
    let colour = json!({"name": "colour", "value": "red"});
    let image = json!({"name": "image", "value": "a"});
    let said = "spec.topology.variables: its class has no variable colour; it has image, size";
    check(&json!({"variables": [colour, image]}), false, Some(said));
    check(&json!({"variables": [colour, image]}), true, None);
    let said = "an override in spec.topology: its class has no variable colour; it has image, size";
    check(&json!({"controlPlane": {"variables": {"overrides": [colour]}}}), false, Some(said));
    check(&json!({"variables": []}), false, Some("spec.topology.variables: its class needs the variable image"));
    let said = "spec.topology.controlPlane.replicas: 2 cannot be: etcd needs an odd number of machines to lose one";
    check(&json!({"controlPlane": {"replicas": 2}}), false, Some(said));
    let said = "spec.topology.workers: pool md-0 is of gpu, and its class has only tkg-worker";
    check(&json!({"workers": {"machineDeployments": [{"class": "gpu", "name": "md-0"}]}}), false, Some(said));
}
