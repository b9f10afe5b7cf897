//! Every label that Windlass writes or reads, once.

use std::collections::BTreeMap;

use crate::key::{Key, Present, keys};
use crate::name::{AddonName, ClusterName, Namespace, ObjectName, OsImageName, PoolName, ReleaseName, UpdateId};
use crate::text::words;
use crate::version::{KubernetesVersion, VersionPrefix};

keys! {
    /// The cluster that an object belongs to. Written by Cluster API and by us on everything we create for a cluster;
    /// read by all who look for a cluster's machines, Secrets or Job.
    CLUSTER_NAME: ClusterName = "cluster.x-k8s.io/cluster-name";
    /// On Machines of the control plane. Written by whoever creates them; read by us to tell them from workers.
    CONTROL_PLANE: Present = "cluster.x-k8s.io/control-plane";
    /// The `KubeadmControlPlane` that a Machine belongs to, or a hash of its name. Written by Cluster API; read by us: a
    /// Machine that has it is not ours to replace.
    CONTROL_PLANE_NAME: String = "cluster.x-k8s.io/control-plane-name";
    /// The `MachineDeployment` that a Machine or `MachineSet` belongs to. Written by Cluster API; read by us, for the pool.
    DEPLOYMENT_NAME: ObjectName = "cluster.x-k8s.io/deployment-name";
    /// The `MachineSet` that a Machine belongs to. Written and read by Cluster API.
    SET_NAME: ObjectName = "cluster.x-k8s.io/set-name";
    /// The `MachinePool` that a Machine belongs to, or a hash of its name. Written by Cluster API; read by us, who leave pools
    /// of that sort alone and say so.
    MACHINE_POOL_NAME: String = "cluster.x-k8s.io/pool-name";
    /// Which state of a `MachineDeployment`'s template a `MachineSet` and its Machines are from. Written and read by Cluster
    /// API.
    TEMPLATE_HASH: String = "machine-template-hash";
    /// On what Cluster API derives from `Cluster.spec.topology`. Written by Cluster API; read by us, who then leave the
    /// object alone.
    TOPOLOGY_OWNED: Present = "topology.cluster.x-k8s.io/owned";
    /// The pool of a topology that a `MachineDeployment` is made from. Written by Cluster API; read by us, for the pool: the
    /// object itself has a name that Cluster API chose.
    TOPOLOGY_POOL: PoolName = "topology.cluster.x-k8s.io/deployment-name";
    /// Which of several instances of Cluster API an object is for. Written by people; read by Cluster API, and by us, who say
    /// that nobody will act on an object that nobody watches.
    WATCH_FILTER: String = "cluster.x-k8s.io/watch-filter";
    /// The provider that a definition came with. Written by whoever installs it; read by us, who never overwrite the
    /// definition of another.
    PROVIDER: String = "cluster.x-k8s.io/provider";
    /// On Pods: that they are not evicted from a Machine which goes. Written by people; read by Cluster API, and by us, for
    /// what an update will wait for.
    POD_DRAIN: PodDrain = "cluster.x-k8s.io/drain";
    /// On definitions of provider kinds: their versions that keep the v1beta2 contract, with `_` between them. Written with
    /// our definitions; read by Cluster API to find the version of a reference.
    CONTRACT_V1BETA2: String = "cluster.x-k8s.io/v1beta2";

    /// On Nodes of the control plane. Written by kubeadm from 1.20 on; read by us to see that a machine has joined.
    NODE_CONTROL_PLANE: Present = "node-role.kubernetes.io/control-plane";
    /// On Nodes of the control plane. Written by kubeadm before 1.24; read by us as the one above.
    NODE_MASTER: Present = "node-role.kubernetes.io/master";
    /// The zone that a Node or a machine is in. Written on Nodes by the cloud provider, on machines by whoever makes them; read
    /// by schedulers, which spread pods over zones.
    ZONE: String = "topology.kubernetes.io/zone";
    /// The distribution that a Node was made from, and whose images are therefore on its disk. Written by the kubelet when
    /// it joins, from the configuration that we render; read by the scheduler, for add-ons that select on it.
    DISTRIBUTION_VERSION: KubernetesVersion = "run.tanzu.vmware.com/kubernetesDistributionVersion",
        |version| version.tag().to_string();

    /// The release that a cluster was resolved to. Written by our admission; read by us: a change of it is an update.
    RELEASE: ReleaseName = "run.tanzu.vmware.com/tkr";
    /// The release of a cluster without a class. Written by older tools; read by us where there is no other.
    RELEASE_OF_OLD: ReleaseName = "tanzuKubernetesRelease";
    /// The image of the operating system that was resolved with the release. Written by our admission; read by us.
    OS_IMAGE: OsImageName = "run.tanzu.vmware.com/os-image";
    /// On a release that is not supported by this management cluster. Written by us; read in resolution, which passes over
    /// it.
    INCOMPATIBLE: Present = "incompatible";
    /// On a release with faults. Written by us; read in resolution, which passes over it.
    INVALID: Present = "invalid";
    /// On a release that is not to be used any more. Written by people; read in resolution, which passes over it.
    DEACTIVATED: Present = "deactivated";
    /// On a release without packages. Written with the release; read by us, who then install none.
    LEGACY_RELEASE: Present = "run.tanzu.vmware.com/legacy-tkr";
    /// On Packages that contain a release. Written with the Package; read by us to unpack it.
    RELEASE_PACKAGE: Present = "run.tanzu.vmware.com/tkr-package";
    /// On `ConfigMap`s that declare more releases compatible. Written by people; read by us.
    ADDITIONAL_COMPATIBLE_RELEASES: Present = "run.tanzu.vmware.com/additional-compatible-tkrs";
    /// On the Cluster that is the management cluster itself. Written when it is created; read by us, for what is compatible.
    MANAGEMENT_CLUSTER: Present = "cluster-role.tkg.tanzu.vmware.com/management";

    /// On image and release: `linux`. This one and the next four are written by us from the image's fields, and read in
    /// resolution, by the selectors of a cluster.
    OS_TYPE: String = "os-type";
    /// `ubuntu`, `photon`.
    OS_NAME: String = "os-name";
    /// `2004`.
    OS_VERSION: String = "os-version";
    /// `amd64`.
    OS_ARCH: String = "os-arch";
    /// `ova`, `ami`.
    IMAGE_TYPE: String = "image-type";

    /// The cluster that the values of a package are for. Written by us on their Secrets; read by us to find them.
    PACKAGE_CLUSTER_NAME: ClusterName = "tkg.tanzu.vmware.com/cluster-name";
    /// The package that values are for, as [`PackageName::label`](crate::name::PackageName::label) writes it. Written by us on
    /// their Secrets; read by people to find them, and by nobody to tell them apart: it may be cut.
    PACKAGE_NAME: String = "tkg.tanzu.vmware.com/package-name";

    /// The release of a cluster whose defaults are `ConfigMap`s, without a `v`. Written by people, on the Cluster; read by us:
    /// a change of it is an update.
    RELEASE_VERSION: KubernetesVersion = "release.giantswarm.io/version",
        |version| version.label().to_string().trim_start_matches('v').to_owned();

    /// On `ConfigMap`s of `windlass-system` that say where in the templates of an infrastructure provider is what. Written by whoever
    /// installs Windlass; read by us.
    INFRASTRUCTURE_PROFILE: Present = "windlass.dev/infrastructure-profile";

    /// Who has to approve the updates of clusters of a namespace: `none`, `required`, or `second-person`, who has not asked for them.
    /// Written by people, on the Namespace; read by our admission.
    APPROVAL: String = "windlass.dev/approval";

    /// The Job that a Pod belongs to. Written by Kubernetes; read by us and by people who look for the attempts of an update.
    JOB_NAME: ObjectName = "job-name";
    /// The update that an object was made by. Written by us; read by us, to adopt nothing that another update made.
    UPDATE_ID: UpdateId = "windlass.dev/update-id";
    /// The add-on that an object in a workload cluster belongs to. Written by us; read by us, to find what is ours there.
    ADDON: AddonName = "windlass.dev/addon";
    /// The namespace of the cluster that an object in another namespace belongs to: no owner reference may lead there.
    /// Written by us; read by the finalizer that removes such objects.
    CLUSTER_NAMESPACE: Namespace = "windlass.dev/cluster-namespace";
    /// On a `ConfigMap` that keeps a release for a cluster: the version of its distribution. Written by us; read by us, to find
    /// what is kept.
    KEPT_RELEASE: KubernetesVersion = "windlass.dev/kept-release", |version| version.tag().to_string();
    /// On a copy of a class of clusters or of one of its templates: the namespace of the source. Written by us; read by us, to
    /// change and remove nothing that somebody else made.
    COPIED_FROM: Namespace = "windlass.dev/copied-from";
    /// On a namespace that has a copy of every class of clusters. Written by people; read by us.
    HAS_CLASSES: Present = "windlass.dev/cluster-classes";
}

words! {
    /// What is done with a Pod on a Machine that goes.
    pub enum PodDrain {
        /// It stays until the end.
        Skip = "skip",
        /// The Machine waits until it has ended by itself.
        WaitCompleted = "wait-completed",
    }
}

/// The labels that resolution passes over a release for, in the order in which they explain it.
pub const EXCLUDED_FROM_RESOLUTION: [Key<Present>; 3] = [INCOMPATIBLE, DEACTIVATED, INVALID];

/// The labels that make a release findable by any prefix of its version. Written by us on releases and OS images; read in
/// resolution, as the question whether the label of a hint exists.
pub fn version_prefixes(version: &KubernetesVersion) -> BTreeMap<String, String> {
    version.prefixes().map(|prefix| (version_prefix(&prefix), String::new())).collect()
}

/// The key of the label that a release has if its version begins with the prefix: `v1.24.9---vmware`.
pub fn version_prefix(prefix: &VersionPrefix) -> String {
    prefix.label().to_string()
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::key::tests::check_all;

    #[test]
    fn every_label_has_a_key_that_kubernetes_accepts() {
        check_all(ALL);
    }

    #[test]
    fn a_version_is_written_into_a_label_as_its_readers_expect_it() {
        let version: KubernetesVersion = "v1.16.7+vmware.1-guest.1".parse().unwrap();
        let labels = BTreeMap::from([DISTRIBUTION_VERSION.entry(&version), RELEASE_VERSION.entry(&version)]);

        assert_eq!(labels[DISTRIBUTION_VERSION.name], "v1.16.7_vmware.1-guest.1");
        assert_eq!(labels[RELEASE_VERSION.name], "1.16.7---vmware.1-guest.1", "a plus cannot be in a label");
        assert_eq!(DISTRIBUTION_VERSION.get(&labels).unwrap().as_ref(), Some(&version));
        assert_eq!(RELEASE_VERSION.get(&labels).unwrap().as_ref(), Some(&version));
    }

    #[test]
    fn a_label_that_says_all_by_being_there_may_have_any_value() {
        let labels = BTreeMap::from([("cluster.x-k8s.io/control-plane".to_owned(), "true".to_owned())]);
        assert!(CONTROL_PLANE.is_in(&labels));
        assert_eq!(CONTROL_PLANE.get(&labels).unwrap(), Some(Present));
        assert_eq!(NODE_MASTER.get(&labels).unwrap(), None);
        assert_eq!(CONTROL_PLANE.text(&Present), "");
    }

    #[test]
    fn what_is_done_with_a_pod_is_spelled_as_cluster_api_reads_it() {
        let labels = BTreeMap::from([POD_DRAIN.entry(&PodDrain::WaitCompleted)]);
        assert_eq!(labels["cluster.x-k8s.io/drain"], "wait-completed");
        assert_eq!(POD_DRAIN.get(&labels).unwrap(), Some(PodDrain::WaitCompleted));
    }

    #[test]
    fn a_value_that_cannot_be_read_is_reported_with_its_key() {
        let labels = BTreeMap::from([(RELEASE_VERSION.name.to_owned(), "newest".to_owned())]);
        let refusal = RELEASE_VERSION.get(&labels).unwrap_err();
        assert_eq!(refusal.to_string(), "the value of release.giantswarm.io/version cannot be read");
        let cause = refusal.source().unwrap().to_string();
        assert!(cause.starts_with(r#""newest" is not a version"#), "{cause}");
    }

    #[test]
    fn a_release_is_found_by_each_prefix_of_its_version() {
        let labels = version_prefixes(&"v1.24.9+vmware.1-tkg.1".parse().unwrap());
        let keys: Vec<&str> = labels.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "v1",
                "v1.24",
                "v1.24.9",
                "v1.24.9---vmware",
                "v1.24.9---vmware.1",
                "v1.24.9---vmware.1-tkg",
                "v1.24.9---vmware.1-tkg.1",
            ]
        );
        assert!(labels.contains_key(&version_prefix(&"1.24".parse().unwrap())));
        assert!(!labels.contains_key(&version_prefix(&"1.24.10".parse().unwrap())));
    }
}
