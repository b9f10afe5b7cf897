//! The pods, and where they run: in management clusters, in workload clusters, and in those that have workers with Windows.

use super::Owner::{Kubernetes, Package};
use super::Runs::{ControlPlane, No, Sometimes, Yes};
use super::{Owner, PodRow, Runs};

/// Every sort of pods that is known.
pub const PODS: &[PodRow] = &[
    row("avi-system", "ako", Package("load-balancer-and-ingress-service"), [Yes, Yes, No]),
    row("caip-in-cluster-system", "caip-in-cluster-controller-manager", CLUSTER_API_IPAM, MANAGEMENT),
    row("capi-system", "capi-controller-manager", Package("cluster-api"), MANAGEMENT),
    row(
        "capi-kubeadm-bootstrap-system",
        "capi-kubeadm-bootstrap-controller-manager",
        Package("cluster-api-bootstrap-kubeadm"),
        MANAGEMENT,
    ),
    row(
        "capi-kubeadm-control-plane-system",
        "capi-kubeadm-control-plane-controller-manager",
        Package("cluster-api-control-plane-kubeadm"),
        MANAGEMENT,
    ),
    noted(
        "The seed's table has a mark for workload clusters, too, and its text says that what manages clusters runs in \
         management clusters only. The text is right: a provider in a workload cluster would have nothing to make.",
        row("capv-system", "capv-controller-manager", Package("cluster-api-provider-vsphere"), MANAGEMENT),
    ),
    row("cert-manager", "cert-manager", Package("cert-manager"), MANAGEMENT),
    row("cert-manager", "cert-manager-cainjector", Package("cert-manager"), MANAGEMENT),
    row("cert-manager", "cert-manager-webhook", Package("cert-manager"), MANAGEMENT),
    row("kube-system", "antrea-agent", Package("antrea"), ALL),
    row("kube-system", "antrea-controller", Package("antrea"), ALL),
    row("kube-system", "coredns", Kubernetes, ALL),
    row("kube-system", "etcd", Kubernetes, ALL),
    row("kube-system", "kube-apiserver", Kubernetes, ALL),
    row("kube-system", "kube-controller-manager", Kubernetes, ALL),
    row("kube-system", "kube-proxy", Kubernetes, ALL),
    row("kube-system", "kube-scheduler", Kubernetes, ALL),
    row("kube-system", "metrics-server", Package("metrics-server"), ALL),
    row("kube-system", "vsphere-cloud-controller-manager", Package("vsphere-cpi"), ALL),
    row("secretgen-controller", "secretgen-controller", Package("secretgen-controller"), ALL),
    row("tkg-system", "kapp-controller", Package("kapp-controller"), ALL),
    row("tkg-system", "object-propagation-controller-manager", Package("object-propagation"), MANAGEMENT),
    row("tkg-system", "tanzu-addons-controller-manager", Package("addons-manager"), MANAGEMENT),
    row("tkg-system", "tanzu-auth-controller-manager", Package("tanzu-auth"), MANAGEMENT),
    row("tkg-system", "tanzu-capabilities-controller-manager", Package("capabilities"), ALL),
    row("tkg-system", "tanzu-featuregates-controller-manager", Package("featuregates"), MANAGEMENT),
    row("tkg-system", "tkr-conversion-webhook-manager", Package("tkr-service"), MANAGEMENT),
    row("tkg-system", "tkr-resolver-cluster-webhook-manager", Package("tkr-service"), MANAGEMENT),
    row("tkg-system", "tkr-source-controller-manager", Package("tkr-source-controller"), MANAGEMENT),
    row("tkg-system", "tkr-status-controller-manager", Package("tkr-service"), MANAGEMENT),
    row("tkg-system", "tkr-vsphere-resolver-webhook-manager", Package("tkr-vsphere-resolver"), MANAGEMENT),
    noted(
        "It is the pod of a Job, which ends, and whoever tidies up takes it away: that none is there says nothing.",
        row("vmware-system-antrea", "register-placeholder", Package("antrea"), [Sometimes, Sometimes, No]),
    ),
    row("vmware-system-csi", "vsphere-csi-controller", Package("vsphere-csi"), ALL),
    row("vmware-system-csi", "vsphere-csi-node", Package("vsphere-csi"), [Yes, Yes, ControlPlane]),
];

const ALL: [Runs; 3] = [Yes, Yes, Yes];
const MANAGEMENT: [Runs; 3] = [Yes, No, No];
const CLUSTER_API_IPAM: Owner = Package("cluster-api-ipam-provider-in-cluster");

const fn row(namespace: &'static str, name: &'static str, owner: Owner, runs: [Runs; 3]) -> PodRow {
    let [management, workload, windows] = runs;
    PodRow { namespace, name, owner, management, workload, windows, note: None }
}

const fn noted(note: &'static str, row: PodRow) -> PodRow {
    PodRow { note: Some(note), ..row }
}
