//! The way of a cluster to a release: where it is, and the updates that lead on from there.
//!
//! Nothing about a way is kept anywhere: whoever was interrupted asks again, and gets what is left of it.

use std::fmt;

use serde::Serialize;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_api::{annotation, label};
use windlass_plan::release::Release;
use windlass_plan::resolve::catalogue::ReleaseObject;
use windlass_plan::resolve::{self, Hop, Position, Refusal};
use windlass_rehearse::rehearsal::Wish;

use crate::error::{Explained, Kind};
use crate::output;

/// The way of a cluster to a release.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// What the cluster is asked to be now.
    pub from: KubernetesVersion,
    /// What it is to be in the end.
    pub to: KubernetesVersion,
    /// What it is updated to, one after the other. Empty if there is nothing to do.
    pub hops: Vec<WayHop>,
    /// Releases are shown as labels name them.
    #[serde(skip)]
    pub by_label: bool,
}

/// One update on the way.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WayHop {
    /// The release.
    pub to: KubernetesVersion,
    /// Whether the workers are led there, too. Where not, they keep what they have.
    pub workers: bool,
}

impl Way {
    /// The way to the newest release that begins like this.
    pub fn find(
        cluster: &TanzuKubernetesCluster,
        from: &KubernetesVersion,
        to: &VersionPrefix,
        releases: &[Release],
    ) -> Result<Self, Box<Refusal>> {
        let to = match resolve::newest(to, releases) {
            Ok(release) => release,
            // A release that is not for hints can still be named.
            Err(refusal) => {
                to.as_str().parse().ok().and_then(|full| resolve::exact(&full, releases).ok()).ok_or(refusal)?
            }
        };
        let kept = waits(cluster, from);
        let workers = kept.as_ref().unwrap_or(from);
        // A release that is gone is known by its version alone.
        let known = |version| resolve::exact(version, releases).ok();
        let (here, oldest) = (known(from), known(workers));
        let position = Position {
            control_plane: here.as_ref().map_or(from as &dyn resolve::Versioned, |release| release),
            workers: Some(oldest.as_ref().map_or(workers as &dyn resolve::Versioned, |release| release)),
        };
        let hops = resolve::hops(position, &to.distribution, releases).map_err(Box::new)?;
        let hop = |hop: &Hop<'_, Release>| WayHop { to: hop.release.distribution.clone(), workers: hop.workers };
        let hops = hops.iter().map(hop).collect();
        Ok(Self { from: from.clone(), to: to.distribution.clone(), hops, by_label: false })
    }

    /// The way of a cluster of a class to the newest release that begins like this, and that can be used. Its workers always go
    /// along: there is one release for all of its machines.
    pub fn of_class(
        from: &KubernetesVersion,
        to: &VersionPrefix,
        releases: &[ReleaseObject],
    ) -> Result<Self, Box<Refusal>> {
        let to = resolve::newest(to, releases)?;
        let position = Position { control_plane: from, workers: None };
        let hops = resolve::hops(position, &to.version, releases).map_err(Box::new)?;
        let hop = |hop: &Hop<'_, ReleaseObject>| WayHop { to: hop.release.version.clone(), workers: true };
        let hops = hops.iter().map(hop).collect();
        Ok(Self { from: from.clone(), to: to.version.clone(), hops, by_label: false })
    }

    /// The way of a cluster whose release is a label. Its workers always go along, too; how far two releases are apart, their
    /// Kubernetes says.
    pub fn by_label(from: &Release, to: &Release, releases: &[&Release]) -> Result<Self, Box<Refusal>> {
        let position = Position { control_plane: from, workers: None };
        let hops = resolve::hops(position, &to.distribution, releases).map_err(Box::new)?;
        let hop = |hop: &Hop<'_, &Release>| WayHop { to: hop.release.distribution.clone(), workers: true };
        let (from, to) = (from.distribution.clone(), to.distribution.clone());
        Ok(Self { from, to, hops: hops.iter().map(hop).collect(), by_label: true })
    }

    /// A release, as clusters of that sort name it.
    pub fn named(&self, version: &KubernetesVersion) -> String {
        if self.by_label { version.bare().to_string() } else { version.to_string() }
    }

    /// Whether it takes more than one ordinary update to go it: there are several, or the workers were left behind before.
    pub fn is_long(&self) -> bool {
        self.hops.len() > 1 || self.hops.iter().any(|hop| hop.to == self.from)
    }

    /// What a cluster is told at a hop where its workers wait.
    pub fn on_the_way_to(&self, hop: &WayHop) -> Option<&KubernetesVersion> {
        (!hop.workers).then_some(&self.to)
    }

    /// What a rehearsal asks at a hop.
    pub fn wish(&self, hop: &WayHop) -> Wish {
        Wish::Release { to: hop.to.to_string(), on_the_way_to: self.on_the_way_to(hop).cloned() }
    }

    /// The way as a table.
    pub fn table(&self) -> String {
        let from = [&self.from].into_iter().chain(self.hops.iter().map(|hop| &hop.to));
        let rows = from.zip(&self.hops).zip(1..).map(|((from, hop), step): (_, u32)| {
            let workers = if hop.workers { "too" } else { "wait" };
            vec![step.to_string(), self.named(from), self.named(&hop.to), workers.to_owned()]
        });
        output::table(&["STEP", "FROM", "TO", "WORKERS"], rows)
    }
}

/// As a line: `v1.15.5 -> v1.16.8 (workers wait) -> v1.17.4`.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.named(&self.from))?;
        for hop in &self.hops {
            write!(f, " -> {}{}", self.named(&hop.to), if hop.workers { "" } else { " (workers wait)" })?;
        }
        Ok(())
    }
}

/// What the oldest machines have of a cluster that is at a hop, and whose workers may have been left behind.
pub fn waits(cluster: &TanzuKubernetesCluster, at: &KubernetesVersion) -> Option<KubernetesVersion> {
    let end = annotation::ON_THE_WAY_TO.get(cluster.metadata.annotations.as_ref()?).ok()??;
    let oldest: KubernetesVersion = cluster.status.as_ref()?.version.as_deref()?.parse().ok()?;
    (end > *at).then_some(oldest)
}

/// The release that a cluster was resolved to.
pub fn current(cluster: &TanzuKubernetesCluster) -> Result<KubernetesVersion, Unresolved> {
    let name = || cluster.metadata.name.clone().unwrap_or_default();
    let text = cluster.spec.distribution.full_version.as_deref();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Unresolved { cluster: name(), field: "spec.distribution.fullVersion".to_owned() })
}

/// A cluster without a release has no way to another.
#[derive(Debug, thiserror::Error)]
#[error("the cluster {cluster} has no release: {field} is not a version")]
pub struct Unresolved {
    cluster: String,
    field: String,
}

impl Unresolved {
    /// A cluster of a class has it in a label.
    pub fn of_class(cluster: &ClusterName) -> Self {
        Self { cluster: cluster.to_string(), field: format!("metadata.labels[{}]", label::RELEASE) }
    }

    /// And so has one whose release is a label.
    pub fn by_label(cluster: &ClusterName) -> Self {
        Self { cluster: cluster.to_string(), field: format!("metadata.labels[{}]", label::RELEASE_VERSION) }
    }
}

impl Explained for Unresolved {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some(format!("windlass status {}", self.cluster))
    }
}
