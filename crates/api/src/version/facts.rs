//! What depends on the version of Kubernetes, in one table.
//!
//! Nobody else compares a version with a number: whoever needs such a fact asks here, so that a new one has one place.

use super::{KubernetesVersion, MinorVersion};

const fn minor(minor: u64) -> MinorVersion {
    MinorVersion { major: 1, minor }
}

/// kubeadm asks for the node that it is about to become from here on.
const JOIN_GETS_NODES_SINCE: MinorVersion = minor(18);
/// kubeadm writes `node-role.kubernetes.io/control-plane` from here on.
const CONTROL_PLANE_LABEL_SINCE: MinorVersion = minor(20);
/// The `ConfigMap` `kubeadm-config` has no `ClusterStatus` from here on.
const NO_CLUSTER_STATUS_SINCE: MinorVersion = minor(22);
/// kubeadm no longer labels nodes `node-role.kubernetes.io/master` from here on, and taints them with `control-plane`, too.
const NO_MASTER_LABEL_SINCE: MinorVersion = minor(24);
/// kubeadm no longer taints nodes with `node-role.kubernetes.io/master` from here on.
const NO_MASTER_TAINT_SINCE: MinorVersion = minor(25);
/// The kubelet's `ConfigMap` has no version in its name from here on.
const ONE_KUBELET_CONFIG_SINCE: MinorVersion = minor(24);
/// There are no `PodSecurityPolicy` objects from here on.
const NO_POD_SECURITY_POLICY_SINCE: MinorVersion = minor(25);
/// Kubelets and kube-proxies may be three minors behind from here on; two before.
const SKEW_OF_THREE_SINCE: MinorVersion = minor(25);
/// kubeadm joins a member of etcd as a learner from here on.
pub const ETCD_LEARNER_SINCE: MinorVersion = minor(27);
/// The kubelet of a control-plane machine speaks only to the API server beside it from here on.
pub const LOCAL_API_SERVER_SINCE: MinorVersion = minor(31);

/// Controller manager and scheduler of a control-plane machine speak only to the API server beside them from this patch on.
/// In that minor kubeadm's first release still gave them the address of the cluster.
pub const LOCAL_MANAGERS_SINCE: (MinorVersion, u64) = (minor(19), 1);
/// kubeadm pulls from `registry.k8s.io` from here on, and from `k8s.gcr.io` before.
const REGISTRY_K8S_IO_SINCE: MinorVersion = minor(25);
/// The image of `CoreDNS` has a path of its own in kubeadm's repository from here on.
const COREDNS_PATH_SINCE: MinorVersion = minor(21);
/// kubeadm's administrators are a group that is bound to a role from here on, and members of `system:masters` before.
const CLUSTER_ADMINS_SINCE: MinorVersion = minor(29);

/// The tags of `CoreDNS` that kubeadm installs, by the first minor that does: its own table, in
/// `cmd/kubeadm/app/constants`. Minors after the last one have that.
const COREDNS_TAGS: [(MinorVersion, &str); 15] = [
    (minor(14), "1.3.1"),
    (minor(16), "1.6.2"),
    (minor(17), "1.6.5"),
    (minor(18), "1.6.7"),
    (minor(19), "1.7.0"),
    (minor(21), "v1.8.0"),
    (minor(22), "v1.8.4"),
    (minor(23), "v1.8.6"),
    (minor(25), "v1.9.3"),
    (minor(27), "v1.10.1"),
    (minor(29), "v1.11.1"),
    (minor(31), "v1.11.3"),
    (minor(33), "v1.12.0"),
    (minor(34), "v1.12.1"),
    (minor(35), "v1.13.1"),
];

/// Steps between minors of etcd for which the patch matters: from, to, and the least patch of every member before.
const ETCD_FLOORS: [(MinorVersion, MinorVersion, u64); 1] =
    [(MinorVersion { major: 3, minor: 5 }, MinorVersion { major: 3, minor: 6 }, 32)];

/// The version of kubeadm's configuration that the newest kubeadm reads.
pub const KUBEADM_API_LATEST: &str = "kubeadm.k8s.io/v1beta4";

/// The version of kubeadm's configuration that a kubeadm reads.
pub fn kubeadm_api(version: &KubernetesVersion) -> &'static str {
    match version.minor() {
        old if old < minor(15) => "kubeadm.k8s.io/v1beta1",
        old if old < minor(22) => "kubeadm.k8s.io/v1beta2",
        old if old < minor(31) => "kubeadm.k8s.io/v1beta3",
        _ => KUBEADM_API_LATEST,
    }
}

/// A machine that joins must be allowed to read nodes.
pub fn join_gets_nodes(version: &KubernetesVersion) -> bool {
    version.minor() >= JOIN_GETS_NODES_SINCE
}

/// Nodes of the control plane are labelled `node-role.kubernetes.io/master`.
pub fn has_master_label(version: &KubernetesVersion) -> bool {
    version.minor() < NO_MASTER_LABEL_SINCE
}

/// Nodes of the control plane are labelled `node-role.kubernetes.io/control-plane`.
pub fn has_control_plane_label(version: &KubernetesVersion) -> bool {
    version.minor() >= CONTROL_PLANE_LABEL_SINCE
}

/// Nodes of the control plane are tainted with `node-role.kubernetes.io/master`.
pub fn has_master_taint(version: &KubernetesVersion) -> bool {
    version.minor() < NO_MASTER_TAINT_SINCE
}

/// Nodes of the control plane are tainted with `node-role.kubernetes.io/control-plane`.
pub fn has_control_plane_taint(version: &KubernetesVersion) -> bool {
    !has_master_label(version)
}

/// kubeadm keeps the addresses of API servers in `ClusterStatus`, where those of machines that are gone break joins.
pub fn has_cluster_status(version: &KubernetesVersion) -> bool {
    version.minor() < NO_CLUSTER_STATUS_SINCE
}

/// The `ConfigMap` that a joining kubelet is configured from: `kubelet-config-1.16`, and `kubelet-config` from 1.24 on.
pub fn kubelet_config_name(version: &KubernetesVersion) -> String {
    if version.minor() < ONE_KUBELET_CONFIG_SINCE {
        format!("kubelet-config-{}", version.minor())
    } else {
        "kubelet-config".to_owned()
    }
}

/// There are `PodSecurityPolicy` objects.
pub fn has_pod_security_policy(version: &KubernetesVersion) -> bool {
    version.minor() < NO_POD_SECURITY_POLICY_SINCE
}

/// How many minors a kubelet or kube-proxy of this version may be behind an API server.
pub fn behind_max(version: &KubernetesVersion) -> u64 {
    if version.minor() < SKEW_OF_THREE_SINCE { 2 } else { 3 }
}

/// A new member of etcd votes only when it has caught up. Before, it counts at once, and each join has a window in which
/// one more failure costs the quorum.
pub fn joins_etcd_as_learner(version: &KubernetesVersion) -> bool {
    version.minor() >= ETCD_LEARNER_SINCE
}

/// The least patch that every member of etcd must have before it goes from one minor to another, where that matters.
pub fn etcd_floor(from: MinorVersion, to: MinorVersion) -> Option<u64> {
    ETCD_FLOORS.iter().find(|(old, new, _)| (*old, *new) == (from, to)).map(|(_, _, patch)| *patch)
}

/// The kubelet of a control-plane machine speaks only to the API server beside it, and never to an older one.
pub fn kubelet_uses_local_api_server(version: &KubernetesVersion) -> bool {
    version.minor() >= LOCAL_API_SERVER_SINCE
}

/// Controller manager and scheduler of a control-plane machine speak only to the API server beside them, and never to an older
/// one.
pub fn managers_use_local_api_server(version: &KubernetesVersion) -> bool {
    (version.minor(), version.patch()) >= LOCAL_MANAGERS_SINCE
}

/// Where kubeadm takes images from, unless it is told otherwise.
pub fn image_repository(version: &KubernetesVersion) -> &'static str {
    if version.minor() < REGISTRY_K8S_IO_SINCE { "k8s.gcr.io" } else { "registry.k8s.io" }
}

/// Where the image of `CoreDNS` is below that.
pub fn coredns_path(version: &KubernetesVersion) -> &'static str {
    if version.minor() < COREDNS_PATH_SINCE { "coredns" } else { "coredns/coredns" }
}

/// The tag of `CoreDNS` that kubeadm installs, unless it is told otherwise.
pub fn coredns_tag(version: &KubernetesVersion) -> &'static str {
    let known = COREDNS_TAGS.iter().rev().find(|(since, _)| *since <= version.minor());
    known.or(COREDNS_TAGS.first()).map_or("latest", |(_, tag)| *tag)
}

/// kubeadm binds its administrators to a role.
pub fn has_cluster_admins(version: &KubernetesVersion) -> bool {
    version.minor() >= CLUSTER_ADMINS_SINCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fact holds for the first version, and not for the second, or the other way round.
    fn check(fact: fn(&KubernetesVersion) -> bool, holds: &str, not: &str) {
        assert!(fact(&holds.parse().unwrap()), "{holds}");
        assert!(!fact(&not.parse().unwrap()), "{not}");
    }

    #[test]
    fn facts_change_with_the_first_release_of_a_minor() {
        check(join_gets_nodes, "v1.18.0", "v1.17.17");
        check(has_master_label, "v1.23.17+vmware.1", "v1.24.0");
        check(has_control_plane_label, "v1.20.0", "v1.19.16");
        check(has_master_taint, "v1.24.9", "v1.25.0");
        check(has_control_plane_taint, "v1.24.0", "v1.23.17");
        check(has_cluster_status, "v1.21.14", "v1.22.0");
        check(has_pod_security_policy, "v1.24.9", "v1.25.0");
        check(joins_etcd_as_learner, "v1.27.0", "v1.26.15");
        check(kubelet_uses_local_api_server, "v1.31.0", "v1.30.9");
        check(has_cluster_admins, "v1.29.0", "v1.28.15");
    }

    #[test]
    fn one_fact_changes_with_a_patch() {
        check(managers_use_local_api_server, "v1.19.1+vmware.1", "v1.19.0");
        check(managers_use_local_api_server, "v1.20.0", "v1.18.20");
    }

    #[test]
    fn each_kubeadm_reads_one_version_of_its_configuration() {
        let api = |version: &str| kubeadm_api(&version.parse().unwrap());
        let versions = ["v1.14.10", "v1.15.0", "v1.21.14", "v1.22.0", "v1.30.9", "v1.31.0"];
        let expected = ["v1beta1", "v1beta2", "v1beta2", "v1beta3", "v1beta3", "v1beta4"];
        assert_eq!(versions.map(api), expected.map(|version| format!("kubeadm.k8s.io/{version}")));
    }

    #[test]
    fn kubeadm_takes_its_add_ons_from_its_own_repository() {
        let image = |version: &str| {
            let version = version.parse().unwrap();
            format!("{}/{}:{}", image_repository(&version), coredns_path(&version), coredns_tag(&version))
        };
        assert_eq!(image("v1.13.0"), "k8s.gcr.io/coredns:1.3.1");
        assert_eq!(image("v1.20.15"), "k8s.gcr.io/coredns:1.7.0");
        assert_eq!(image("v1.24.9+vmware.1"), "k8s.gcr.io/coredns/coredns:v1.8.6");
        assert_eq!(image("v1.26.5"), "registry.k8s.io/coredns/coredns:v1.9.3");
        assert_eq!(coredns_tag(&"v1.40.0".parse().unwrap()), COREDNS_TAGS[COREDNS_TAGS.len() - 1].1);
    }

    #[test]
    fn the_configuration_of_kubelets_lost_its_version() {
        let name = |version: &str| kubelet_config_name(&version.parse().unwrap());
        assert_eq!(name("v1.16.7+vmware.1"), "kubelet-config-1.16");
        assert_eq!(name("v1.24.0"), "kubelet-config");
    }

    #[test]
    fn some_steps_of_etcd_need_a_patch() {
        let minor = |minor| MinorVersion { major: 3, minor };
        assert_eq!(etcd_floor(minor(5), minor(6)), Some(32));
        assert_eq!(etcd_floor(minor(4), minor(5)), None);
    }

    #[test]
    fn kubelets_may_be_further_behind_since_1_25() {
        assert_eq!(behind_max(&"v1.24.9".parse().unwrap()), 2);
        assert_eq!(behind_max(&"v1.25.0".parse().unwrap()), 3);
    }
}
