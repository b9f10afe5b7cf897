//! What objects are to a cluster, whatever they are called: envelopes and reviews name them so.

use windlass_api::name::{ClusterSecret, PoolName};

/// The Job that replaces the control plane.
pub(crate) const JOB: &str = "control-plane/Job";

/// The Job that gives an update up.
pub(crate) const ABORT_JOB: &str = "control-plane/abort/Job";

/// A Job of an earlier update.
pub(crate) const EARLIER_JOB: &str = "control-plane/earlier/Job";

/// A template that an earlier update has made.
pub(crate) const EARLIER_TEMPLATE: &str = "workers/earlier";

/// The Cluster itself.
pub(crate) const CLUSTER: &str = "cluster/Cluster";

/// The control plane as a whole, where Cluster API rolls it.
pub(crate) const CONTROL_PLANE: &str = "control-plane";

/// The object by which Cluster API rolls the control plane.
pub(crate) const KUBEADM_CONTROL_PLANE: &str = "control-plane/KubeadmControlPlane";

/// The template of its machines, by its kind.
pub(crate) fn control_plane_template(kind: &str) -> String {
    format!("{CONTROL_PLANE}/{kind}")
}

/// What earlier releases have left behind: bound to a distribution that no node has any more, or on record and no part of the
/// release.
pub(crate) const STALE: &str = "addon/stale";

/// The record of what was applied, which all add-ons build on.
pub(crate) const APPLIED: &str = "addons/applied";

/// The copy of the release, which everything builds on.
pub(crate) const RELEASE: &str = "release";

/// The copy of a release that the cluster has no more.
pub(crate) const EARLIER_RELEASE: &str = "release/earlier";

/// A machine of the control plane, with all that replace it.
pub(crate) fn control_plane(ordinal: u32) -> String {
    format!("control-plane/{ordinal}")
}

/// A pool of workers.
pub(crate) fn pool(pool: &PoolName) -> String {
    format!("workers/{pool}")
}

/// A certificate.
pub(crate) fn secret(secret: ClusterSecret) -> String {
    format!("secret/{secret}")
}
