//! Releases that a label names: sets of `ConfigMap`s, and what becomes of a classic cluster whose label is changed.

pub mod abort;
pub mod course;

use std::collections::BTreeMap;
use std::fmt;

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::ReleaseConfigMap;
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::hint::{change, newest, offered};
use super::{Refusal, listed};
use crate::profile::Profiles;
use crate::release::{Release, ReleaseError};

/// Where releases are published. One place: a release that anybody could add to, in a namespace of their own, would be none.
pub const NAMESPACE: &str = "giantswarm";

/// The owner that a Cluster has where it is a part of something that Windlass looks after in another way.
const OTHER_OWNER: &str = "TanzuKubernetesCluster";

/// The releases that there are, each read or refused, by their versions.
#[derive(Debug, Default)]
pub struct Published {
    releases: BTreeMap<KubernetesVersion, Result<Release, ReleaseError>>,
    /// Those whose label is no version: they are of no release.
    stray: Vec<ReleaseError>,
    /// The infrastructure that they are for.
    profiles: Profiles,
}

/// Why a cluster does not get the release that its label names.
#[derive(Debug, thiserror::Error)]
pub enum Unlabelled {
    /// The label is no version.
    #[error("metadata.labels[{}]: {why}", label::RELEASE_VERSION)]
    Label {
        /// What is wrong.
        why: String,
    },
    /// There is no release of that version.
    #[error("there is no release {}; there are {}", version.bare(), listed(.known.iter().map(KubernetesVersion::bare)))]
    NoRelease {
        /// The version.
        version: KubernetesVersion,
        /// Those that there are.
        known: Vec<KubernetesVersion>,
    },
    /// The release cannot be read, and nothing of it is used.
    #[error("release {} cannot be used: {why}", version.bare())]
    Malformed {
        /// The version.
        version: KubernetesVersion,
        /// What is wrong with which object.
        why: String,
    },
    /// A rule forbids it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The Cluster is of a sort that has its release elsewhere.
    #[error("metadata.labels[{}]: {why}", label::RELEASE_VERSION)]
    OtherSort {
        /// Which, and where.
        why: &'static str,
    },
}

impl From<Refusal> for Unlabelled {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl Unlabelled {
    /// Why, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Label { .. } => "LabelMalformed",
            Self::NoRelease { .. } => "ReleaseNotFound",
            Self::Malformed { .. } => "ReleaseMalformed",
            Self::Refused(_) => "ReleaseRefused",
            Self::OtherSort { .. } => "LabelIgnored",
        }
    }

    /// What a person can do about it.
    pub fn way_out(&self) -> String {
        match self {
            Self::Label { .. } | Self::NoRelease { .. } => {
                format!(
                    "label the Cluster with a release that there is (windlass release list), or publish its ConfigMaps in {NAMESPACE}"
                )
            }
            Self::Malformed { .. } => {
                "whoever publishes the release has to mend that object; nothing of it is used until then".to_owned()
            }
            Self::Refused(_) => "windlass release list shows the releases, and which of them are for use".to_owned(),
            Self::OtherSort { .. } => format!("kubectl label cluster NAME {}-", label::RELEASE_VERSION.name),
        }
    }
}

impl Published {
    /// Reads all of them, for clusters on the infrastructure that there are profiles of. A release that is malformed spoils no other.
    pub fn read(maps: &[ReleaseConfigMap], profiles: Profiles) -> Self {
        let mut by_version: BTreeMap<KubernetesVersion, Vec<ReleaseConfigMap>> = BTreeMap::new();
        let mut published = Self { profiles, ..Self::default() };
        for map in maps {
            let labels = map.metadata.labels.clone().unwrap_or_default();
            if let Ok(Some(version)) = label::RELEASE_VERSION.get(&labels) {
                by_version.entry(version).or_default().push(map.clone());
            } else {
                // What is wrong with it is said by whoever reads it.
                let read = Release::from_config_maps(std::slice::from_ref(map), &published.profiles);
                published.stray.extend(read.err());
            }
        }
        let read = |maps: Vec<ReleaseConfigMap>| Release::from_config_maps(&maps, &published.profiles);
        published.releases = by_version.into_iter().map(|(version, maps)| (version, read(maps))).collect();
        published
    }

    /// The infrastructure that they are for.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// All that can be read, oldest first.
    pub fn releases(&self) -> impl Iterator<Item = &Release> {
        self.releases.values().filter_map(|release| release.as_ref().ok())
    }

    /// What is wrong with all others.
    pub fn malformed(&self) -> impl Iterator<Item = &ReleaseError> {
        self.releases.values().filter_map(|release| release.as_ref().err()).chain(&self.stray)
    }

    /// The release of a version.
    pub fn find(&self, version: &KubernetesVersion) -> Result<&Release, Unlabelled> {
        match self.releases.get(version) {
            Some(Ok(release)) => Ok(release),
            Some(Err(error)) => Err(Unlabelled::Malformed { version: version.clone(), why: with_causes(error) }),
            None => {
                let known = self.releases.keys().cloned().collect();
                Err(Unlabelled::NoRelease { version: version.clone(), known })
            }
        }
    }
}

impl Published {
    /// The release that somebody means who names it, or begins to: the newest that begins so and is for use.
    pub fn chosen(&self, asked: &VersionPrefix) -> Result<&Release, Unlabelled> {
        // In full it is meant, whatever its state.
        if let Ok(version) = asked.as_str().parse() {
            return self.find(&version);
        }
        let releases: Vec<&Release> = self.releases().collect();
        Ok(newest(asked, &releases).copied()?)
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_causes(cause)),
        None => error.to_string(),
    }
}

/// The release that a Cluster is labelled with, if it is.
pub fn asked(cluster: &Cluster) -> Result<Option<KubernetesVersion>, Unlabelled> {
    let labels = cluster.metadata.labels.clone().unwrap_or_default();
    let asked = label::RELEASE_VERSION.get(&labels);
    let asked = asked.map_err(|error| Unlabelled::Label { why: format!("{error}: {}", error.source) })?;
    if asked.is_some() {
        belongs(cluster)?;
    }
    Ok(asked)
}

/// Refuses the label on a Cluster that has its release elsewhere.
fn belongs(cluster: &Cluster) -> Result<(), Unlabelled> {
    if cluster.spec.topology.is_some() {
        let why = "a cluster of a class has its release in spec.topology.version";
        return Err(Unlabelled::OtherSort { why });
    }
    let owners = cluster.metadata.owner_references.as_deref().unwrap_or_default();
    if owners.iter().any(|owner| owner.kind == OTHER_OWNER) {
        let why = "its TanzuKubernetesCluster has its release, in spec.distribution";
        return Err(Unlabelled::OtherSort { why });
    }
    Ok(())
}

/// Whether a cluster that has one release, or none yet, may be led to another. `kubernetes` is the version of its control plane.
pub fn may_go(
    release: &Release,
    before: Option<&KubernetesVersion>,
    kubernetes: Option<&KubernetesVersion>,
) -> Result<(), Unlabelled> {
    offered(&release, before)?;
    if let Some(before) = before {
        not_older(before, &release.distribution)?;
    }
    if let Some(from) = kubernetes {
        change(from, &release.kubernetes)?;
    }
    Ok(())
}

/// Refuses an older release. They are numbered as their publisher likes: their majors may be minors of Kubernetes.
pub(crate) fn not_older(from: &KubernetesVersion, to: &KubernetesVersion) -> Result<(), Refusal> {
    if to < from { Err(Refusal::Downgrade { from: from.clone(), to: to.clone() }) } else { Ok(()) }
}

impl fmt::Display for Published {
    /// The versions that can be used.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(self.releases().map(|release| release.distribution.bare().to_string())))
    }
}
