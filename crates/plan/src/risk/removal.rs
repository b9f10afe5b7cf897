//! Which versions of built-in kinds are gone from which minor on: the deprecated API migration guide of Kubernetes, as data.
//! It has no alpha versions, and neither has this.

use std::collections::BTreeSet;

use windlass_api::version::{KubernetesVersion, MinorVersion};

/// A version of some kinds that is gone from a minor of Kubernetes 1 on.
struct Removal {
    api_version: &'static str,
    kinds: &'static [&'static str],
    since: u64,
    /// What has taken its place; `None` if nothing has.
    instead: Option<&'static str>,
}

const fn gone(
    api_version: &'static str,
    kinds: &'static [&'static str],
    since: u64,
    instead: Option<&'static str>,
) -> Removal {
    Removal { api_version, kinds, since, instead }
}

const REMOVALS: [Removal; 29] = [
    gone("extensions/v1beta1", &["Deployment", "DaemonSet", "ReplicaSet"], 16, Some("apps/v1")),
    gone("extensions/v1beta1", &["NetworkPolicy"], 16, Some("networking.k8s.io/v1")),
    gone("extensions/v1beta1", &["PodSecurityPolicy"], 16, Some("policy/v1beta1")),
    gone("extensions/v1beta1", &["Ingress"], 22, Some("networking.k8s.io/v1")),
    gone("apps/v1beta1", &["Deployment", "StatefulSet"], 16, Some("apps/v1")),
    gone("apps/v1beta2", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"], 16, Some("apps/v1")),
    gone("admissionregistration.k8s.io/v1beta1", WEBHOOKS, 22, Some("admissionregistration.k8s.io/v1")),
    gone("apiextensions.k8s.io/v1beta1", &["CustomResourceDefinition"], 22, Some("apiextensions.k8s.io/v1")),
    gone("apiregistration.k8s.io/v1beta1", &["APIService"], 22, Some("apiregistration.k8s.io/v1")),
    gone("authentication.k8s.io/v1beta1", &["TokenReview"], 22, Some("authentication.k8s.io/v1")),
    gone("authorization.k8s.io/v1beta1", REVIEWS, 22, Some("authorization.k8s.io/v1")),
    gone("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"], 22, Some("certificates.k8s.io/v1")),
    gone("coordination.k8s.io/v1beta1", &["Lease"], 22, Some("coordination.k8s.io/v1")),
    gone("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"], 22, Some("networking.k8s.io/v1")),
    gone("rbac.authorization.k8s.io/v1beta1", RBAC, 22, Some("rbac.authorization.k8s.io/v1")),
    gone("scheduling.k8s.io/v1beta1", &["PriorityClass"], 22, Some("scheduling.k8s.io/v1")),
    gone("storage.k8s.io/v1beta1", STORAGE, 22, Some("storage.k8s.io/v1")),
    gone("batch/v1beta1", &["CronJob"], 25, Some("batch/v1")),
    gone("discovery.k8s.io/v1beta1", &["EndpointSlice"], 25, Some("discovery.k8s.io/v1")),
    gone("events.k8s.io/v1beta1", &["Event"], 25, Some("events.k8s.io/v1")),
    gone("autoscaling/v2beta1", &["HorizontalPodAutoscaler"], 25, Some("autoscaling/v2")),
    gone("policy/v1beta1", &["PodDisruptionBudget"], 25, Some("policy/v1")),
    gone("policy/v1beta1", &["PodSecurityPolicy"], 25, None),
    gone("node.k8s.io/v1beta1", &["RuntimeClass"], 25, Some("node.k8s.io/v1")),
    gone("autoscaling/v2beta2", &["HorizontalPodAutoscaler"], 26, Some("autoscaling/v2")),
    gone("flowcontrol.apiserver.k8s.io/v1beta1", FLOWS, 26, Some("flowcontrol.apiserver.k8s.io/v1beta3")),
    gone("flowcontrol.apiserver.k8s.io/v1beta2", FLOWS, 29, Some(FLOW_CONTROL)),
    gone("flowcontrol.apiserver.k8s.io/v1beta3", FLOWS, 32, Some(FLOW_CONTROL)),
    gone("storage.k8s.io/v1beta1", &["CSIStorageCapacity"], 27, Some("storage.k8s.io/v1")),
];

const WEBHOOKS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
const STORAGE: &[&str] = &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"];
const RBAC: &[&str] = &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
const FLOWS: &[&str] = &["FlowSchema", "PriorityLevelConfiguration"];
const REVIEWS: &[&str] = &["SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"];
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io/v1";

/// Kinds of which nobody has a manifest: questions that are not kept, and what Kubernetes and drivers make by themselves.
const UNWRITTEN: [&str; 10] = [
    "TokenReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
    "SelfSubjectAccessReview",
    "CertificateSigningRequest",
    "Lease",
    "EndpointSlice",
    "Event",
    "CSINode",
    "CSIStorageCapacity",
];

/// A version of a kind that is gone.
pub(super) struct Gone {
    /// From which minor on.
    pub since: MinorVersion,
    /// What has taken its place; `None` if nothing has.
    pub instead: Option<&'static str>,
}

/// Whether a version of a kind that was there before is gone after an upgrade.
pub(super) fn between(from: &KubernetesVersion, to: &KubernetesVersion, api_version: &str, kind: &str) -> Option<Gone> {
    at(to, api_version, kind).filter(|gone| from.minor() < gone.since)
}

/// Whether a version of a kind is gone in a version of Kubernetes.
pub(super) fn at(version: &KubernetesVersion, api_version: &str, kind: &str) -> Option<Gone> {
    let is_meant = |row: &&Removal| row.api_version == api_version && row.kinds.contains(&kind);
    let row = REMOVALS.iter().find(is_meant)?;
    let since = MinorVersion { major: 1, minor: row.since };
    (version.minor() >= since).then_some(Gone { since, instead: row.instead })
}

/// The kinds that lose a version on an upgrade, as far as people write objects of them.
pub(super) fn kinds_between(from: &KubernetesVersion, to: &KubernetesVersion) -> BTreeSet<&'static str> {
    let minors = [from, to].map(KubernetesVersion::minor);
    let is_lost = |row: &&Removal| {
        let since = MinorVersion { major: 1, minor: row.since };
        minors[0] < since && since <= minors[1]
    };
    written(REMOVALS.iter().filter(is_lost))
}

/// All kinds that lose a version some day, as far as people write objects of them: whoever gathers evidence reads these.
pub fn kinds() -> BTreeSet<&'static str> {
    written(REMOVALS.iter())
}

fn written<'r>(rows: impl Iterator<Item = &'r Removal>) -> BTreeSet<&'static str> {
    rows.flat_map(|row| row.kinds).copied().filter(|kind| !UNWRITTEN.contains(kind)).collect()
}
