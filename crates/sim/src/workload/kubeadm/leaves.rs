//! What `kubeadm init` leaves behind for those who join: the configuration of kubelets, the way to the cluster, and who may
//! read them.

use serde_json::{Value, json};
use windlass_api::version::{KubernetesVersion, facts};
use windlass_apiserver::store::Key;

use super::super::Workload;
use super::super::record::Machine;
use super::super::write::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, ROLE_BINDINGS, ROLES};
use super::{KUBE_SYSTEM, KUBEADM_CONFIG, yaml};

pub(super) const KUBE_PUBLIC: &str = "kube-public";
pub(super) const CLUSTER_INFO: &str = "cluster-info";
pub(super) const NODES_KUBEADM_CONFIG: &str = "kubeadm:nodes-kubeadm-config";
pub(super) const GET_NODES: &str = "kubeadm:get-nodes";

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The kubelets that are about to join.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";
/// The kubelets that are nodes already.
const NODES: &str = "system:nodes";

/// Writes all of it.
pub(super) fn write(workload: &Workload, machine: &Machine, cluster: &Value, version: &KubernetesVersion) {
    let kubelet_config = facts::kubelet_config_name(version);
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    });
    config_map(workload, KUBE_SYSTEM, &kubelet_config, &json!({"kubelet": yaml(&kubelet)}));
    config_map(workload, KUBE_PUBLIC, CLUSTER_INFO, &json!({"kubeconfig": yaml(&way_in(machine, cluster))}));
    let readers = [group(JOINING), group(NODES)];
    for (name, config_map) in
        [(NODES_KUBEADM_CONFIG, KUBEADM_CONFIG), (&*format!("kubeadm:{kubelet_config}"), kubelet_config.as_str())]
    {
        role(workload, KUBE_SYSTEM, name, &json!([may_get(&["configmaps"], Some(config_map))]));
        bind(workload, KUBE_SYSTEM, name, "Role", name, &readers);
    }
    let signer = "kubeadm:bootstrap-signer-clusterinfo";
    role(workload, KUBE_PUBLIC, signer, &json!([may_get(&["configmaps"], Some(CLUSTER_INFO))]));
    let anybody = json!({"apiGroup": RBAC_GROUP, "kind": "User", "name": "system:anonymous"});
    bind(workload, KUBE_PUBLIC, signer, "Role", signer, &[anybody]);
    write_cluster_roles(workload, version);
}

fn write_cluster_roles(workload: &Workload, version: &KubernetesVersion) {
    if facts::join_gets_nodes(version) {
        role(workload, "", GET_NODES, &json!([may_get(&["nodes"], None)]));
        bind(workload, "", GET_NODES, "ClusterRole", GET_NODES, &[group(JOINING)]);
    }
    let approved = "system:certificates.k8s.io:certificatesigningrequests";
    for (name, role, subject) in [
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper".to_owned(), JOINING),
        ("kubeadm:node-autoapprove-bootstrap", format!("{approved}:nodeclient"), JOINING),
        ("kubeadm:node-autoapprove-certificate-rotation", format!("{approved}:selfnodeclient"), NODES),
    ] {
        bind(workload, "", name, "ClusterRole", &role, &[group(subject)]);
    }
    if facts::has_cluster_admins(version) {
        let admins = "kubeadm:cluster-admins";
        bind(workload, "", admins, "ClusterRole", "cluster-admin", &[group(admins)]);
    }
}

/// How those who have nothing but a token find the cluster. The authority is not in it: nobody here checks certificates.
fn way_in(machine: &Machine, cluster: &Value) -> Value {
    let own = format!("{}:6443", machine.address);
    let endpoint = cluster["controlPlaneEndpoint"].as_str().unwrap_or(&own);
    json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": "", "contexts": [], "users": [],
        "clusters": [{"name": "", "cluster": {"server": format!("https://{endpoint}")}}],
    })
}

/// Creates a `ConfigMap`, unless there is one of that name.
pub(super) fn config_map(workload: &Workload, namespace: &str, name: &str, data: &Value) {
    workload.create(CONFIG_MAPS, &Key::new(namespace, name), json!({"metadata": {}, "data": data}));
}

/// A role; without a namespace it is one of the cluster.
pub(super) fn role(workload: &Workload, namespace: &str, name: &str, rules: &Value) {
    let resource = if namespace.is_empty() { CLUSTER_ROLES } else { ROLES };
    workload.create(resource, &Key::new(namespace, name), json!({"metadata": {}, "rules": rules}));
}

/// Binds a role; without a namespace it is for the whole cluster.
pub(super) fn bind(workload: &Workload, namespace: &str, name: &str, kind: &str, role: &str, subjects: &[Value]) {
    let resource = if namespace.is_empty() { CLUSTER_ROLE_BINDINGS } else { ROLE_BINDINGS };
    let reference = json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": role});
    let binding = json!({"metadata": {}, "roleRef": reference, "subjects": subjects});
    workload.create(resource, &Key::new(namespace, name), binding);
}

pub(super) fn may_get(resources: &[&str], name: Option<&str>) -> Value {
    let mut rule = json!({"apiGroups": [""], "resources": resources, "verbs": ["get"]});
    if let Some(name) = name {
        rule["resourceNames"] = json!([name]);
    }
    rule
}

pub(super) fn group(name: &str) -> Value {
    json!({"apiGroup": RBAC_GROUP, "kind": "Group", "name": name})
}
