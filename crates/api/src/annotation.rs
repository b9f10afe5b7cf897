//! Every annotation that Windlass writes or reads, once.

use crate::key::{Present, keys};
use crate::name::{AddonName, ClusterName, MachineName, NameError, Namespace, ObjectName, ReleaseName, UpdateId};
use crate::version::KubernetesVersion;

keys! {
    /// On the Job that updates a control plane, and on its Pods. Written by us; read by the Job's container, as an argument.
    UPGRADE_ID: UpdateId = "upgrade-id";
    /// The Kubernetes version that the Job leads to; where it is and who reads it as above.
    UPGRADE_VERSION: KubernetesVersion = "upgrade-version";
    /// The update that a Machine of the control plane takes part in. Written by the Job, which removes it at the end; read by
    /// the Job: another id than its own stops it.
    MACHINE_UPDATE_ID: UpdateId = "upgrade.cluster-api.vmware.com/id";
    /// The base of a Machine's name, which all share that replace each other in a row. Written by us with the first of them,
    /// and by the Job where it is missing (it is then the Machine's own name); read by the Job, to name the next.
    MACHINE_NAME_BASE: MachineName = "upgrade.cluster-api.vmware.com/machine-name-base";

    /// What a machine image is made of: a JSON object with the distribution's version, and for Kubernetes, etcd and `CoreDNS`
    /// their repository and version. Written by whoever builds the image; read by us as a Release.
    DISTRIBUTION: String = "vmware-system.guest.kubernetes.distribution.image.version";

    /// On an object that no controller may touch. Written by people and by tools; read by Cluster API and by us, who remove it
    /// only if we set it.
    PAUSED: Present = "cluster.x-k8s.io/paused";
    /// On a Machine that is the first to go when its set shrinks. Written by people; read by Cluster API.
    DELETE_MACHINE: Present = "cluster.x-k8s.io/delete-machine";
    /// The template that an object was cloned from. Written by Cluster API.
    CLONED_FROM_NAME: ObjectName = "cluster.x-k8s.io/cloned-from-name";
    /// The kind and group of that template, with a dot between them. Written by Cluster API.
    CLONED_FROM_GROUP_KIND: String = "cluster.x-k8s.io/cloned-from-groupkind";
    /// Our hold on a Cluster while the packages of a release are brought in, and for which release. Written by our admission
    /// together with `spec.paused`; read by us, who release no other hold.
    HELD_FOR_RELEASE: ReleaseName = "tkg.tanzu.vmware.com/paused";
    /// A gate in Cluster API that holds an upgrade for as long as the annotation is there. Written and removed by us.
    HOLD_BEFORE_UPGRADE: String = "before-upgrade.hook.cluster.cluster.x-k8s.io/windlass";
    /// Tells `KubeadmControlPlane` to leave kube-proxy alone. Written by us where kube-proxy is ours; read by Cluster API.
    SKIP_KUBE_PROXY: Present = "controlplane.cluster.x-k8s.io/skip-kube-proxy";
    /// Tells `KubeadmControlPlane` to leave `CoreDNS` alone. Written by us where it is ours; read by Cluster API.
    SKIP_COREDNS: Present = "controlplane.cluster.x-k8s.io/skip-coredns";

    /// Which releases a Cluster may be resolved to: a label selector, empty for all. Written by people, on the Cluster or its
    /// class; read by our admission, which resolves nothing without it.
    RESOLVE_RELEASE: String = "run.tanzu.vmware.com/resolve-tkr";
    /// Which OS images a part of a topology may have: a label selector. Written and read as the one above.
    RESOLVE_OS_IMAGE: String = "run.tanzu.vmware.com/resolve-os-image";
    /// A copy of the release in use, for when it is deleted: base64 of gzip of YAML. Written by our admission; read by us.
    RELEASE_COPY: String = "run.tanzu.vmware.com/tkr-spec";
    /// The version of the tools on the management cluster. Written when it is created or upgraded; read by us, for which
    /// releases are compatible.
    MANAGEMENT_VERSION: String = "TKGVERSION";

    /// On a Cluster whose bootstrap is made by somebody else. Written by people; read by us, who wait for it.
    CUSTOM_BOOTSTRAP: Present = "tkg.tanzu.vmware.com/custom-clusterbootstrap";
    /// On a `ClusterBootstrap` with gaps: the release to fill them from. Written by people; read by us.
    ADD_MISSING_FIELDS: ReleaseName = "tkg.tanzu.vmware.com/add-missing-fields-from-tkr";
    /// On a `ClusterBootstrap` without a network of ours. Written by people; read by us, who then install none.
    UNMANAGED_CNI: Present = "tkg.tanzu.vmware.com/unmanaged-cni";
    /// On the configuration of a package that is only a template. Written with the release; read by us, who render nothing
    /// from it.
    TEMPLATE_CONFIG: Present = "tkg.tanzu.vmware.com/template-config";
    /// On a `PackageInstall`: the cluster that it is for. Written by us; read by us, as it may be in another API server.
    PACKAGE_CLUSTER_NAME: ClusterName = "tkg.tanzu.vmware.com/cluster-name";
    /// On a `PackageInstall`: that cluster's namespace. Written and read as the one above.
    PACKAGE_CLUSTER_NAMESPACE: Namespace = "tkg.tanzu.vmware.com/cluster-namespace";
    /// The packages that stay when a cluster is deleted, with commas between them. Written by people; read by us.
    KEEP_PACKAGES: String = "run.tanzu.vmware.com/skip-packageinstall-deletion";
}

/// What the key of an add-on's annotation on a machine image begins with. The value is a JSON object with the manifests.
/// Written by whoever builds the image; read by us as part of a Release.
pub const ADDON_PREFIX: &str = "vmware-system.guest.kubernetes.addons.";

/// The add-on that a key of a machine image is for; `None` if it is for none.
pub fn addon_name(key: &str) -> Option<Result<AddonName, NameError>> {
    key.strip_prefix(ADDON_PREFIX).map(AddonName::new)
}

/// The key of an add-on on a machine image.
pub fn addon_key(addon: &AddonName) -> String {
    format!("{ADDON_PREFIX}{addon}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::check_all;

    #[test]
    fn every_annotation_has_a_key_that_kubernetes_accepts() {
        check_all(ALL);
    }

    fn check(key: &str, addon: Option<Result<&str, ()>>) {
        let found = addon_name(key);
        let found = found.as_ref().map(|name| name.as_ref().map(AddonName::as_str).map_err(|_| ()));
        assert_eq!(found, addon, "{key}");
    }

    #[test]
    fn the_add_ons_of_an_image_are_found_by_the_prefix_of_their_keys() {
        check("vmware-system.guest.kubernetes.addons.pvcsi", Some(Ok("pvcsi")));
        check("vmware-system.guest.kubernetes.addons.vmware-guest-cluster", Some(Ok("vmware-guest-cluster")));
        check("vmware-system.guest.kubernetes.addons.", Some(Err(())));
        check(DISTRIBUTION.name, None);

        let name = AddonName::new("pvcsi").unwrap();
        assert_eq!(addon_name(&addon_key(&name)), Some(Ok(name)));
    }
}
