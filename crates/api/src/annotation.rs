//! Every annotation that Windlass writes or reads, once.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::key::{Present, keys};
use crate::name::{
    AddonName, ClusterName, MachineName, NameError, Namespace, NamespacedName, ObjectName, ReleaseName, UpdateId,
};
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
    /// What is public about the certificates in a Secret: a JSON list with key, subject and dates of each. Written into a
    /// snapshot, where nothing else of the data is left; read by us, who say which of them expires.
    CERTIFICATE_DATES: String = "windlass.dev/certificate-dates";
    /// Which container images are on the disk of a machine image: a JSON list of their whole names. Written by whoever builds
    /// the image; read by us, who say which image of a release is missing before machines are made. Without it, what the
    /// add-ons of the image name is taken to be there.
    CONTAINER_IMAGES: String = "windlass.dev/container-images";

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
    /// A hook by which a Machine is switched off after packages have gone that were added to its cluster; who waits is its value.
    /// Written and removed by us; read by Cluster API.
    OUTLIVES_PACKAGES: String = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/tkg.tanzu.vmware.com";
    /// A gate in Cluster API that holds an upgrade for as long as the annotation is there. Written and removed by us.
    HOLD_BEFORE_UPGRADE: String = "before-upgrade.hook.cluster.cluster.x-k8s.io/windlass";
    /// The Secret with the authority that signed our certificate, for Cluster API to copy into our `ExtensionConfig`. Written
    /// by us; read by Cluster API.
    INJECT_CA: NamespacedName = "runtime.cluster.x-k8s.io/inject-ca-from-secret";
    /// The questions that Cluster API still has to ask about a Cluster, with commas between them. Written by Cluster API; read
    /// by us: while there are some, an upgrade has not ended.
    PENDING_HOOKS: String = "runtime.cluster.x-k8s.io/pending-hooks";
    /// Whoever is asked before a Cluster goes has agreed. Written and read by Cluster API.
    OK_TO_DELETE: Present = "runtime.cluster.x-k8s.io/ok-to-delete";
    /// Whoever wants to know that a control plane answers was told. Cluster API keeps a question for it among those that are
    /// pending; the World, where nobody may be there to be asked, keeps this. Written and read by the World.
    TOLD_INITIALIZED: Present = "sim.windlass.dev/after-control-plane-initialized";
    /// On a pool of a topology: it and those after it keep their version. Written by people; read by Cluster API, and by us,
    /// who say which pool is held back.
    HOLD_UPGRADE_SEQUENCE: Present = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
    /// On a pool of a topology: it alone keeps its version for now. Written by people, and by us with a value that says so;
    /// read by Cluster API, to which any value will do, and by us, who take back only our own.
    DEFER_UPGRADE: String = "topology.cluster.x-k8s.io/defer-upgrade";
    /// How many pools of a topology may be rolled at a time; one where nothing is said. Written by people, on the Cluster; read
    /// by Cluster API, and by us for what an update will take.
    UPGRADE_CONCURRENCY: NonZeroU32 = "topology.cluster.x-k8s.io/upgrade-concurrency";
    /// Switches off Cluster API's own checks of a topology's version. Written by people, and by us with a value that says so where
    /// an upgrade is given up; read by Cluster API, to which any value will do, and by us, who take back only our own.
    DISABLE_VERSION_CHECK: Present = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    /// On a template that is only tried out. Written by Cluster API; read by whoever refuses changes of templates, and must let
    /// this one pass.
    TOPOLOGY_DRY_RUN: Present = "topology.cluster.x-k8s.io/dry-run";
    /// On a Machine that health checks leave alone. Written by people; read by Cluster API and by us.
    SKIP_REMEDIATION: Present = "cluster.x-k8s.io/skip-remediation";
    /// On a Machine that is to be replaced whatever its health. Written by people; read by Cluster API, and by us, who replace
    /// nothing beside it.
    REMEDIATE_MACHINE: Present = "cluster.x-k8s.io/remediate-machine";
    /// On a `KubeadmControlPlane` that is replacing a machine which something was wrong with: a JSON object. Written by Cluster
    /// API; read by us, who wait.
    REMEDIATION_IN_PROGRESS: String = "controlplane.cluster.x-k8s.io/remediation-in-progress";
    /// On a Machine of a control plane that took the place of such a machine: the same object. Written and read by Cluster API.
    REMEDIATION_FOR: String = "controlplane.cluster.x-k8s.io/remediation-for";
    /// On a Machine that goes without its pods being evicted. Written by people; read by Cluster API, and by us, who say so.
    EXCLUDE_DRAINING: Present = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// On a Machine that goes without waiting for its volumes. Written and read as the one above.
    EXCLUDE_VOLUME_DETACH: Present = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// When the certificates of a Machine of the control plane expire, as RFC 3339. Written by Cluster API; read by us, for
    /// replacements that nobody asked for.
    CERTIFICATES_EXPIRY: String = "machine.cluster.x-k8s.io/certificates-expiry";
    /// The checks before a Machine is made that Cluster API leaves out: `All`, or some of them with commas between them. Written
    /// by people, on pools and sets; read by Cluster API, and by us, who do not rely on what is left out.
    SKIP_PREFLIGHT_CHECKS: String = "machineset.cluster.x-k8s.io/skip-preflight-checks";
    /// Which of the states that a pool has had a set is: a number that grows. Written by Cluster API, on sets and pools; read by
    /// it.
    POOL_REVISION: String = "machinedeployment.clusters.x-k8s.io/revision";
    /// How many machines the pool of a set should have. Written and read by Cluster API, on sets.
    POOL_DESIRED_REPLICAS: String = "machinedeployment.clusters.x-k8s.io/desired-replicas";
    /// How many machines the pool of a set may have while it is rolled. Written and read as the one above.
    POOL_MAX_REPLICAS: String = "machinedeployment.clusters.x-k8s.io/max-replicas";
    /// On a set that makes no machines. Written and read by Cluster API.
    DISABLE_MACHINE_CREATE: Present = "cluster.x-k8s.io/disable-machine-create";
    /// The version that the control plane of a topology is on its way to. Written and read by Cluster API, on the Cluster.
    UPGRADE_STEP: KubernetesVersion = "topology.internal.cluster.x-k8s.io/upgrade-step";
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

    /// Which operation was begun on a Cluster, when, and how long nothing may change until it counts as stalled: a JSON object.
    /// Written by `windlass create cluster`, as older tools do; read by those, and by people.
    OPERATION_INFO: String = "TKGOperationInfo";
    /// When something was last seen to change during that operation, as Go prints times. Written and read as the one above.
    OPERATION_OBSERVED: String = "TKGOperationLastObservedTimestamp";

    /// On a Cluster whose bootstrap is made by somebody else. Written by people; read by us, who wait for it.
    CUSTOM_BOOTSTRAP: Present = "tkg.tanzu.vmware.com/custom-clusterbootstrap";
    /// On a `ClusterBootstrap` with gaps: the release to fill them from. Written by people; read by us.
    ADD_MISSING_FIELDS: ReleaseName = "tkg.tanzu.vmware.com/add-missing-fields-from-tkr";
    /// On a `ClusterBootstrap` without a network of ours. Written by people; read by us, who then install none.
    UNMANAGED_CNI: Present = "tkg.tanzu.vmware.com/unmanaged-cni";
    /// The proxy for HTTP, on a Cluster. Written by us from its variables; read by whoever makes the values of packages, and by us, who
    /// compare it with what programs are told.
    HTTP_PROXY: String = "tkg.tanzu.vmware.com/tkg-http-proxy";
    /// The proxy for HTTPS. Written and read as the one above.
    HTTPS_PROXY: String = "tkg.tanzu.vmware.com/tkg-https-proxy";
    /// What is reached without a proxy, with commas between. Written and read as the one above.
    NO_PROXY: String = "tkg.tanzu.vmware.com/tkg-no-proxy";
    /// The authority of the proxy. Written and read as the one above.
    PROXY_CA: String = "tkg.tanzu.vmware.com/tkg-proxy-ca-cert";
    /// The families of addresses, the first one first. Written and read as the one above.
    IP_FAMILY: String = "tkg.tanzu.vmware.com/tkg-ip-family";
    /// The registries whose certificates are not verified. Written and read as the one above.
    SKIP_TLS_VERIFY: String = "tkg.tanzu.vmware.com/skip-tls-verify";
    /// On the configuration of a package that is only a template. Written with the release; read by us, who render nothing
    /// from it.
    TEMPLATE_CONFIG: Present = "tkg.tanzu.vmware.com/template-config";
    /// On a `PackageInstall`: the cluster that it is for. Written by us; read by us, as it may be in another API server.
    PACKAGE_CLUSTER_NAME: ClusterName = "tkg.tanzu.vmware.com/cluster-name";
    /// On a `PackageInstall`: that cluster's namespace. Written and read as the one above.
    PACKAGE_CLUSTER_NAMESPACE: Namespace = "tkg.tanzu.vmware.com/cluster-namespace";
    /// On a `PackageInstall` that may go back to an older version. Written by people; read by kapp-controller, and by us, who
    /// say in advance that it would stop without.
    DOWNGRADABLE: Present = "packaging.carvel.dev/downgradable";
    /// On a `PackageInstall` for which a Package's versions of Kubernetes do not count. Written and read as the one above.
    IGNORE_KUBERNETES_SELECTION: Present = "packaging.carvel.dev/ignore-kubernetes-version-selection";
    /// On a `PackageInstall` for which a Package's versions of kapp-controller do not count. Written and read as the one above.
    IGNORE_KAPP_CONTROLLER_SELECTION: Present = "packaging.carvel.dev/ignore-kapp-controller-version-selection";
    /// The repository that a Package comes from. Written by kapp-controller; read by us, to say whose package it is.
    PACKAGE_REPOSITORY: NamespacedName = "packaging.carvel.dev/package-repository-ref";
    /// On an App that its `PackageInstall` no longer overwrites. Written by people; read by kapp-controller, and by us: such a
    /// package does not follow a release.
    MANUALLY_CONTROLLED: Present = "ext.packaging.carvel.dev/manually-controlled";
    /// On a Package whose new pods wait for new nodes, as its images are on no other. Written with the release; read by us, to
    /// whom it is then well when the pods that there are run.
    WAITS_FOR_NEW_NODES: Present = "windlass.dev/waits-for-new-nodes";
    /// The packages that stay when a cluster is deleted, with commas between them. Written by people; read by us.
    KEEP_PACKAGES: String = "run.tanzu.vmware.com/skip-packageinstall-deletion";

    /// On a Cluster of which Cluster API asks us whether machines may follow: they may, to this release, whatever its packages are
    /// like. Written by people; read by us.
    GO_ON_WITHOUT_PACKAGES: ReleaseName = "windlass.dev/go-on-without-packages";
    /// On a `TanzuKubernetesCluster` whose release is only a hop: the release, in full, that it is on its way to. Workers that
    /// may wait for a later one keep their version. Written by `windlass upgrade`, which removes it with the last hop; read by
    /// us.
    ON_THE_WAY_TO: KubernetesVersion = "windlass.dev/on-the-way-to";
    /// On a classic cluster: the release that it was last brought to, without a `v`. Written by us, when all of it is done; read by
    /// us: where an update begins, and whether a difference is drift.
    LAST_DEPLOYED_VERSION: KubernetesVersion = "release.giantswarm.io/last-deployed-version",
        |version| version.bare().to_string();
    /// On a classic cluster, by the same hand that labels it with a release: the digest of the envelope that was reviewed for that
    /// release, as `36.1.0 sha256:…`, and that of the release itself, to tell what has changed since. Written by `windlass upgrade
    /// --plan`; read by us, who begin no other update to it.
    REVIEWED_ENVELOPE: String = "windlass.dev/reviewed-envelope";
    /// On a Cluster that is to stay paused when we let go of it: its owner had paused it before we held it. Written by our
    /// admission, and by people who pause a Cluster that we hold; read by us, who then take away our own hold and nothing else.
    KEEP_PAUSED: Present = "windlass.dev/keep-paused";
    /// On a Secret of a cluster that was lost and made anew: what it was taken from, `Machine/x`. Written by `windlass secrets
    /// recover`; read by people.
    RECOVERED_FROM: String = "windlass.dev/recovered-from";
    /// On a `TanzuKubernetesCluster`, or on a Cluster whose release is a label: the digest of the envelope that somebody has agreed
    /// to. Written by people and by `windlass approve`; read by us, who begin no other update that needs it.
    APPROVED: String = "windlass.dev/approved";
    /// On the same: the digest of the envelope that somebody does not want. Written by people and by `windlass reject`; read by us,
    /// who do not begin it.
    REJECTED: String = "windlass.dev/rejected";
    /// Why somebody decided so. Written and read as the two above.
    DECIDED_BECAUSE: String = "windlass.dev/decided-because";
    /// Who decided last. Written by our admission, and by nobody else; read by us, who put it on record.
    DECIDED_BY: String = "windlass.dev/decided-by";
    /// On the same: who asked last for what it is to be, where that has to be approved. Written by our admission; read by it, where
    /// somebody else has to approve.
    ASKED_BY: String = "windlass.dev/asked-by";
    /// On the same: that its updates have to be approved, and by whom, as its namespace wanted it when it was asked for. Written by
    /// our admission; read by us.
    APPROVAL: String = "windlass.dev/approval";
    /// On a `ClusterUpdate` that is to be given up: who wants that. Written by people and by `windlass abort`; read by us, who
    /// undo what was begun if nothing has been replaced yet, and go on otherwise. On a Cluster of a class it is the release that is
    /// given up.
    ABORT: String = "windlass.dev/abort";
    /// On a `ConfigMap` that keeps a release for a cluster: the digest of what is in it. On a Cluster: that of the release which
    /// it was created with. Written by us; read by us.
    RELEASE_DIGEST: String = "windlass.dev/release-digest";
    /// On a `ClusterUpdate` that takes over what another one has begun and nobody leads any more: the id of that. Written by
    /// people and by `windlass retry --adopt`; read by us, who go on under that id.
    ADOPT: UpdateId = "windlass.dev/adopt";
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

/// What the key of a hold on an upgrade begins with. Written by anybody who wants Cluster API to wait before it upgrades a
/// Cluster of a class; ours is [`HOLD_BEFORE_UPGRADE`].
pub const UPGRADE_HOLD_PREFIX: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io";

/// What the key of a hold on a Machine begins with, before its pods are evicted. Written by anybody; read by Cluster API, and by
/// us, to say what a removal waits for.
pub const PRE_DRAIN_HOLD_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";

/// What the key of a hold on a Machine begins with, before it is switched off. As above; `KubeadmControlPlane` has one to remove
/// the member of etcd, and the packages of a cluster one so that machines outlive them.
pub const PRE_TERMINATE_HOLD_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";

/// Who holds an object, by the keys with a prefix: each key, and the name behind its slash, which is empty where there is none.
pub fn holds<'a>(annotations: &'a BTreeMap<String, String>, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    annotations.keys().filter_map(move |key| match key.strip_prefix(prefix)? {
        "" => Some((key.as_str(), "")),
        rest => rest.strip_prefix('/').map(|name| (key.as_str(), name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::check_all;

    #[test]
    fn everybody_who_holds_an_object_is_found_by_the_beginning_of_a_key() {
        let annotations: BTreeMap<String, String> = [
            HOLD_BEFORE_UPGRADE.name,
            "before-upgrade.hook.cluster.cluster.x-k8s.io",
            "before-upgrade.hook.cluster.cluster.x-k8s.iot/none",
            "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup",
        ]
        .map(|key| (key.to_owned(), String::new()))
        .into();
        let names = |prefix: &str| holds(&annotations, prefix).map(|(_, name)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(UPGRADE_HOLD_PREFIX), ["", "windlass"]);
        assert_eq!(names(PRE_TERMINATE_HOLD_PREFIX), ["kcp-cleanup"]);
        assert!(names(PRE_DRAIN_HOLD_PREFIX).is_empty());
    }

    #[test]
    fn how_many_pools_are_rolled_at_a_time_is_a_number_and_never_none() {
        let read = |text: &str| {
            UPGRADE_CONCURRENCY.get(&BTreeMap::from([(UPGRADE_CONCURRENCY.name.to_owned(), text.to_owned())]))
        };
        assert_eq!(read("3").unwrap(), NonZeroU32::new(3));
        assert!(read("0").is_err() && read("all").is_err());
    }

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
