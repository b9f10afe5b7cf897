//! What `kubeadm join` asks the API for before it does anything, and what it may ask for.

use windlass_api::version::facts;
use windlass_apiserver::store::{Key, Store};

use super::super::record::Machine;
use super::super::write::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, ROLE_BINDINGS, ROLES};
use super::leaves::{CLUSTER_INFO, GET_NODES, KUBE_PUBLIC, NODES_KUBEADM_CONFIG};
use super::{KUBE_SYSTEM, KUBEADM_CONFIG};

/// What a machine that joins does not find, or is not allowed to read, in the words of its kubeadm. Whether a role says what it
/// should is not looked at, only whether it is there.
pub(super) fn missing(store: &Store, machine: &Machine) -> Option<String> {
    let kubelet_config = facts::kubelet_config_name(&machine.kubelet);
    let there = |resource: &str, namespace: &str, name: &str| store.get(resource, &Key::new(namespace, name)).is_some();
    for (namespace, name) in
        [(KUBE_PUBLIC, CLUSTER_INFO), (KUBE_SYSTEM, KUBEADM_CONFIG), (KUBE_SYSTEM, kubelet_config.as_str())]
    {
        if !there(CONFIG_MAPS, namespace, name) {
            return Some(format!("configmaps \"{name}\" not found in {namespace}"));
        }
    }
    let may_read = |role: &str| there(ROLES, KUBE_SYSTEM, role) && there(ROLE_BINDINGS, KUBE_SYSTEM, role);
    for (role, config_map) in
        [(NODES_KUBEADM_CONFIG, KUBEADM_CONFIG), (&*format!("kubeadm:{kubelet_config}"), kubelet_config.as_str())]
    {
        if !may_read(role) {
            return Some(format!("configmaps \"{config_map}\" is forbidden: there is no Role {role} that is bound"));
        }
    }
    let may_get_nodes = || there(CLUSTER_ROLES, "", GET_NODES) && there(CLUSTER_ROLE_BINDINGS, "", GET_NODES);
    if facts::join_gets_nodes(&machine.kubelet) && !may_get_nodes() {
        return Some(format!(
            "nodes \"{}\" is forbidden: there is no ClusterRole {GET_NODES} that is bound",
            machine.name
        ));
    }
    None
}
