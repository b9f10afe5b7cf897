//! The packages of a cluster: what it should have, what is written, and when machines may follow.

mod abort;
mod approval;
mod bring;
mod gate;
mod merge;
mod removal;
mod settle;
mod validate;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{BootstrapPackages, ClusterBootstrap, LocalReference};
use windlass_plan::bootstrap::Subject;

pub const OLD: &str = "v1.24.9---vmware.1-tkg.1";
pub const NEW: &str = "v1.25.7---vmware.2-tkg.1";

pub fn yaml<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap()
}

/// A cluster of a release, changed as a test wants it.
pub fn cluster(change: impl FnOnce(&mut Value)) -> Subject {
    let mut cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "name": "wl", "namespace": "dev", "uid": "cluster-uid", "resourceVersion": "7",
            "labels": {"run.tanzu.vmware.com/tkr": NEW}, "annotations": {}, "finalizers": [],
        },
        "spec": {},
        "status": {"initialization": {"controlPlaneInitialized": true}},
    });
    change(&mut cluster);
    let cluster: Cluster = serde_json::from_value(cluster).unwrap();
    Subject::of(&cluster).unwrap().unwrap()
}

pub fn packages(text: &str) -> BootstrapPackages {
    yaml(text)
}

pub fn bootstrap(packages: &str, change: impl FnOnce(&mut Value)) -> ClusterBootstrap {
    let mut bootstrap = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap",
        "metadata": {
            "name": "wl", "namespace": "dev", "uid": "bootstrap-uid", "resourceVersion": "9",
            "annotations": {}, "finalizers": [],
        },
        "spec": yaml::<Value>(packages),
        "status": {"resolvedTKR": NEW, "conditions": []},
    });
    change(&mut bootstrap);
    serde_json::from_value(bootstrap).unwrap()
}

pub fn named(names: &[&str]) -> Vec<LocalReference> {
    names.iter().map(|name| LocalReference { name: (*name).to_owned() }).collect()
}
