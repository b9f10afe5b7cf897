//! What each part of Windlass may do on a management cluster: the table that roles are made of. A test runs everything, and fails
//! when a right is missing here, or is used by nobody.
//!
//! No right is one to everything, and none lets somebody give themselves more. Two are wider than they are used, because roles
//! cannot say it better ([installing](../../../docs/installing.md) has why): the Secrets of clusters are read, and those of new
//! ones made, in whichever namespace clusters are; and what packages are configured by may be of any kind, so that a cluster whose
//! packages have values of further kinds needs a role of its own for them.

use crate::certificates::SECRET;
use crate::{hooks, webhooks};

/// A part of Windlass with an account of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The controllers, in whichever replica leads.
    Controllers,
    /// Whoever answers reviews of admission and questions of Cluster API.
    Answers,
    /// The pods of the Jobs that replace control planes.
    Upgrader,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Controllers, Self::Answers, Self::Upgrader];

    /// Its name, which its account and its roles have.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controllers => "windlass-controllers",
            Self::Answers => "windlass-answers",
            Self::Upgrader => "windlass-upgrader",
        }
    }
}

/// Namespaces in which a part may have more rights than elsewhere.
pub const NAMESPACES: [&str; 3] = [webhooks::NAMESPACE, crate::reconcile::JOB_NAMESPACE, SYSTEM];
/// Where releases and their packages are.
pub const SYSTEM: &str = crate::releases::SYSTEM_NAMESPACE;

/// Where the Jobs are.
const JOBS: &str = crate::reconcile::JOB_NAMESPACE;

/// Something that a part may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The group; nothing for what is Kubernetes' own.
    pub group: &'static str,
    /// Resources and subresources.
    pub resources: &'static [&'static str],
    /// What may be done to them.
    pub verbs: &'static [&'static str],
    /// Only in this namespace.
    pub namespace: Option<&'static str>,
    /// Only to objects of these names; to all where there are none.
    pub names: &'static [&'static str],
    /// Why there is such a right although nothing in a World uses it.
    pub why: Option<&'static str>,
}

const fn right(group: &'static str, resources: &'static [&'static str], verbs: &'static [&'static str]) -> Right {
    Right { group, resources, verbs, namespace: None, names: &[], why: None }
}

impl Right {
    const fn within(self, namespace: &'static str) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    const fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    const fn because(self, why: &'static str) -> Self {
        Self { why: Some(why), ..self }
    }
}

const LEASES: &str = "a World has no replicas: tests of leadership use it";
const NUMBERS: &str = "metrics are made of it, for which nobody asks in a World";
const AGAIN: &str = "what was told of one upgrade is told again of the next";
const CERTIFICATES: &str = "a World has no sockets: tests of certificates use it";

/// The rights of a part.
pub fn of(component: Component) -> &'static [Right] {
    match component {
        Component::Controllers => CONTROLLERS,
        Component::Answers => ANSWERS,
        Component::Upgrader => UPGRADER,
    }
}

/// What a part may do to the templates of machines of each infrastructure that was added: what it does to those of the built-in one,
/// for clusters whose release is a label.
pub fn of_templates(component: Component) -> &'static [&'static str] {
    match component {
        Component::Controllers => &["get", "create"],
        Component::Answers => &["get"],
        Component::Upgrader => &[],
    }
}

const CONTROLLERS: &[Right] = &[
    right("", &["configmaps"], &["list", "watch", "create", "delete"]),
    right("", &["namespaces"], &["list", "watch"]),
    right("", &["secrets"], &["get", "list", "create", "patch"]),
    right("", &["pods"], &["list"]).within(JOBS),
    right("batch", &["jobs"], &["list", "watch", "create", "delete"]).within(JOBS),
    right("bootstrap.cluster.x-k8s.io", &["kubeadmconfigs"], &["list", "create"]),
    right("bootstrap.cluster.x-k8s.io", &["kubeadmconfigtemplates"], &["get", "list", "watch", "create", "delete"]),
    right("cluster.x-k8s.io", &["clusterclasses"], &["list", "watch", "create", "delete"]),
    right("cluster.x-k8s.io", &["clusters"], &["get", "list", "watch", "create", "patch", "delete"]),
    right("cluster.x-k8s.io", &["clusters/status"], &["patch"]),
    right("cluster.x-k8s.io", &["machinedeployments"], &["list", "watch", "create", "patch", "delete"]),
    right("cluster.x-k8s.io", &["machines"], &["list", "watch", "create", "patch"]),
    right("cluster.x-k8s.io", &["machinesets"], &["list"]),
    right("cni.tanzu.vmware.com", &["antreaconfigs"], &["get", "create", "patch"]),
    right("controlplane.cluster.x-k8s.io", &["kubeadmcontrolplanes"], &["get", "list", "watch", "patch"]),
    right("controlplane.cluster.x-k8s.io", &["kubeadmcontrolplanetemplates"], &["list", "create", "delete"]),
    right("controlplane.cluster.x-k8s.io", &["kubeadmcontrolplanetemplates"], &["get"]).within(SYSTEM),
    right("cpi.tanzu.vmware.com", &["vspherecpiconfigs"], &["get", "create", "patch"]),
    right("csi.tanzu.vmware.com", &["vspherecsiconfigs"], &["get", "create", "patch"]),
    right("data.packaging.carvel.dev", &["packages"], &["get"]).within(SYSTEM),
    right("events.k8s.io", &["events"], &["get", "create", "patch"]),
    right("infrastructure.cluster.vmware.com", &["wcpclusters", "wcpmachines"], &["get", "create"]),
    right("infrastructure.cluster.vmware.com", &["wcpclustertemplates"], &["list", "create", "delete"]),
    right("infrastructure.cluster.vmware.com", &["wcpclustertemplates"], &["get"]).within(SYSTEM),
    right("infrastructure.cluster.vmware.com", &["wcpmachinetemplates"], &["get", "list", "watch", "create", "delete"]),
    right("kappctrl.k14s.io", &["apps"], &["get"]),
    right("packaging.carvel.dev", &["packageinstalls"], &["get", "list", "watch", "create", "patch"]),
    right("run.tanzu.vmware.com", &["clusterbootstraps"], &["get", "list", "watch", "create", "patch"]),
    right("run.tanzu.vmware.com", &["clusterbootstraps/status", "tanzukubernetesclusters/status"], &["patch"]),
    right("run.tanzu.vmware.com", &["kappcontrollerconfigs"], &["get", "create", "patch"]),
    right("run.tanzu.vmware.com", &["osimages"], &["list", "watch", "patch"]),
    right("run.tanzu.vmware.com", &["tanzukubernetesclusters"], &["list", "watch", "patch"]),
    right("run.tanzu.vmware.com", &["tanzukubernetesreleases"], &["get", "list", "watch", "patch"]),
    right("run.tanzu.vmware.com", &["tanzukubernetesreleases/status"], &["patch"]),
    right("run.tanzu.vmware.com", &["clusterbootstraptemplates"], &["get"]).within(SYSTEM),
    right("runtime.cluster.x-k8s.io", &["extensionconfigs"], &["create"]),
    right("vmoperator.vmware.com", &["virtualmachineimages"], &["list", "watch"]),
    right("windlass.dev", &["clusterupdates"], &["list", "watch", "create", "patch"]),
    right("windlass.dev", &["clusterupdates/status"], &["patch"]),
    right("coordination.k8s.io", &["leases"], &["create"]).within(webhooks::NAMESPACE).because(LEASES),
    right("coordination.k8s.io", &["leases"], &["get", "update"])
        .within(webhooks::NAMESPACE)
        .named(&["windlass-controllers"])
        .because(LEASES),
];

const ANSWERS: &[Right] = &[
    right("run.tanzu.vmware.com", &["tanzukubernetesclusters"], &["list"]).because(NUMBERS),
    // Releases by label are ConfigMaps of a namespace that may not be there yet, so that no role can be made in it.
    right("", &["configmaps"], &["list"]),
    right("", &["namespaces", "secrets"], &["get"]),
    right("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    right("bootstrap.cluster.x-k8s.io", &["kubeadmconfigtemplates"], &["get"]),
    right("cluster.x-k8s.io", &["clusterclasses", "clusters"], &["get"]),
    right("cluster.x-k8s.io", &["machinedeployments"], &["list"]),
    right("cni.tanzu.vmware.com", &["antreaconfigs"], &["get"]),
    right("controlplane.cluster.x-k8s.io", &["kubeadmcontrolplanes"], &["get"]),
    right("infrastructure.cluster.vmware.com", &["wcpmachinetemplates"], &["get"]),
    right("cpi.tanzu.vmware.com", &["vspherecpiconfigs"], &["get"]),
    right("csi.tanzu.vmware.com", &["vspherecsiconfigs"], &["get"]),
    right("data.packaging.carvel.dev", &["packages"], &["list"]).within(SYSTEM),
    right("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    right("events.k8s.io", &["events"], &["create"]),
    right("events.k8s.io", &["events"], &["get", "patch"]).because(AGAIN),
    right("run.tanzu.vmware.com", &["clusterbootstraps", "kappcontrollerconfigs"], &["get"]),
    right("run.tanzu.vmware.com", &["clusterbootstraptemplates"], &["get"]).within(SYSTEM),
    right("run.tanzu.vmware.com", &["osimages"], &["list"]),
    right("run.tanzu.vmware.com", &["tanzukubernetesreleases"], &["get", "list"]),
    right("storage.k8s.io", &["storageclasses"], &["list"]),
    right("vmoperator.vmware.com", &["virtualmachineclasses", "virtualmachineimages"], &["list"]),
    right("windlass.dev", &["clusterupdates"], &["list"]),
    right("", &["secrets"], &["get", "update"]).within(webhooks::NAMESPACE).named(&[SECRET]).because(CERTIFICATES),
    right(
        "admissionregistration.k8s.io",
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        &["get", "patch"],
    )
    .named(&[webhooks::MUTATING, webhooks::VALIDATING])
    .because(CERTIFICATES),
    right("runtime.cluster.x-k8s.io", &["extensionconfigs"], &["get", "patch"])
        .named(&[hooks::CONFIG])
        .because(CERTIFICATES),
];

const UPGRADER: &[Right] = &[
    right("", &["secrets"], &["get", "patch"]),
    right("bootstrap.cluster.x-k8s.io", &["kubeadmconfigs"], &["get", "create"]),
    right("cluster.x-k8s.io", &["clusters"], &["get"]),
    right("cluster.x-k8s.io", &["machines"], &["get", "list", "watch", "create", "patch", "delete"]),
    right("infrastructure.cluster.vmware.com", &["wcpmachines"], &["get", "create"]),
    right("run.tanzu.vmware.com", &["tanzukubernetesclusters"], &["get"]),
];
