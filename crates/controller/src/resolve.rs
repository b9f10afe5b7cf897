//! From what a cluster says it should be to a [`Target`]: the release of its version, and what its owner chose.
//!
//! A version without a release, or a release that cannot be read, is something to tell the owner about, and no error: trying
//! again would not help. The watch of images looks at the cluster again when one comes that fits. What a cluster has, and what an
//! update leads to that was begun, is kept ([`kept`]), and does not depend on any image.

pub(crate) mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use windlass_api::annotation;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateEnd, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::machine_image::Distribution;
use windlass_api::name::ImageName;
use windlass_api::version::{KubernetesVersion, VersionError};
use windlass_plan::release::Release;
use windlass_plan::target::{Target, TargetError};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use crate::observe::orders::who_aborts;
use crate::reconcile::by_cluster_name;
use crate::reconcile::context::Context;
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
    /// Several images have that version, and the cluster is made from none of them.
    #[error("the distribution {version} is that of several VirtualMachineImages, {images}; delete all but one")]
    Ambiguous {
        /// Which version.
        version: KubernetesVersion,
        /// The names of the images.
        images: String,
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
            Self::Ambiguous { .. } => "ReleaseAmbiguous",
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
    /// What was read of what is kept.
    copies: kept::Copies,
}

/// What came of reading an image.
struct Read {
    /// The resource version that it was read at.
    at: Option<String>,
    release: Result<Release, Unresolved>,
}

impl Releases {
    pub(crate) fn new(images: Cache<VirtualMachineImage>) -> Self {
        Self { images, read: Mutex::default(), copies: kept::Copies::default() }
    }

    /// The release of a version. Of several images of it the one counts that the cluster is made from.
    fn of(&self, version: &KubernetesVersion, in_use: &BTreeSet<String>) -> Result<Release, Unresolved> {
        self.look_at(version, in_use, Clone::clone)
    }

    /// The digest of what the image of a version says. A release is large, and this is asked more often.
    fn digest(&self, version: &KubernetesVersion, in_use: &BTreeSet<String>) -> Result<Option<String>, Unresolved> {
        self.look_at(version, in_use, |release| release.original_digest().map(str::to_owned))
    }

    fn look_at<T>(
        &self,
        version: &KubernetesVersion,
        in_use: &BTreeSet<String>,
        look: impl Fn(&Release) -> T,
    ) -> Result<T, Unresolved> {
        let mut images = self.images.list();
        images.retain(|image| distribution(image).as_ref() == Some(version));
        let image = one(version, &images, in_use)?;
        let (name, state) = (image.metadata.name.clone().unwrap_or_default(), &image.metadata.resource_version);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match read.get(&name) {
            Some(known) if known.at == *state => known.release.as_ref().map(look).map_err(Clone::clone),
            _ => {
                let malformed = |error| Unresolved::MalformedRelease { why: with_causes(&error) };
                let release = Release::from_image(image).map_err(malformed);
                let seen = release.as_ref().map(look).map_err(Clone::clone);
                read.insert(name, Read { at: state.clone(), release });
                seen
            }
        }
    }

    /// Why an image of this name does not even say which version it is of, if it is there.
    fn unreadable(&self, name: Option<&ImageName>) -> Option<String> {
        let image = self.images.get(&Key::cluster(name?.as_str()))?;
        if distribution(&image).is_some() {
            return None;
        }
        Release::from_image(&image).err().map(|error| with_causes(&error))
    }
}

/// The image of a version that a cluster is to be made from.
fn one<'i>(
    version: &KubernetesVersion,
    images: &'i [Arc<VirtualMachineImage>],
    in_use: &BTreeSet<String>,
) -> Result<&'i VirtualMachineImage, Unresolved> {
    let name = |image: &VirtualMachineImage| image.metadata.name.clone().unwrap_or_default();
    match images {
        [] => Err(Unresolved::NoRelease { version: version.clone() }),
        [image] => Ok(image),
        several => several.iter().find(|image| in_use.contains(&name(image))).map(|image| &**image).ok_or_else(|| {
            let mut names: Vec<String> = several.iter().map(|image| name(image)).collect();
            names.sort();
            Unresolved::Ambiguous { version: version.clone(), images: names.join(" and ") }
        }),
    }
}

/// The images that the machines of a cluster are made from: those of its workers, and those of its control plane as far as
/// they have been looked at.
fn images_in_use(ctx: &Context, key: &Key) -> BTreeSet<String> {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let pools =
        ctx.caches.deployments.list_in(namespace).into_iter().filter(|pool| by_cluster_name(&**pool).contains(key));
    let template = |pool: &str| ctx.caches.machine_templates.get(&Key::namespaced(namespace, pool));
    let workers = pools.filter_map(|pool| template(&pool.spec.template.spec.infrastructure_ref.name));
    let workers = workers.map(|template| template.spec.template.spec.image_name.clone());
    let control_plane = ctx.memory.machines(key).into_values().map(|machine| machine.infrastructure.image_name);
    workers.chain(control_plane).collect()
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
    ctx: &Context,
    cluster: &TanzuKubernetesCluster,
    latest: Option<&ClusterUpdate>,
) -> Result<Target, Unresolved> {
    let state = |update: &ClusterUpdate| update.status.as_ref().and_then(|status| status.state);
    match latest.map(|update| (update, state(update))) {
        Some((update, Some(UpdateState::Running | UpdateState::Failed) | None)) => end(ctx, cluster, &update.spec.to),
        Some((update, Some(UpdateState::Aborted))) if asks_for(ctx, cluster, update) => back(ctx, cluster, update),
        None | Some((_, Some(UpdateState::Succeeded | UpdateState::Aborted))) => asked(ctx, cluster),
    }
}

/// Whether a cluster is asked to be what an update was begun for that somebody wanted to be given up. What Windlass decides by now
/// is another matter. Where that cannot be told, it is not.
pub(crate) fn asks_for(ctx: &Context, cluster: &TanzuKubernetesCluster, update: &ClusterUpdate) -> bool {
    // Nor is it something else that the image says something else by now.
    let without = |end: UpdateEnd| UpdateEnd { defaults: BTreeMap::new(), release: None, ..end };
    let to = without(update.spec.to.clone());
    who_aborts(update).is_some() && asked(ctx, cluster).is_ok_and(|target| without(target.end()) == to)
}

/// What a cluster was when an update began.
pub(crate) fn back(
    ctx: &Context,
    cluster: &TanzuKubernetesCluster,
    update: &ClusterUpdate,
) -> Result<Target, Unresolved> {
    end(ctx, cluster, &update.spec.from)
}

/// What its owner asks for.
fn asked(ctx: &Context, cluster: &TanzuKubernetesCluster) -> Result<Target, Unresolved> {
    let version = cluster.spec.distribution.full_version.as_deref().ok_or(Unresolved::NoVersion)?;
    Target::new(cluster, release(ctx, cluster, version, None)?).map_err(Unresolved::MalformedCluster)
}

/// One end of an update.
fn end(ctx: &Context, cluster: &TanzuKubernetesCluster, end: &UpdateEnd) -> Result<Target, Unresolved> {
    let release = release(ctx, cluster, &end.distribution, end.release.as_deref())?;
    Target::of_update(cluster, end, release).map_err(Unresolved::MalformedCluster)
}

/// A release: that of this digest, where there is one on record.
fn release(
    ctx: &Context,
    cluster: &TanzuKubernetesCluster,
    version: &str,
    digest: Option<&str>,
) -> Result<Release, Unresolved> {
    let version = version.parse().map_err(Unresolved::MalformedVersion)?;
    let live = ctx.releases.of(&version, &images_in_use(ctx, &Key::of(cluster)));
    kept::or_kept(ctx, cluster, &version, digest, live)
}

#[cfg(test)]
mod tests {
    use windlass_api::kind::virtual_machine::VirtualMachineImageSpec;

    use super::*;

    #[test]
    fn of_several_images_the_one_in_use_stays_and_else_none_is_chosen() {
        let version: KubernetesVersion = "v1.16.7+vmware.1-guest.1".parse().unwrap();
        let images: Vec<Arc<VirtualMachineImage>> =
            ["b", "a"].map(|name| Arc::new(VirtualMachineImage::new(name, VirtualMachineImageSpec::default()))).into();
        let check = |images: &[Arc<VirtualMachineImage>], in_use: &[&str], expected: Result<&str, &str>| {
            let in_use = in_use.iter().map(ToString::to_string).collect();
            let found = one(&version, images, &in_use);
            let found = found.map(|image| image.metadata.name.as_deref().unwrap()).map_err(|why| why.to_string());
            assert_eq!(found, expected.map_err(str::to_owned));
        };
        check(&images, &["a", "old"], Ok("a"));
        check(&images, &["b"], Ok("b"));
        let both = "the distribution v1.16.7+vmware.1-guest.1 is that of several VirtualMachineImages, a and b; delete all but one";
        check(&images, &["old"], Err(both));
        check(&images[..1], &["old"], Ok("b"));
        check(&[], &["a"], Err("there is no VirtualMachineImage with the distribution v1.16.7+vmware.1-guest.1"));
    }
}
