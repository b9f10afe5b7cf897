//! From what a cluster says it should be to a [`Target`]: the release of its version, and what its owner chose.
//!
//! A version without a release, or a release that cannot be read, is something to tell the owner about, and no error: trying
//! again would not help. The watch of images looks at the cluster again when one comes that fits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_api::annotation;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateEnd, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::machine_image::Distribution;
use windlass_api::version::{KubernetesVersion, VersionError};
use windlass_plan::release::Release;
use windlass_plan::target::{Target, TargetError};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use crate::observe::orders::who_aborts;
use crate::said::with_causes;

/// Why there is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// Nobody has said which release.
    #[error(
        "spec.distribution.fullVersion is not set: admission sets it from spec.distribution.version, and did not see this"
    )]
    NoVersion,
    /// The version is none.
    #[error("spec.distribution.fullVersion: {0}")]
    MalformedVersion(#[source] VersionError),
    /// No image has that version.
    #[error("there is no VirtualMachineImage with the distribution {version}")]
    NoRelease {
        /// Which version.
        version: KubernetesVersion,
    },
    /// The image of that version cannot be read as a release.
    #[error("{why}")]
    MalformedRelease {
        /// What is wrong with which image.
        why: String,
    },
    /// Something else in the cluster is not what it should be.
    #[error(transparent)]
    MalformedCluster(TargetError),
}

impl Unresolved {
    /// Why, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoVersion => "VersionNotResolved",
            Self::MalformedVersion(_) => "VersionMalformed",
            Self::NoRelease { .. } => "ReleaseNotFound",
            Self::MalformedRelease { .. } => "ReleaseMalformed",
            Self::MalformedCluster(_) => "ClusterMalformed",
        }
    }
}

/// The releases that there are, each read once.
pub(crate) struct Releases {
    images: Cache<VirtualMachineImage>,
    /// By the name of the image. Reading is parsing pages of YAML.
    read: Mutex<BTreeMap<String, Read>>,
}

/// What came of reading an image.
struct Read {
    /// The resource version that it was read at.
    at: Option<String>,
    release: Result<Release, Unresolved>,
}

impl Releases {
    pub(crate) fn new(images: Cache<VirtualMachineImage>) -> Self {
        Self { images, read: Mutex::default() }
    }

    /// The release of a version.
    fn of(&self, version: &KubernetesVersion) -> Result<Release, Unresolved> {
        let images = self.images.list();
        let image = images.iter().find(|image| distribution(image).as_ref() == Some(version));
        let image = image.ok_or_else(|| Unresolved::NoRelease { version: version.clone() })?;
        let (name, state) = (image.metadata.name.clone().unwrap_or_default(), &image.metadata.resource_version);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match read.get(&name) {
            Some(known) if known.at == *state => known.release.clone(),
            _ => {
                let malformed = |error| Unresolved::MalformedRelease { why: with_causes(&error) };
                let release = Release::from_image(image).map_err(malformed);
                read.insert(name, Read { at: state.clone(), release: release.clone() });
                release
            }
        }
    }
}

/// The distribution that an image says it is, if it says so in a way that can be read.
pub(crate) fn distribution(image: &VirtualMachineImage) -> Option<KubernetesVersion> {
    let text = image.metadata.annotations.as_ref()?.get(annotation::DISTRIBUTION.name)?;
    serde_json::from_str::<Distribution>(text).ok().map(|read| read.distribution.version)
}

/// The clusters that are of an image's release, which may have come, gone or changed.
pub(crate) fn clusters_of(image: &VirtualMachineImage, clusters: &Cache<TanzuKubernetesCluster>) -> Vec<Key> {
    let distribution = distribution(image);
    let concerned = |cluster: &Arc<TanzuKubernetesCluster>| {
        let version = cluster.spec.distribution.full_version.as_deref().map(str::parse);
        // An image that cannot be read may have been the one that anybody had.
        distribution.is_none() || matches!(version, Some(Ok(version)) if Some(&version) == distribution.as_ref())
    };
    clusters.list().iter().filter(|cluster| concerned(cluster)).map(|cluster| Key::of(&**cluster)).collect()
}

/// What a cluster is to be now. Until an update has succeeded that is what the update was begun for, whatever the cluster says
/// meanwhile: a later wish waits for its turn, and one that failed is tried again as it was. One that was given up is not begun
/// again by itself: until its owner asks for something else, the cluster is to be what it was before.
pub(crate) fn target(
    releases: &Releases,
    cluster: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
) -> Result<Target, Unresolved> {
    let state = |update: &ClusterUpdate| update.status.as_ref().and_then(|status| status.state);
    match latest.map(|update| (update, state(update))) {
        None | Some((_, Some(UpdateState::Succeeded))) => asked(releases, cluster),
        Some((update, Some(UpdateState::Aborted))) => {
            let target = asked(releases, cluster)?;
            let is_given_up = who_aborts(update).is_some() && target.end() == update.spec.to;
            if is_given_up { back(releases, cluster, update) } else { Ok(target) }
        }
        Some((update, Some(UpdateState::Running | UpdateState::Failed) | None)) => {
            end(releases, cluster, &update.spec.to)
        }
    }
}

/// What a cluster was when an update began.
pub(crate) fn back(
    releases: &Releases,
    cluster: &TanzuKubernetesCluster,
    update: &ClusterUpdate,
) -> Result<Target, Unresolved> {
    end(releases, cluster, &update.spec.from)
}

/// What its owner asks for.
fn asked(releases: &Releases, cluster: &TanzuKubernetesCluster) -> Result<Target, Unresolved> {
    let version = cluster.spec.distribution.full_version.as_deref().ok_or(Unresolved::NoVersion)?;
    let release = releases.of(&version.parse().map_err(Unresolved::MalformedVersion)?)?;
    Target::new(cluster, release).map_err(Unresolved::MalformedCluster)
}

/// One end of an update.
fn end(releases: &Releases, cluster: &TanzuKubernetesCluster, end: &UpdateEnd) -> Result<Target, Unresolved> {
    let release = releases.of(&end.distribution.parse().map_err(Unresolved::MalformedVersion)?)?;
    Target::of_update(cluster, end, release).map_err(Unresolved::MalformedCluster)
}
