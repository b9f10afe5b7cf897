//! A machine of the control plane: what it is told, what it is made from, and the Machine that joins both.

use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::cluster_api::{Bootstrap, MachineSpec};
use windlass_api::kind::{ContractReference, bootstrap, wcp};
use windlass_api::name::Uid;

use super::{Scope, bootstrap_api_version, cluster_api_version, infrastructure_api_version, kubeadm};

/// What a machine does when it first boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It begins a cluster, with an empty etcd.
    Init,
    /// It joins the cluster that there is.
    Join,
}

/// The three objects of the control-plane machine with this number, in the order in which they are to be created.
pub fn control_plane(scope: &Scope<'_>, ordinal: u32, start: Start, cluster: &Uid) -> [Value; 3] {
    let name = scope.control_plane_name(ordinal);
    let mut metadata = scope.metadata(name.as_str(), &scope.control_plane_labels(), cluster);
    let (key, base) = annotation::MACHINE_NAME_BASE.entry(&scope.control_plane_base(ordinal));
    metadata["annotations"] = json!({ key: base });

    let reference = |group: &str, kind: &str| ContractReference {
        api_group: group.to_owned(),
        kind: kind.to_owned(),
        name: name.to_string(),
    };
    let machine = MachineSpec {
        cluster_name: scope.target.cluster.name.to_string(),
        version: Some(scope.target.release.kubernetes.to_string()),
        bootstrap: Bootstrap { config_ref: Some(reference(bootstrap::GROUP, "KubeadmConfig")), data_secret_name: None },
        infrastructure_ref: reference(wcp::GROUP, "WCPMachine"),
        ..MachineSpec::default()
    };
    [
        json!({
            "apiVersion": bootstrap_api_version(),
            "kind": "KubeadmConfig",
            "metadata": metadata,
            "spec": match start {
                Start::Init => kubeadm::init(scope),
                Start::Join => kubeadm::join_control_plane(scope),
            },
        }),
        json!({
            "apiVersion": infrastructure_api_version(),
            "kind": "WCPMachine",
            "metadata": metadata,
            "spec": scope.infrastructure(&scope.target.control_plane),
        }),
        json!({
            "apiVersion": cluster_api_version(),
            "kind": "Machine",
            "metadata": metadata,
            "spec": machine,
        }),
    ]
}
