//! Which kinds a snapshot has: those that Windlass or a World decides by, and no others.

use kube::core::ApiResource;
use windlass_api::label;

/// A kind: group, version, kind and plural.
type Row = (&'static str, &'static str, &'static str, &'static str);

const MANAGEMENT: [Row; 19] = [
    ("", "v1", "Namespace", "namespaces"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "Pod", "pods"),
    ("batch", "v1", "Job", "jobs"),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
    ("vmoperator.vmware.com", "v1alpha1", "VirtualMachineImage", "virtualmachineimages"),
    ("vmoperator.vmware.com", "v1alpha1", "VirtualMachineClass", "virtualmachineclasses"),
    ("run.tanzu.vmware.com", "v1alpha1", "TanzuKubernetesCluster", "tanzukubernetesclusters"),
    ("windlass.dev", "v1alpha1", "ClusterUpdate", "clusterupdates"),
    ("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
    ("cluster.x-k8s.io", "v1beta2", "Machine", "machines"),
    ("cluster.x-k8s.io", "v1beta2", "MachineSet", "machinesets"),
    ("cluster.x-k8s.io", "v1beta2", "MachineDeployment", "machinedeployments"),
    ("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig", "kubeadmconfigs"),
    ("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates"),
    ("infrastructure.cluster.vmware.com", "v1alpha2", "WCPCluster", "wcpclusters"),
    ("infrastructure.cluster.vmware.com", "v1alpha2", "WCPMachine", "wcpmachines"),
    ("infrastructure.cluster.vmware.com", "v1alpha2", "WCPMachineTemplate", "wcpmachinetemplates"),
];

/// What nodes and add-ons are made of. An add-on of another kind would be applied once more in a rehearsal.
const WORKLOAD: [Row; 22] = [
    ("", "v1", "Namespace", "namespaces"),
    ("", "v1", "Node", "nodes"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "v1", "Service", "services"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "ControllerRevision", "controllerrevisions"),
    ("batch", "v1", "Job", "jobs"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
    ("storage.k8s.io", "v1", "CSIDriver", "csidrivers"),
    ("policy", "v1beta1", "PodSecurityPolicy", "podsecuritypolicies"),
];

fn resource((group, version, kind, plural): Row) -> ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// Which objects of a kind of the management side are read. Of `ConfigMap`s there are many that are nobody's here.
pub(super) fn selector(kind: &ApiResource) -> Option<&'static str> {
    (kind.kind == "ConfigMap").then_some(label::KEPT_RELEASE.name)
}

/// The kinds of the management side.
pub(super) fn management() -> impl Iterator<Item = ApiResource> {
    MANAGEMENT.into_iter().map(resource)
}

/// The kinds of a workload cluster.
pub(super) fn workload() -> impl Iterator<Item = ApiResource> {
    WORKLOAD.into_iter().map(resource)
}
