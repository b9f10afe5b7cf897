//! By which of two fields a release is asked for: the label that names it, or the version of the topology.
//!
//! Both are there in a cluster that was resolved once, and each follows the other. What somebody has just changed is the wish.

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::label;
use windlass_api::name::ReleaseName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::release_of;
use crate::resolve::cluster::Asked;

/// By what a release is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// By its label.
    Release(ReleaseName),
    /// By its version.
    Version,
    /// By both, which must agree.
    Both(ReleaseName),
}

impl Wish {
    pub(super) fn of(cluster: &Cluster, before: Option<&Cluster>) -> Self {
        let Some(release) = release_of(cluster) else { return Self::Version };
        let label = before.is_none_or(|before| text(before) != text(cluster));
        let version = before.is_none_or(|before| version(before) != version(cluster));
        match (label, version) {
            (true, false) => Self::Release(release),
            (true, true) => Self::Both(release),
            (false, _) => Self::Version,
        }
    }
}

/// The release that the label names and nobody has heard of yet, as a version in full: neither field has changed, but the version
/// is the one that was written for another release, and of this one nothing is on record.
pub(super) fn unheard(asked: &Asked, cluster: &Cluster, before: Option<&Cluster>) -> Option<VersionPrefix> {
    let before = before?;
    let changed = text(before) != text(cluster) || version(before) != version(cluster);
    let release = release_of(cluster).filter(|_| !changed)?;
    let recorded = &asked.control_plane.recorded;
    let written = version(cluster)?.parse::<KubernetesVersion>().ok()?;
    let of_another = recorded.of(&release).is_none() && recorded.at(&written).is_some();
    release.version().ok().filter(|_| of_another).map(VersionPrefix::from)
}

/// The same cluster, asked for by the version of a release in full.
pub(super) fn asking_for(cluster: &Cluster, release: &ReleaseName) -> Cluster {
    let mut cluster = cluster.clone();
    if let (Some(topology), Ok(version)) = (cluster.spec.topology.as_mut(), release.version()) {
        topology.version = version.to_string();
    }
    cluster
}

/// Whether a release begins with what was typed. One that is not named after its version is not known to.
pub(super) fn begins(version: &VersionPrefix, release: &ReleaseName) -> bool {
    release.version().is_ok_and(|release| version.matches(&release))
}

fn text(cluster: &Cluster) -> Option<&str> {
    cluster.metadata.labels.as_ref()?.get(label::RELEASE.name).map(String::as_str)
}

fn version(cluster: &Cluster) -> Option<&str> {
    cluster.spec.topology.as_ref().map(|topology| topology.version.as_str())
}
