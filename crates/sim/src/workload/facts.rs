//! What kubeadm does differently from version to version: one table.

use windlass_api::label;
use windlass_api::version::KubernetesVersion;

fn before(version: &KubernetesVersion, minor: u64) -> bool {
    version.major() < 1 || (version.major() == 1 && version.minor().minor < minor)
}

/// The labels of a control-plane node.
pub(super) fn control_plane_labels(version: &KubernetesVersion) -> Vec<&'static str> {
    let mut labels = Vec::new();
    if before(version, 24) {
        labels.push(label::NODE_MASTER.name);
    }
    if !before(version, 20) {
        labels.push(label::NODE_CONTROL_PLANE.name);
    }
    labels
}

/// The keys of the taints of a control-plane node.
pub(super) fn control_plane_taints(version: &KubernetesVersion) -> Vec<&'static str> {
    let mut taints = Vec::new();
    if before(version, 25) {
        taints.push(label::NODE_MASTER.name);
    }
    if !before(version, 24) {
        taints.push(label::NODE_CONTROL_PLANE.name);
    }
    taints
}

/// The `ConfigMap` with the configuration of kubelets.
pub(super) fn kubelet_config(version: &KubernetesVersion) -> String {
    if before(version, 24) { format!("kubelet-config-{}", version.minor()) } else { "kubelet-config".to_owned() }
}

/// Whether `kubeadm-config` lists the API servers.
pub(super) fn has_cluster_status(version: &KubernetesVersion) -> bool {
    before(version, 22)
}

/// Whether a member of etcd joins as a learner, so that the quorum does not depend on it while it starts.
pub(super) fn joins_as_learner(version: &KubernetesVersion) -> bool {
    !before(version, 27)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, labels: &[&str], taints: &[&str], kubelet: &str, status: bool, learner: bool) {
        let version: KubernetesVersion = version.parse().unwrap();
        assert_eq!(control_plane_labels(&version), labels, "{version}");
        assert_eq!(control_plane_taints(&version), taints, "{version}");
        assert_eq!(kubelet_config(&version), kubelet, "{version}");
        assert_eq!((has_cluster_status(&version), joins_as_learner(&version)), (status, learner), "{version}");
    }

    #[test]
    fn each_version_has_its_ways() {
        let (master, control_plane) = (label::NODE_MASTER.name, label::NODE_CONTROL_PLANE.name);
        check("v1.16.7+vmware.1", &[master], &[master], "kubelet-config-1.16", true, false);
        check("v1.20.0", &[master, control_plane], &[master], "kubelet-config-1.20", true, false);
        check("v1.22.0", &[master, control_plane], &[master], "kubelet-config-1.22", false, false);
        check("v1.24.0", &[control_plane], &[master, control_plane], "kubelet-config", false, false);
        check("v1.27.0", &[control_plane], &[control_plane], "kubelet-config", false, true);
    }
}
