//! The definitions of the kinds that we are the controller of, as they are in `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::crd::v1::CustomResourceExt;

use super::cluster_update::ClusterUpdate;
use super::tanzu::TanzuKubernetesCluster;
use super::wcp::{WCPCluster, WCPMachine, WCPMachineTemplate};

/// All of them, sorted by name.
pub fn ours() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        ClusterUpdate::crd(),
        TanzuKubernetesCluster::crd(),
        WCPCluster::crd(),
        WCPMachine::crd(),
        WCPMachineTemplate::crd(),
    ];
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    all
}
